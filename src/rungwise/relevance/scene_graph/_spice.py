"""SPICE (Anderson et al. 2016): the facts that a caption and an image's captions have in common.

With facts as tuples (object), (object, attribute) and (subject, relation, object)::

    T(c): the facts of caption c
    T(G): the facts of all captions of an image
    m    = sum over t in T(c) of the highest degree in which a fact of T(G) says the same, at most |T(G)|

    precision = m / |T(c)|     recall = m / |T(G)|     R = F = 2 m / (|T(c)| + |T(G)|)

In both, facts that say the same stand once: "a man and a guy" names one thing. So R lies between 0 and 1.

Words match by their lemma and by synonyms, as SPICE's do. Captions are parsed here by a small grammar and not by the
Java program's parser, so degrees are not the program's to the digit. "Left of" and "right of" are one relation, said
from either side. With word likeness a fact is matched in part: a pup is nearly a dog.

What a caption says of which thing is part of the fact, so a blue circle beside a red square is none of a red circle
beside a blue square.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, digest_of_parts
from rungwise.language.scene_graphs import Fact, Parser, SceneGraph, Synonyms, canonical, chunking, spoken
from rungwise.language.tokenisers import name_of
from rungwise.relevance._base import Block, Direction, Positions, runs_of_positions
from rungwise.relevance._caption_pairs import caption_positions
from rungwise.relevance._captions import CaptionSource
from rungwise.relevance.embedding import WordSimilarity
from rungwise.relevance.lexical import InvertedIndex, SparseCaptions
from rungwise.relevance.scene_graph._facts import SOMETHING, FactNumbers, Sparse, alike, answered, different, once, sums

Measure = Literal["f", "precision"]
"""What is measured of the facts in common: their share of both sides, or of the caption's facts alone."""

_PARSED = 1024


@dataclass(frozen=True)
class FactWeights:
    """What a fact counts, by its kind; only the proportions matter.

    Attributes:
        object: Weight of an object.
        attribute: Weight of an attribute of an object.
        relation: Weight of a relation of two objects.
        unbound: Weight of an attribute whatever has it: with 0, as SPICE has it, a red star and a red heart have
            nothing in common; with more, they are both something red.

    Raises:
        UserError: If a weight is negative or not finite, or all three kinds weigh 0.

    >>> FactWeights(relation=0, unbound=0.5)
    FactWeights(object=1.0, attribute=1.0, relation=0, unbound=0.5)
    """

    object: float = 1.0
    attribute: float = 1.0
    relation: float = 1.0
    unbound: float = 0.0

    def __post_init__(self) -> None:
        kinds = self.object, self.attribute, self.relation
        if not all(0 <= weight < math.inf for weight in kinds) or not any(kinds):
            raise UserError(f"weights must be three numbers that are not negative, not all 0, got {kinds}")
        if not 0 <= self.unbound < math.inf:
            raise UserError(f"unbound must be a number that is not negative, got {self.unbound}")

    def of(self, facts: Sequence[Fact]) -> Block:
        """(facts,) weights scaled to at most 1: float32 cannot hold the largest and smallest weights of a user."""
        highest = max(self.object, self.attribute, self.relation, self.unbound)
        by_length = [weight / highest for weight in (0.0, self.object, self.attribute, self.relation)]
        unbound = self.unbound / highest
        loose = [self.unbound > 0 and len(fact) == 2 and fact[0] == SOMETHING for fact in facts]
        return np.array(
            [unbound if one else by_length[len(fact)] for one, fact in zip(loose, facts, strict=True)], np.float32
        )


@dataclass(frozen=True)
class Match:
    """A fact of a caption with the fact of the references that says the same.

    Attributes:
        said: The caption's fact.
        shown: The references' fact.
        degree: Likeness of both, 0..1.
    """

    said: Fact
    shown: Fact
    degree: float

    def __str__(self) -> str:
        same = "" if self.said == self.shown else f" ~ {spoken(self.shown)}"
        return f"{spoken(self.said)}{same}" + ("" if self.degree == 1 else f" ({self.degree:.2f})")


@dataclass(frozen=True)
class FactExplanation:
    """Why a caption has its degree for an image.

    Attributes:
        degree: Degree R of the pair.
        matched: Facts of the caption that the references state too.
        missed: Facts of the caption that no reference states.
        unsaid: Facts of the references that the caption does not state.
    """

    degree: float
    matched: tuple[Match, ...]
    missed: tuple[Fact, ...]
    unsaid: tuple[Fact, ...]

    def __str__(self) -> str:
        lines = [f"degree {self.degree:.3f}"]
        for what, facts in (
            ("in both", [str(match) for match in self.matched]),
            ("only in the text", [spoken(fact) for fact in self.missed]),
            ("only in the captions", [spoken(fact) for fact in self.unsaid]),
        ):
            lines.append(f"{what}: {', '.join(facts) or 'nothing'}")
        return "\n".join(lines)


class Spice(CaptionSource):
    """R by the facts that a caption and an image's captions have in common, by the formula of the module.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        parser: Caption to facts: :func:`rungwise.language.scene_graphs.chunking.parse`, one that
            :func:`rungwise.language.scene_graphs.dependency_parser` makes, or your own for another
            language.
        synonyms: Which words mean the same; None takes WordNet's where it is installed, and a short list elsewhere.
        likeness: Degrees for words that are no synonyms, by :mod:`rungwise.relevance.embedding._word_similarity`; None
            is exact.
        measure: ``"f"`` is SPICE's; ``"precision"`` asks only whether what the caption says is so, and does not mind
            what it leaves out.
        weights: What an object, an attribute and a relation count; SPICE weighs all alike.
        leave_one_out: A caption is no reference for itself; without another reference its own image scores 0.
        images: Number of images, where the last ones have no caption.
        progress: Called with the number of captions that were parsed since the last call.

    Attributes:
        graphs: (captions,) the facts of each caption, as it says them.

    >>> captions = ["a small red circle left of a blue square", "a blue square right of a little red disc",
    ...     "a small blue circle left of a red square"]
    >>> source = Spice(captions, [0, 1, 2], synonyms=Synonyms.own())
    >>> source.dense()[0].round(2)
    array([1.  , 1.  , 0.67], dtype=float32)
    >>> print(source.explain(0, 2))
    degree 0.667
    in both: circle, circle - left of - square, circle: small, square
    only in the text: circle: blue, square: red
    only in the captions: circle: red, square: blue
    """

    symmetric = False

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        parser: Parser = chunking.parse,
        synonyms: Synonyms | None = None,
        likeness: WordSimilarity | None = None,
        measure: Measure = "f",
        weights: FactWeights | None = None,
        leave_one_out: bool = False,
        images: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, images=images)
        if measure not in ("f", "precision"):
            raise UserError(f"measure must be 'f' or 'precision', got {measure!r}")
        self.measure = measure
        self.weights = weights or FactWeights()
        self.leave_one_out = leave_one_out
        self._synonyms = Synonyms.installed() if synonyms is None else synonyms
        self._likeness = likeness
        self._parser = parser
        self.graphs = _parsed(self.captions, parser, progress)
        self._numbers = FactNumbers([_counted(graph, self.weights.unbound > 0) for graph in self.graphs])
        self._weights = self.weights.of(self._numbers.facts)
        self._near = alike(self._numbers.facts, self._synonyms, likeness)
        self._counted = different(self._numbers.starts, self._numbers.columns, self._near)
        self._said: Block = self._weights[self._numbers.columns] * self._counted
        self._sizes = sums(self._said, self._numbers.starts)
        self._latest: tuple[list[Positions], Sparse, Block] | None = None

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees, 0..1."""
        rows, columns = self.positions(images, captions)
        scores = self._scores([self.references_of(image) for image in rows.tolist()], columns)
        if self.leave_one_out:
            at, to = np.nonzero(rows[:, None] == self.image_of_caption[columns][None, :])
            scores[at, to] = self._without(columns[to])
        return scores

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> Block:
        """(len(first), len(second)) float32 degrees of caption ``second[b]``; caption ``first[a]`` is its reference."""
        references, captions = caption_positions(first, second, self.shape[1])
        return self._scores([np.array([one]) for one in references.tolist()], captions)

    def pair_scores(self, first: Positions, second: Positions) -> Block:
        """(n,) float32 degree of caption ``second[k]`` where caption ``first[k]`` is the reference."""
        references, place = np.unique(np.asarray(first, np.int64), return_inverse=True)
        rows, sizes = answered(self._numbers, self._near, [np.array([one]) for one in references], self._weights)
        return self._of_pairs(rows, sizes, place, np.asarray(second, np.int64))

    def explain(self, image: int, caption: int) -> FactExplanation:
        """Which facts of a caption the captions of an image state too; both are given by position."""
        self.positions([image], [caption])
        references = self.references_of(image)
        if self.leave_one_out:
            references = references[references != caption]
        numbers, own = self._numbers, self._places_of(caption)
        said, counted = set(numbers.columns[own].tolist()), numbers.columns[own][self._counted[own]].tolist()
        starts, shown = once(numbers, [references])
        facts = numbers.facts
        best: dict[int, tuple[float, int]] = {}
        unsaid: list[int] = []
        for fact, counts in zip(shown.tolist(), different(starts, shown, self._near).tolist(), strict=True):
            others, degrees = self._near.row(fact)
            pairs = [pair for pair in zip(others.tolist(), degrees.tolist(), strict=True) if pair[0] in said]
            unsaid += [fact] if counts and not pairs else []
            for other, degree in pairs:
                # Of references that say as much, the one that says it in the caption's own words.
                if degree > best.get(other, (0.0, -1))[0] or other == fact:
                    best[other] = (degree, fact)
        return FactExplanation(
            float(self.block([image], [caption])[0, 0]),
            tuple(Match(facts[fact], facts[best[fact][1]], best[fact][0]) for fact in counted if fact in best),
            tuple(facts[fact] for fact in counted if fact not in best),
            tuple(facts[fact] for fact in unsaid),
        )

    def grain(self, direction: Direction) -> int:
        """1: a pair has the same bits in every block."""
        return 1

    def options(self) -> Mapping[str, Any]:
        """What decides the degrees besides the captions' facts."""
        return {"leave_one_out": self.leave_one_out, **self._choices}

    def choices(self) -> Mapping[str, Any]:
        """The options, and the parser unless it is the built-in grammar."""
        usual = self._parser is chunking.parse
        return {**super().choices(), **({} if usual else {"parser": name_of(self._parser)})}

    def hashed(self) -> Iterator[bytes]:
        """Captions, the image of each, and facts."""
        yield from super().hashed()
        yield from _bytes_of(self.graphs)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of what decides a score besides the two texts; with a parser of the user's own, of their facts too."""
        parsed = [chunking.fingerprint()] if self._parser is chunking.parse else _bytes_of(self.graphs)
        return digest_of_parts([json.dumps(self._choices), *parsed])

    @property
    def _choices(self) -> dict[str, Any]:
        likeness = None if self._likeness is None else [self._likeness.fingerprint, self._likeness.least]
        return {
            "measure": self.measure,
            "weights": [float(self.weights.object), float(self.weights.attribute), float(self.weights.relation)],
            "unbound": float(self.weights.unbound),
            "synonyms": self._synonyms.fingerprint,
            "likeness": likeness,
        }

    def _places_of(self, caption: int) -> slice:
        """Slice of a caption's facts in the columns."""
        return slice(self._numbers.starts[caption], self._numbers.starts[caption + 1])

    def _scores(self, groups: list[Positions], captions: Positions) -> Block:
        """(groups, captions) degrees of captions where each group's captions are the references."""
        rows, sizes = self._answered(groups)
        places, starts = _taken(self._numbers, captions)
        asked = self._numbers.columns[places]
        nothing = np.zeros(len(asked), np.float32)
        both = SparseCaptions(
            np.concatenate((starts, starts[-1] + rows.starts[1:])),
            np.concatenate((asked, rows.columns)),
            np.concatenate((self._said[places], np.zeros(len(rows.columns), np.float32))),
            np.concatenate((nothing, rows.values)),
            np.zeros(len(captions) + len(groups), np.int32),
            np.ones(1, np.float32),
            len(self._numbers.facts),
        )
        references = np.arange(len(captions), len(captions) + len(groups))
        index = InvertedIndex(both, references, np.ones(len(groups), np.int64))
        common = index.scores(np.arange(len(captions))).T
        return np.ascontiguousarray(self._measured(common, self._sizes[captions][None, :], sizes[:, None]))

    def _answered(self, groups: list[Positions]) -> tuple[Sparse, Block]:
        """Facts that groups of references answer; those of the latest groups are kept."""
        latest = self._latest  # another thread may put its own there meanwhile
        same = latest is not None and len(latest[0]) == len(groups)
        if latest is None or not same or not all(map(np.array_equal, latest[0], groups)):
            self._latest = latest = (groups, *answered(self._numbers, self._near, groups, self._weights))
        return latest[1:]

    def _measured(self, common: Block, said: Block, shown: Block) -> Block:
        f = self.measure == "f"
        most, whole = (np.minimum(said, shown), said + shown) if f else (said, said + np.zeros_like(shown))
        found = np.minimum(common, most) * np.float32(2 if f else 1)
        degrees: Block = np.divide(found, whole, out=np.zeros_like(common), where=whole > 0)
        return degrees

    def _without(self, captions: Positions) -> Block:
        """(captions,) degrees of captions for their own image, whose other captions are the references."""
        groups = []
        for caption in captions.tolist():
            own = self.references_of(int(self.image_of_caption[caption]))
            groups.append(own[own != caption])
        rows, sizes = answered(self._numbers, self._near, groups, self._weights)
        return self._of_pairs(rows, sizes, np.arange(len(captions)), captions)

    def _of_pairs(self, rows: Sparse, sizes: Block, places: Positions, captions: Positions) -> Block:
        """(n,) degrees of caption ``captions[k]`` with what row ``places[k]`` answers."""
        common = np.zeros(len(captions), np.float32)
        for at, (place, caption) in enumerate(zip(places.tolist(), captions.tolist(), strict=True)):
            columns, values = rows.row(place)
            own = self._places_of(caption)
            said = self._numbers.columns[own]
            if len(columns):
                found = np.minimum(np.searchsorted(columns, said), len(columns) - 1)
                known = columns[found] == said
                common[at] = np.sum(self._said[own][known] * values[found[known]], dtype=np.float32)
        return self._measured(common, self._sizes[captions], sizes[places])


def _parsed(captions: Sequence[str], parser: Parser, progress: Callable[[int], None] | None) -> tuple[SceneGraph, ...]:
    """The facts of each caption; equal captions are parsed once."""
    known: dict[str, SceneGraph] = {}
    graphs = []
    for number, caption in enumerate(captions, start=1):
        if caption not in known:
            known[caption] = parser(caption)
        graphs.append(known[caption])
        if progress is not None and (number % _PARSED == 0 or number == len(captions)):
            progress(number % _PARSED or _PARSED)
    return tuple(graphs)


def _counted(graph: SceneGraph, unbound: bool) -> SceneGraph:
    """The facts of a caption that count, each in its canonical form."""
    facts = frozenset(map(canonical, graph))
    return facts | {(SOMETHING, fact[1]) for fact in facts if len(fact) == 2} if unbound else facts


def _taken(numbers: FactNumbers, captions: Positions) -> tuple[Positions, Positions]:
    """Positions of the facts of some captions, one after the other, and where each caption begins among these."""
    first, counts = numbers.starts[captions], np.diff(numbers.starts)[captions]
    return runs_of_positions(first, counts), np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _bytes_of(graphs: Sequence[SceneGraph]) -> Iterator[bytes]:
    for graph in graphs:
        yield json.dumps(sorted(graph)).encode()
        yield b"\0"
