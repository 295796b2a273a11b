"""The generated collection of scenes: any number of pictures with captions, and what they show and say.

**Held-out combinations.** A combination is an unordered pair of kinds, a kind being a colour and a shape: "a red circle
with a blue square", whichever comes first and however they lie. A share of all such pairs is held out: no picture of
the splits ``train`` and ``val`` shows the two kinds together, so no caption there names them together either. Each kind
by itself, and each relation, is seen in training; a held-out query asks for the two to be put together. A share of the
pictures of the split ``test`` shows a held-out combination; the others show none, like ``train``.

**Layout** of a folder of scenes: ``pictures/scene-00000.png`` and so on; ``captions.jsonl`` with the fields ``image``,
``caption``, ``split`` and ``caption_id``; ``scenes.json`` with the configuration, what every picture shows and what
every caption states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from rungwise.data.collection import ImageCaptions
from rungwise.data.scene_captions import Caption, write_captions, write_query
from rungwise.data.scene_description import (
    CLEAR_GAP,
    COLOURS,
    RADIUS,
    SHAPES,
    SIZES,
    TEXTURES,
    Kind,
    Scene,
    SceneObject,
    Statement,
)
from rungwise.data.scene_drawing import BACKGROUNDS, draw_scene
from rungwise.errors import UserError
from rungwise.files import explained, replacing

SCENES_FILE = "scenes.json"
CAPTIONS_FILE = "captions.jsonl"
PICTURES_FOLDER = "pictures"
VERSION = 1
"""Raised whenever the same configuration would give other scenes, captions or pixels."""

Combination = tuple[Kind, Kind]
"""Two kinds that a picture shows together, the one that comes first in the alphabet first: order means nothing."""

_UNFINISHED = ".scenes-unfinished"
_KINDS: tuple[Kind, ...] = tuple(sorted((colour, shape) for colour in COLOURS for shape in SHAPES))
_MARGIN = 0.02
_OBJECT_SHARES = (0.15, 0.5, 0.35)
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class SceneConfig:
    """What to generate.

    Picture n of a seed shows the same and has the same first captions whatever ``pictures``, ``side`` and
    ``captions_per_picture`` are; given the shares, it is in the same split too.

    Attributes:
        pictures: How many.
        captions_per_picture: How many each.
        side: Width and height in pixels, at least 32.
        seed: Of everything that is drawn by lot.
        val_share: Share of the pictures in the split ``val``.
        test_share: Share of the pictures in the split ``test``; the rest is ``train``.
        held_out_share: Share of all combinations that are held out.
        held_out_test_share: Share of the test pictures that show a held-out combination.

    >>> SceneConfig(pictures=0)
    Traceback (most recent call last):
    rungwise.errors.UserError: scenes: pictures must be at least 1, got 0
    """

    pictures: int = 4000
    captions_per_picture: int = 5
    side: int = 160
    seed: int = 0
    val_share: float = 0.05
    test_share: float = 0.15
    held_out_share: float = 0.1
    held_out_test_share: float = 0.5

    def __post_init__(self) -> None:
        for name, least in (("pictures", 1), ("captions_per_picture", 1), ("side", 32), ("seed", 0)):
            if (value := getattr(self, name)) < least:
                raise UserError(f"scenes: {name} must be at least {least}, got {value}")
        for name, most in (
            ("val_share", 1.0),
            ("test_share", 1.0),
            ("held_out_share", 0.5),
            ("held_out_test_share", 1.0),
        ):
            if not 0 <= (value := getattr(self, name)) <= most:
                raise UserError(f"scenes: {name} must lie in 0..{most:g}, got {value}")
        if self.val_share + self.test_share > 1:
            raise UserError("scenes: val_share and test_share add up to more than 1; lower one of them")


@dataclass(frozen=True)
class SceneQuery:
    """A search for a held-out combination.

    Attributes:
        text: Such as ``"a small red circle left of a blue square"``.
        statement: What it states, for :class:`rungwise.relevance.scenes.SceneRelevance`.
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
    """What ``scenes.json`` holds.

    Attributes:
        config: What was generated.
        held_out: The combinations that training never shows.
        scenes: What each picture shows, by the picture's name without folder and extension.
        statements: What each caption states, by caption id.
    """

    config: SceneConfig
    held_out: tuple[Combination, ...]
    scenes: dict[str, Scene]
    statements: dict[str, Statement]

    def scene_of(self, image_id: str) -> Scene:
        """What the picture with this id shows; folder and extension of the id do not matter.

        Raises:
            UserError: If no such picture was generated.
        """
        name = Path(image_id).stem
        if name not in self.scenes:
            raise UserError(f"{SCENES_FILE}: picture {image_id!r} is no scene of it; use the folder's own pictures")
        return self.scenes[name]

    def statement_of(self, caption_id: str) -> Statement:
        """What the caption with this id states.

        Raises:
            UserError: If no such caption was generated.
        """
        if caption_id not in self.statements:
            raise UserError(f"{SCENES_FILE}: caption {caption_id!r} is none of it; use the folder's own captions")
        return self.statements[caption_id]


def held_out_combinations(seed: int = 0, share: float = 0.1) -> tuple[Combination, ...]:
    """The combinations that the splits ``train`` and ``val`` never show, sorted.

    Args:
        seed: As in :class:`SceneConfig`.
        share: Of all 1,128 pairs of the 48 kinds.

    >>> held_out = held_out_combinations()
    >>> len(held_out), held_out == held_out_combinations(), held_out == held_out_combinations(seed=1)
    (113, True, False)
    """
    pairs = list(combinations(_KINDS, 2))
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))).permutation(len(pairs))
    return tuple(sorted(pairs[n] for n in order[: round(share * len(pairs))].tolist()))


@dataclass(frozen=True)
class ScenePicture:
    """One picture of the collection before it is drawn.

    Attributes:
        name: Such as ``"scene-00007"``.
        split: ``"train"``, ``"val"`` or ``"test"``.
        scene: What it shows.
        captions: Each caption and what it states.
    """

    name: str
    split: str
    scene: Scene
    captions: tuple[Caption, ...]

    @property
    def file(self) -> str:
        """Where the picture is, relative to the folder."""
        return f"{PICTURES_FOLDER}/{self.name}.png"


def sample_picture(config: SceneConfig, number: int, held_out: Sequence[Combination]) -> ScenePicture:
    """Draw by lot what one picture shows and what its captions say.

    Args:
        config: What is generated; ``pictures`` and ``side`` are not looked at.
        number: Which picture, from 0.
        held_out: :func:`held_out_combinations` of the same configuration.

    >>> picture = sample_picture(SceneConfig(captions_per_picture=2), 1, held_out_combinations())
    >>> picture.file, picture.split, len(picture.captions)
    ('pictures/scene-00001.png', 'train', 2)
    """
    split, unseen = _split(config, number)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, number)))
    kinds = _sample_kinds(rng, held_out, unseen and bool(held_out))
    scene = Scene(_place(kinds, rng), _below(len(BACKGROUNDS), rng))
    captions = write_captions(scene, config.captions_per_picture, rng)
    return ScenePicture(f"scene-{number:05d}", split, scene, tuple(captions))


def generate(
    folder: Path, config: SceneConfig | None = None, progress: Callable[[int, int], None] | None = None
) -> ImageCaptions:
    """Make a folder of scenes, or find it made already.

    ``scenes.json`` is written last: a folder without it is no collection of scenes. An interrupted generation is begun
    again; a folder that was finished with the same configuration is used as it is.

    Args:
        folder: Where; made if missing.
        config: What; all defaults if not given.
        progress: Called with (pictures done, pictures in all) now and then.

    Returns:
        The collection; image ids are the files relative to the folder.

    Raises:
        UserError: If the folder holds anything else, the disk is full, or it may not be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = generate(Path(folder), SceneConfig(pictures=8, side=32))
    >>> len(data), len(data.captions), data.caption_ids[0]
    (8, 40, 'scene-00000#0')
    """
    config = config or SceneConfig()
    held_out = held_out_combinations(config.seed, config.held_out_share)
    if not _is_finished(folder, config):
        marker = folder / _UNFINISHED
        with explained(folder):
            (folder / PICTURES_FOLDER).mkdir(parents=True, exist_ok=True)
            marker.touch()
        pictures = [sample_picture(config, number, held_out) for number in range(config.pictures)]
        _draw_all(folder, pictures, config.side, progress)
        _write_lists(folder, config, held_out, pictures)
        marker.unlink()
    return _read_collection(folder)


def load_scene_file(folder: Path) -> SceneFile:
    """Read ``scenes.json`` of a folder that :func:`generate` made.

    Raises:
        UserError: If it is missing, damaged, or was written by another version.

    >>> load_scene_file(Path("no/such/folder"))
    Traceback (most recent call last):
    rungwise.errors.UserError: no/such/folder: no scenes.json, so no finished scenes; generate them into an empty folder
    """
    path = folder / SCENES_FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["version"] != VERSION:
            raise UserError(f"{path}: version {values['version']}, not {VERSION}; generate the scenes again")
        return SceneFile(
            SceneConfig(**values["config"]),
            tuple((tuple(a), tuple(b)) for a, b in values["held_out"]),
            {name: Scene.from_plain(scene) for name, scene in values["scenes"].items()},
            {name: Statement.from_plain(said) for name, said in values["statements"].items()},
        )
    except FileNotFoundError:
        remedy = "generate them into an empty folder"
        raise UserError(f"{folder.as_posix()}: no {SCENES_FILE}, so no finished scenes; {remedy}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: damaged ({error!r}); generate the scenes into an empty folder") from None


def held_out_queries(folder: Path, count: int = 100, seed: int = 0) -> list[SceneQuery]:
    """Searches for combinations that training never showed, each with a right picture in the split ``test``.

    Args:
        folder: What :func:`generate` made.
        count: How many, all different.
        seed: Of the draw; the first queries are the same whatever the count.

    Raises:
        UserError: If the test pictures do not allow that many.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = generate(Path(folder), SceneConfig(pictures=60, side=32))
    ...     [query.text for query in held_out_queries(Path(folder), count=2)]
    ['...', '...']
    """
    file = load_scene_file(folder)
    held_out = set(file.held_out)
    data = _read_collection(folder)
    test = [file.scene_of(name) for name, split in zip(data.image_ids, data.splits, strict=True) if split == "test"]
    chances = [
        (scene, a, b)
        for scene in test
        for a, b in permutations(range(len(scene.objects)), 2)
        if _combination(scene.objects[a].kind, scene.objects[b].kind) in held_out
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


def _split(config: SceneConfig, number: int) -> tuple[str, bool]:
    """Split, and whether a held-out combination is to be shown.

    Multiples of the golden ratio fill the unit interval evenly, so the shares are kept closely however few pictures.
    """
    place = (number + 0.5) * _GOLDEN % 1.0
    if place < config.test_share:
        return "test", place < config.test_share * config.held_out_test_share
    return ("val" if place < config.test_share + config.val_share else "train"), False


def _sample_kinds(rng: np.random.Generator, held_out: Sequence[Combination], unseen: bool) -> list[Kind]:
    """Different kinds; among them a held-out combination if ``unseen``, otherwise none."""
    while True:
        count = 1 + int(np.searchsorted(np.cumsum(_OBJECT_SHARES[:-1]), rng.random(), side="right"))
        kinds = list(held_out[_below(len(held_out), rng)]) if unseen else []
        while len(kinds) < count:
            kind = _KINDS[_below(len(_KINDS), rng)]
            if kind not in kinds:
                kinds.append(kind)
        if unseen or not any(_combination(a, b) in held_out for a, b in combinations(kinds, 2)):
            return [kinds[n] for n in rng.permutation(len(kinds)).tolist()]


def _place(kinds: Sequence[Kind], rng: np.random.Generator) -> tuple[SceneObject, ...]:
    """Give the objects sizes, textures and places, so that every pair's relations are beyond doubt."""
    while True:
        sizes = [SIZES[_below(len(SIZES), rng)] for _ in kinds]
        textures = [TEXTURES[_below(len(TEXTURES), rng)] for _ in kinds]
        for places in rng.random((30, len(kinds), 2)).tolist():
            objects = []
            for (colour, shape), size, texture, place in zip(kinds, sizes, textures, places, strict=True):
                inset = RADIUS[size] + _MARGIN
                x, y = (round(inset + share * (1 - 2 * inset), 3) for share in place)
                objects.append(SceneObject(shape, colour, size, texture, x, y))
            if all(_beyond_doubt(a, b) for a, b in combinations(objects, 2)):
                return tuple(objects)


def _beyond_doubt(a: SceneObject, b: SceneObject) -> bool:
    """Apart along one axis or both; along each, clearly apart or sharing half the extent of the smaller object."""
    reach = RADIUS[a.size] + RADIUS[b.size]
    shared = reach - min(RADIUS[a.size], RADIUS[b.size])
    distances = abs(a.x - b.x), abs(a.y - b.y)
    apart = [distance >= reach + CLEAR_GAP for distance in distances]
    return any(apart) and all(far or distance <= shared for far, distance in zip(apart, distances, strict=True))


def _combination(a: Kind, b: Kind) -> Combination:
    return (a, b) if a <= b else (b, a)


def _below(limit: int, rng: np.random.Generator) -> int:
    return int(rng.random() * limit)


def _draw_all(
    folder: Path, pictures: Sequence[ScenePicture], side: int, progress: Callable[[int, int], None] | None
) -> None:
    expected = {folder / picture.file for picture in pictures}
    with explained(folder), ThreadPoolExecutor() as pool:
        for stale in (folder / PICTURES_FOLDER).glob("scene-*.png"):
            if stale not in expected:
                stale.unlink()
        drawn = pool.map(lambda p: draw_scene(p.scene, side).save(folder / p.file, compress_level=3), pictures)
        for done, _ in enumerate(drawn, start=1):
            if progress is not None and (done % 50 == 0 or done == len(pictures)):
                progress(done, len(pictures))


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
    """Whether these very scenes are there already; refuses a folder that holds anything else."""
    if (folder / _UNFINISHED).exists() or not folder.exists():
        return False
    if not (folder / SCENES_FILE).exists():
        if any(folder.iterdir()):
            raise UserError(f"{folder}: holds other files; give an empty or new folder for the scenes")
        return False
    if load_scene_file(folder).config != config:
        raise UserError(f"{folder}: holds scenes of another configuration; give an empty or new folder")
    return True


def _read_collection(folder: Path) -> ImageCaptions:
    """The collection as ``captions.jsonl`` has it."""
    with (folder / CAPTIONS_FILE).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    splits = {row["image"]: row["split"] for row in rows}
    position = {image: n for n, image in enumerate(splits)}
    return ImageCaptions(
        image_ids=tuple(splits),
        captions=tuple(row["caption"] for row in rows),
        image_of_caption=np.array([position[row["image"]] for row in rows], dtype=np.int64),
        caption_ids=tuple(row["caption_id"] for row in rows),
        paths=tuple(folder / image for image in splits),
        splits=tuple(splits.values()),
        name=folder.name,
        layout="scenes",
    )
