"""The generated collection of scenes: any number of pictures with captions, and exact relevance between all of them.

**Held-out combinations.** A combination is an unordered pair of kinds, a kind being a colour and a shape: "a red circle with a
blue square", whichever comes first and however they lie. A share of all such pairs is held out: no picture of the splits
``train`` and ``val`` shows the two kinds together, so no caption there names them together either. Each kind by itself, and
each relation, is seen in training; what a held-out query asks for is that they are put together. A share of the pictures of
the split ``test`` shows one held-out combination or more; the others show none, like ``train``.

**Layout** of a folder of scenes: ``pictures/scene-00000.png`` ..., ``captions.jsonl`` with the fields ``image``, ``caption``,
``split`` and ``caption_id``, and ``scenes.json`` with the configuration, what every picture shows and what every caption states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.data.collection import ImageCaptions
from rungwise.data.scene_captions import Caption, write_captions, write_query
from rungwise.data.scene_description import (
    CLEAR_GAP,
    COLOURS,
    MAX_OBJECTS,
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

Combination = frozenset[Kind]
"""Two kinds that a picture shows together, in no order."""

_UNFINISHED = ".scenes-unfinished"
_KINDS: tuple[Kind, ...] = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)
_MARGIN = 0.02
_OBJECT_SHARES = (0.15, 0.5, 0.35)
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class SceneConfig:
    """What to generate.

    Picture n of a seed shows the same, is in the same split and has the same first captions whatever ``pictures``, ``side`` and
    ``captions_per_picture`` are.

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
        return frozenset((m.colour or "", m.shape or "") for m in self.statement.mentions)


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
    held_out: frozenset[Combination]
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


def held_out_combinations(seed: int = 0, share: float = 0.1) -> frozenset[Combination]:
    """The combinations that the splits ``train`` and ``val`` never show.

    Args:
        seed: As in :class:`SceneConfig`.
        share: Of all 1,128 pairs of the 48 kinds.

    >>> held_out = held_out_combinations()
    >>> len(held_out), held_out == held_out_combinations(), held_out == held_out_combinations(seed=1)
    (113, True, False)
    """
    pairs = list(combinations(_KINDS, 2))
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))).permutation(len(pairs))
    return frozenset(frozenset(pairs[n]) for n in order[: round(share * len(pairs))].tolist())


def sample_scene(
    config: SceneConfig, number: int, held_out: frozenset[Combination]
) -> tuple[str, Scene, list[Caption]]:
    """Split, scene and captions of one picture.

    Args:
        config: What is generated; ``pictures`` is not looked at.
        number: Which picture, from 0.
        held_out: :func:`held_out_combinations` of the same configuration.

    >>> split, scene, captions = sample_scene(SceneConfig(captions_per_picture=2), 1, held_out_combinations())
    >>> split, len(scene.objects), len(captions)
    ('train', 2, 2)
    """
    split, unseen = _split(config, number)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, number)))
    scene = _sample_objects(rng, held_out, unseen)
    return split, scene, write_captions(scene, config.captions_per_picture, rng)


def generate(
    folder: Path, config: SceneConfig | None = None, progress: Callable[[int, int], None] | None = None
) -> ImageCaptions:
    """Make a folder of scenes, or find it made already.

    ``scenes.json`` is written last: a folder without it is no collection of scenes. An interrupted generation is begun again;
    a folder that was finished with the same configuration is used as it is.

    Args:
        folder: Where; made if missing.
        config: What; all defaults if not given.
        progress: Called with (pictures done, pictures in all) now and then.

    Returns:
        The collection as a reader finds it in the folder.

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
    if _is_finished(folder, config):
        return _collection(folder, config, _sample_all(config, held_out))
    marker = folder / _UNFINISHED
    with explained(folder):
        (folder / PICTURES_FOLDER).mkdir(parents=True, exist_ok=True)
        marker.touch()
    pictures = list(_sample_all(config, held_out))
    with ThreadPoolExecutor(max_workers=4) as pool, explained(folder):
        drawn = pool.map(lambda n: _draw(folder, pictures[n][1], n, config.side), range(config.pictures))
        for done, _ in enumerate(drawn, start=1):
            if progress is not None and (done % 50 == 0 or done == config.pictures):
                progress(done, config.pictures)
    _write_lists(folder, config, held_out, pictures)
    marker.unlink()
    return _collection(folder, config, iter(pictures))
