"""A folder of generated scenes: written, read back, and searched for what training never showed.

**Layout** of a folder of scenes: ``pictures/scene-00000.png`` and so on; ``captions.jsonl`` with the fields ``image``,
``caption``, ``split`` and ``caption_id``; ``scenes.json`` with the configuration, the content of every picture and the
statement of every caption.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from rungwise.core import MissingFileError, UserError, read_json, user_path
from rungwise.core.compute import cores, thread_pool
from rungwise.core.disk import explained, make_folder, replacing, sync_folder
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, read
from rungwise.scenes._captions import write_query
from rungwise.scenes._description import Scene, Statement
from rungwise.scenes._drawing import draw_scene
from rungwise.scenes._sampling import (
    PICTURES_FOLDER,
    Combination,
    SceneConfig,
    ScenePicture,
    combination_of,
    held_out_combinations,
    sample_picture,
)

__all__ = [
    "CAPTIONS_FILE",
    "PICTURES_FOLDER",
    "SCENES_FILE",
    "Combination",
    "SceneConfig",
    "SceneFile",
    "ScenePicture",
    "SceneQuery",
    "generate",
    "held_out_combinations",
    "held_out_queries",
    "load_scene_file",
    "sample_picture",
]

SCENES_FILE = "scenes.json"
CAPTIONS_FILE = "captions.jsonl"
VERSION = 1
"""Version of the scenes: raised whenever the same configuration would give other scenes, captions or pixels."""

_UNFINISHED = ".scenes-unfinished"


@dataclass(frozen=True)
class SceneQuery:
    """A search for a held-out combination.

    Attributes:
        text: Query such as ``"a small red circle left of a blue square"``.
        statement: Statement of the query, for :class:`rungwise.scenes.SceneRelevance`.
    """

    text: str
    statement: Statement

    @property
    def combination(self) -> Combination:
        """The two kinds it asks for together."""
        first, second = sorted((m.colour or "", m.shape or "") for m in self.statement.mentions)
        return first, second


@dataclass(frozen=True)
class SceneFile:
    """The content of ``scenes.json``.

    Attributes:
        config: Settings of the collection.
        held_out: Combinations that training never shows.
        scenes: Content of each picture, by the picture's name without folder and extension.
        statements: Statement of each caption, by caption id.
    """

    config: SceneConfig
    held_out: tuple[Combination, ...]
    scenes: dict[str, Scene]
    statements: dict[str, Statement]

    __repr__ = short_repr

    def scene_of(self, image_id: str) -> Scene:
        """The content of the picture with this id; folder and extension of the id do not matter."""
        name = Path(image_id).stem
        if name not in self.scenes:
            raise UserError(f"{SCENES_FILE}: picture {image_id!r} is no scene of it; use the folder's own pictures")
        return self.scenes[name]

    def statement_of(self, caption_id: str) -> Statement:
        """The statement of the caption with this id."""
        if caption_id not in self.statements:
            raise UserError(f"{SCENES_FILE}: caption {caption_id!r} is none of it; use the folder's own captions")
        return self.statements[caption_id]


def generate(
    folder: Path | str, config: SceneConfig | None = None, progress: Callable[[int, int], None] | None = None
) -> ImageCaptions:
    """Make a folder of scenes, or use the one that is there.

    ``scenes.json`` is written last: a folder without it is no collection of scenes. An interrupted generation is begun
    again; a folder that was finished with the same configuration is used as it is.

    Args:
        folder: Folder to make or use.
        config: Settings; None takes all defaults.
        progress: Called now and then with the number of pictures done and in all.

    Returns:
        The collection; image ids are the files relative to the folder.

    Raises:
        UserError: If the folder holds anything else, the disk is full, or it may not be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = generate(folder, SceneConfig(pictures=8, side=32))
    >>> len(data), len(data.captions), data.caption_ids[0]
    (8, 40, 'scene-00000#0')
    """
    folder, config = user_path(folder), config or SceneConfig()
    held_out = held_out_combinations(config.seed, config.held_out_share)
    with explained(folder):
        finished = _is_finished(folder, config)
    if not finished:
        marker = folder / _UNFINISHED
        with explained(folder):
            make_folder(folder)
            marker.touch()
            sync_folder(folder)  # before anything that would be a stranger's without it
            make_folder(folder / PICTURES_FOLDER)
        pictures = [sample_picture(config, number, held_out) for number in range(config.pictures)]
        _draw_all(folder, pictures, config.side, progress)
        _write_lists(folder, config, held_out, pictures)
        with explained(folder):
            marker.unlink()
            sync_folder(folder)
    return read(folder)


def load_scene_file(folder: Path | str) -> SceneFile:
    """Read ``scenes.json`` of a folder that :func:`generate` made.

    Raises:
        UserError: If it is missing, damaged, or was written by another version.
    """
    folder = user_path(folder)
    path = folder / SCENES_FILE
    try:
        values = read_json(path)
    except MissingFileError:
        remedy = "generate them into an empty folder"
        raise UserError(f"{folder.as_posix()}: no {SCENES_FILE}, so no finished scenes; {remedy}") from None
    except UserError as error:
        raise UserError(f"{path}: damaged ({error}); generate the scenes into an empty folder") from None
    try:
        if values["version"] != VERSION:
            raise UserError(f"{path}: version {values['version']}, not {VERSION}; generate the scenes again")
        return SceneFile(
            SceneConfig(**values["config"]),
            tuple((tuple(a), tuple(b)) for a, b in values["held_out"]),
            {name: Scene.from_plain(scene) for name, scene in values["scenes"].items()},
            {name: Statement.from_plain(said) for name, said in values["statements"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: damaged ({error!r}); generate the scenes into an empty folder") from None


def held_out_queries(folder: Path | str, count: int = 100, seed: int = 0) -> list[SceneQuery]:
    """Searches for combinations that training never showed, each with a right picture in the split ``test``.

    Args:
        folder: Folder that :func:`generate` made.
        count: Number of queries, all different; a UserError if the test pictures do not allow so many.
        seed: Seed of the draw; the first queries are the same whatever the count.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = generate(folder, SceneConfig(pictures=60, side=32))
    ...     [query.text for query in held_out_queries(folder, count=2)]
    ['...', '...']
    """
    file = load_scene_file(folder)
    held_out = set(file.held_out)
    data = read(folder)
    test = [file.scene_of(name) for name, split in zip(data.image_ids, data.splits, strict=True) if split == "test"]
    chances = [
        (scene, a, b)
        for scene in test
        for a, b in permutations(range(len(scene.objects)), 2)
        if combination_of(scene.objects[a].kind, scene.objects[b].kind) in held_out
    ]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    queries: dict[str, SceneQuery] = {}
    for which in rng.permutation(len(chances)).tolist():
        scene, subject, other = chances[which]
        text, statement = write_query(scene, subject, other, rng)
        queries.setdefault(text, SceneQuery(text, statement))
        if len(queries) == count:
            return list(queries.values())
    raise UserError(
        f"{folder}: the test pictures allow {len(queries)} held-out queries, not {count};"
        " ask for fewer or generate more pictures"
    )


def _draw_all(
    folder: Path, pictures: Sequence[ScenePicture], side: int, progress: Callable[[int, int], None] | None
) -> None:
    expected = {folder / picture.file for picture in pictures}
    with explained(folder), thread_pool(cores()) as pool:
        for stale in (folder / PICTURES_FOLDER).glob("scene-*.png"):
            if stale not in expected:
                stale.unlink()
        drawn = pool.map(lambda p: _draw(folder / p.file, p.scene, side), pictures)
        for done, _ in enumerate(drawn, start=1):
            if progress is not None and (done % 50 == 0 or done == len(pictures)):
                progress(done, len(pictures))
        sync_folder(folder / PICTURES_FOLDER)


def _draw(path: Path, scene: Scene, side: int) -> None:
    """Write a picture and sync it: the lists that come after it say that all pictures are there."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:  # a new file, so that no link that lies there is followed
        draw_scene(scene, side).save(file, "PNG", compress_level=3)
        file.flush()
        os.fsync(file.fileno())


def _write_lists(
    folder: Path, config: SceneConfig, held_out: Sequence[Combination], pictures: Sequence[ScenePicture]
) -> None:
    statements = {}
    with replacing(folder / CAPTIONS_FILE) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        for picture in pictures:
            for number, (text, statement) in enumerate(picture.captions):
                row = {
                    "image": picture.file,
                    "caption": text,
                    "split": picture.split,
                    "caption_id": f"{picture.name}#{number}",
                }
                statements[row["caption_id"]] = statement.to_plain()
                file.write(json.dumps(row) + "\n")
    values = {
        "format": "rungwise scenes",
        "version": VERSION,
        "config": asdict(config),
        "held_out": held_out,
        "scenes": {picture.name: picture.scene.to_plain() for picture in pictures},
        "statements": statements,
    }
    with replacing(folder / SCENES_FILE) as draft:
        draft.write_text(json.dumps(values, separators=(",", ":")), encoding="utf-8")


def _is_finished(folder: Path, config: SceneConfig) -> bool:
    """Whether these very scenes are there already; a folder that holds anything else is refused."""
    if (folder / _UNFINISHED).exists() or not folder.exists():
        return False
    if not (folder / SCENES_FILE).exists():
        if any(folder.iterdir()):
            raise UserError(f"{folder}: holds other files; give an empty or new folder for the scenes")
        return False
    if load_scene_file(folder).config != config:
        raise UserError(f"{folder}: holds scenes of another configuration; give an empty or new folder")
    return True
