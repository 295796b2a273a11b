"""The average of models: the score of a pair is the mean of several models' scores.

Published tables report such averages: SGRAF is SGR and SAF (Diao et al. 2021), "t-i + i-t" are two SCANs (Lee et al.
2018), and VSRN's numbers are those of two models. Members are trained separately and keep their own vocabularies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.data import ImageCaptions
from rungwise.models._contracts import PairScorer, PairScores, Pictures, Progress, Texts, Vectors

PREFIX = "average:"
"""Prefix of the members' folders or names, which commas separate."""


@dataclass(frozen=True)
class _Member:
    """Scores of one model.

    Attributes:
        scores: Scores of the pairs that the model could read.
        images: (images,) position in these scores of each image that all members could read.
        captions: (captions,) position in these scores of each of their captions.
    """

    scores: PairScores
    images: NDArray[np.int64]
    captions: NDArray[np.int64]


@dataclass(frozen=True)
class AveragedScores(PairScores):
    """Means of several models' scores of one collection."""

    dear: ClassVar[bool] = True

    members: tuple[_Member, ...]

    def block(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(len(images), len(captions)) float32 scores."""
        rows, columns = (np.asarray(some, dtype=np.int64) for some in (images, captions))
        return _mean([one.scores.block(one.images[rows], one.captions[columns]) for one in self.members])

    def pairs(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(pairs,) float32 scores of single pairs."""
        rows, columns = (np.asarray(some, dtype=np.int64) for some in (images, captions))
        return _mean([one.scores.pairs(one.images[rows], one.captions[columns]) for one in self.members])


class Average(PairScorer):
    """The mean of models' scores.

    Raises:
        UserError: If there are fewer than two models.

    >>> class Constant(PairScorer):
    ...     def __init__(self, value):
    ...         self.value, self.fingerprint = value, str(value)
    ...     fingerprint = ""
    ...     def block(self, images, captions):
    ...         return np.full((len(images), len(captions)), self.value, np.float32)
    >>> Average([Constant(1), Constant(4)]).block([b""], ["a", "b"])
    array([[2.5, 2.5]], dtype=float32)
    """

    kind = "average"

    def __init__(self, models: Sequence[PairScorer]) -> None:
        if len(models) < 2:
            raise UserError(f"an average is of two models or more, got {len(models)}; give them, or take the one alone")
        self.models = tuple(models)

    @property
    def fingerprint(self) -> str:
        """Hash of the members' fingerprints, in any order."""
        return digest_of_parts([" ".join(sorted(one.fingerprint for one in self.models))])

    @property
    def made_of(self) -> frozenset[str]:
        """Fingerprints of the average and of its members."""
        return frozenset({self.fingerprint}).union(*(one.made_of for one in self.models))

    def block(self, images: Pictures, captions: Texts) -> Vectors:
        """(len(images), len(captions)) float32 scores of any images with any texts."""
        return _mean([model.block(images, captions) for model in self.models])

    def on(self, data: ImageCaptions, *, cache: Path | None = None, progress: Progress | None = None) -> AveragedScores:
        """The scores of a collection; images that one of the members cannot read are left out for all."""
        advance = None if progress is None else _shared(progress, len(self.models))
        scores = [model.on(data, cache=cache, progress=advance) for model in self.models]
        readable = set.intersection(*(set(one.kept.tolist()) for one in scores))
        kept = np.array(sorted(readable), dtype=np.int64)
        read = data if len(kept) == len(data) else data.select(kept)
        members = tuple(
            _Member(one, _places(one.data.image_ids, read.image_ids), _places(one.data.caption_ids, read.caption_ids))
            for one in scores
        )
        issues = {issue.where: issue for one in scores for issue in one.issues}
        return AveragedScores(read, kept, tuple(issues.values()), members)

    def too_long(self, texts: Texts) -> NDArray[np.int64]:
        """Positions of the texts of which some member reads only the beginning, ascending."""
        return np.unique(np.concatenate([model.too_long(texts) for model in self.models]))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that some member never learnt, each once."""
        return tuple(dict.fromkeys(word for model in self.models for word in model.unknown_words(text)))

    @property
    def known_words(self) -> Collection[str]:
        """The whole words that the vocabularies of all members hold."""
        return frozenset.intersection(*(frozenset(model.known_words) for model in self.models))

    @property
    def reads_pictures(self) -> bool:
        """Whether all members read pictures."""
        return all(model.reads_pictures for model in self.models)

    @property
    def reads_words(self) -> bool:
        """Whether all members read words."""
        return all(model.reads_words for model in self.models)

    @property
    def decoded_side(self) -> int | None:
        """The largest side that a member decodes; None where one of them reads every pixel."""
        sides = [model.decoded_side for model in self.models]
        return None if None in sides else max(side for side in sides if side is not None)

    @property
    def longest_text(self) -> int | None:
        """The smallest number of tokens that a member reads."""
        return min((model.longest_text for model in self.models if model.longest_text is not None), default=None)


def members_of(text: str) -> tuple[str, ...] | None:
    """The folders or names that ``average:ONE,OTHER`` stands for; None for a text without the prefix.

    Raises:
        UserError: If a name is missing, or a folder's name holds a comma.

    >>> members_of("average:runs/sgr/model,runs/saf/model")
    ('runs/sgr/model', 'runs/saf/model')
    """
    if not text.startswith(PREFIX):
        return None
    names = tuple(text.removeprefix(PREFIX).split(","))
    for begin in range(len(names)):
        for end in range(begin + 2, len(names) + 1):
            if Path(whole := ",".join(names[begin:end])).exists():
                raise UserError(f"{text}: a comma stands between two models, and {whole} has one; rename that folder")
    if len(names) < 2 or not all(names):
        raise UserError(f"{text}: name two models or more after {PREFIX} with a comma between them, and no blank")
    return names


def _mean(blocks: Sequence[Vectors]) -> Vectors:
    total: Vectors = np.sum(blocks, axis=0, dtype=np.float32)
    return total / np.float32(len(blocks))


def _places(held: Sequence[str], wanted: Sequence[str]) -> NDArray[np.int64]:
    place = {name: position for position, name in enumerate(held)}
    return np.array([place[name] for name in wanted], dtype=np.int64)


def _shared(progress: Progress, among: int) -> Callable[[int], None]:
    """One progress for several models that read the same images one after the other."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        before, done = done // among, done + count
        progress(done // among - before)

    return advance
