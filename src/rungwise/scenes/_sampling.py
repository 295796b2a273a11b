"""Contents of generated scenes: drawn at random, the same for a seed, some combinations held out of training.

**Held-out combinations.** A combination is an unordered pair of kinds, a kind being a colour and a shape: "a red circle
with a blue square", whichever comes first and however they lie. A share of all such pairs is held out: no picture of
the splits ``train`` and ``val`` shows the two kinds together, so no caption there names them together either. Each kind
by itself, and each relation, is seen in training; a held-out query asks for the two to be put together. A share of the
pictures of the split ``test`` shows a held-out combination; the others show none, like ``train``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rungwise.core import UserError
from rungwise.scenes._captions import Caption, write_captions
from rungwise.scenes._description import CLEAR_GAP, COLOURS, RADIUS, SHAPES, SIZES, TEXTURES, Kind, Scene, SceneObject
from rungwise.scenes._drawing import BACKGROUNDS

PICTURES_FOLDER = "pictures"

Combination = tuple[Kind, Kind]
"""Two kinds that a picture shows together, in alphabetical order."""

_KINDS: tuple[Kind, ...] = tuple(sorted((colour, shape) for colour in COLOURS for shape in SHAPES))
_MARGIN = 0.02
_OBJECT_SHARES = (0.15, 0.5, 0.35)
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class SceneConfig:
    """Settings of a collection of generated scenes.

    Picture n of a seed shows the same and has the same first captions whatever ``pictures``, ``side`` and
    ``captions_per_picture`` are; given the shares, it is in the same split too.

    Attributes:
        pictures: Number of pictures.
        captions_per_picture: Number of captions of each picture.
        side: Width and height in pixels, at least 32.
        seed: Seed of everything that is drawn at random.
        val_share: Share of the pictures in the split ``val``.
        test_share: Share of the pictures in the split ``test``; the rest is ``train``.
        held_out_share: Share of all combinations that are held out.
        held_out_test_share: Share of the test pictures that show a held-out combination.
        alike: Number of neighbouring training pictures that show the same things, each in another arrangement, so that
            captions of one are nearly true of the others. The other splits are the same whatever it is.
    """

    pictures: int = 4000
    captions_per_picture: int = 5
    side: int = 160
    seed: int = 0
    val_share: float = 0.05
    test_share: float = 0.15
    held_out_share: float = 0.1
    held_out_test_share: float = 0.5
    alike: int = 1

    def __post_init__(self) -> None:
        for name, least in (("pictures", 1), ("captions_per_picture", 1), ("side", 32), ("seed", 0), ("alike", 1)):
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


def held_out_combinations(seed: int = 0, share: float = 0.1) -> tuple[Combination, ...]:
    """The combinations that the splits ``train`` and ``val`` never show, sorted.

    Args:
        seed: Seed of the scenes, as in :class:`SceneConfig`.
        share: Share of all 1,128 pairs of the 48 kinds.

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
        name: Name such as ``"scene-00007"``.
        split: ``"train"``, ``"val"`` or ``"test"``.
        scene: Content of the picture.
        captions: Captions with their statements.
    """

    name: str
    split: str
    scene: Scene
    captions: tuple[Caption, ...]

    @property
    def file(self) -> str:
        """Path of the picture, relative to the folder."""
        return f"{PICTURES_FOLDER}/{self.name}.png"


def sample_picture(config: SceneConfig, number: int, held_out: Sequence[Combination]) -> ScenePicture:
    """Draw the content of one picture and its captions at random.

    Args:
        config: Settings of the collection; ``pictures`` and ``side`` have no effect.
        number: Number of the picture, from 0.
        held_out: :func:`held_out_combinations` of the same configuration.
    """
    split, unseen = _split(config, number)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, number)))
    if split == "train" and config.alike > 1:
        group = np.random.SeedSequence(config.seed, spawn_key=(2, config.alike, number // config.alike))
        kinds = _sample_kinds(np.random.default_rng(group), held_out, unseen=False)
    else:
        kinds = _sample_kinds(rng, held_out, unseen and bool(held_out))
    scene = Scene(_place(kinds, rng), _below(len(BACKGROUNDS), rng))
    captions = write_captions(scene, config.captions_per_picture, rng)
    return ScenePicture(f"scene-{number:05d}", split, scene, tuple(captions))


def _split(config: SceneConfig, number: int) -> tuple[str, bool]:
    """The split of a picture, and whether it shows a held-out combination.

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
        if unseen or not any(combination_of(a, b) in held_out for a, b in combinations(kinds, 2)):
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


def combination_of(a: Kind, b: Kind) -> Combination:
    """The two kinds in alphabetical order."""
    return (a, b) if a <= b else (b, a)


def _below(limit: int, rng: np.random.Generator) -> int:
    return int(rng.random() * limit)
