"""Concepts of a collection: frequent words of its captions, and which of them go together (Wang et al. 2020).

With N_ij captions that hold concepts i and j, and n_i that hold i, the graph of the authors' program is::

    P_ij = N_ij / n_i, and P_ii = 0                           how likely j is where i is
    B_ij = 1 if s^(P_ij - u) - s^(-u) >= t, else 0            s = 5, u = 0.02, t = 0.3: P_ij of 0.168 and more
    A    = identity + w B_ij / (sum over k of B_kj)           w = 0.25
    G    = D A' D,  D_ii = (sum over j of A_ij)^(-1/2)

The paper takes 300 concepts of three types: objects, motions and properties, as a tagger tells them. Here they are the
most frequent words of any type, in any language. Words that stand in too many captions, such as articles, are left out;
prepositions and the like stay, unless a file names them. A file of words that somebody chose takes the place of all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse
from torch import Tensor

from rungwise.core import (
    ELSEWHERE,
    STRICT,
    AtLeastOne,
    Bounded,
    Cancelled,
    NotNegative,
    Positive,
    Size,
    SomeShare,
    UserError,
    read_text,
    user_path,
)
from rungwise.encoders.vocabulary import Tokens
from rungwise.language.tokenisers import unicode_words

MOST_CONCEPTS = 1 << 13
"""Largest number of concepts; their graph takes 256 MiB."""
LEAST_CONCEPTS = 2
"""Smallest number of concepts, since batch norm over concepts needs two."""


@dataclass(frozen=True)
class ConceptConfig(Bounded):
    """Which concepts there are, and how their graph is built.

    Attributes:
        count: Number of most frequent words that are taken, at most; of a file, its words.
        min_count: Least number of captions that hold a concept.
        most_share: Largest share of captions that hold a concept; more frequent words say nothing about a picture.
        leave_out: A file of words that are no concepts, one a line, such as a list of stop words.
        file: Concepts of the user's choice, one word a line, in place of the most frequent words.
        word_vectors: A file of word vectors, as GloVe or word2vec write them, that stand for concepts and stay fixed.
            Without one, the vectors start at random and are learnt.
        width: Width of the start vectors of concepts; with word_vectors, that of the file.
        scale: s of the graph.
        shift: u of the graph.
        threshold: t of the graph.
        neighbours: w of the graph, the weight of all neighbours of a concept together, beside its own 1.
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "concepts"

    count: Annotated[int, Field(ge=LEAST_CONCEPTS, le=MOST_CONCEPTS)] = 300
    min_count: AtLeastOne = 4
    most_share: SomeShare = 0.3
    leave_out: str | None = field(default=None, metadata=ELSEWHERE)
    file: str | None = field(default=None, metadata=ELSEWHERE)
    word_vectors: str | None = field(default=None, metadata=ELSEWHERE)
    width: Size = 300
    scale: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 5.0
    shift: float = 0.02
    threshold: Positive = 0.3
    neighbours: NotNegative = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.file is not None and self.leave_out is not None:
            raise UserError("concepts.file names the concepts themselves, so that concepts.leave_out says nothing")

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """A width beside a file that has its own, and what chooses words where a file names them."""
        if self.file is not None:
            for one in fields(self):
                if one.name in ("count", "min_count", "most_share") and getattr(self, one.name) != one.default:
                    yield Cancelled(
                        f"{place}.{one.name} {getattr(self, one.name):g} changes nothing: {place}.file {self.file}"
                        " names the concepts; leave one of the two out"
                    )
        if self.word_vectors is not None and self.width != ConceptConfig.width:
            yield Cancelled(
                f"{place}.width {self.width} changes nothing: {place}.word_vectors {self.word_vectors} has a width of"
                " its own; leave it out"
            )


@dataclass(frozen=True)
class Concepts:
    """Words to be found in texts.

    Attributes:
        words: The words, each once, as :func:`~rungwise.language.tokenisers.unicode_words` cuts texts.

    >>> Concepts(("dog", "ball")).found(["A ball, a dog, a ball.", "A cat."])[:]
    [[0, 1], []]
    """

    words: tuple[str, ...]

    @cached_property
    def _number(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        """Number of concepts."""
        return len(self.words)

    def found(self, texts: Sequence[str]) -> Tokens:
        """The numbers of the concepts that each text holds, ascending, each once."""
        number = self._number
        return Tokens.of([sorted({number[word] for word in unicode_words(text) if word in number}) for text in texts])


def most_frequent(captions: Sequence[str], config: ConceptConfig) -> Concepts:
    """The words that stand in most captions, except those in too many or too few captions.

    Ties go by the alphabet. A word has at least one letter.

    Raises:
        UserError: If fewer than two words remain, or the file of words to leave out cannot be read.

    >>> config = ConceptConfig(count=2, min_count=1, most_share=0.7)
    >>> most_frequent(["a dog runs", "a dog sleeps", "a cat sleeps"], config).words
    ('dog', 'sleeps')
    """
    held = Counter(word for text in captions for word in set(unicode_words(text)) if _has_letter(word))
    for word in () if config.leave_out is None else _words_of_file(config.leave_out):
        held.pop(word, None)
    most = config.most_share * len(captions)
    known = [word for word, count in held.items() if config.min_count <= count <= most]
    if len(known) < LEAST_CONCEPTS:
        raise UserError(
            f"{len(known)} words stand in at least {config.min_count} and at most {100 * config.most_share:g} % of the"
            f" {len(captions)} training captions, and concepts must be {LEAST_CONCEPTS} at least; lower"
            " model.concepts.min_count, raise model.concepts.most_share, or name model.concepts.file"
        )
    return Concepts(tuple(sorted(known, key=lambda word: (-held[word], word))[: config.count]))


def concepts_of_file(path: str) -> Concepts:
    """The words of a user's file, one a line; empty lines are skipped.

    Raises:
        UserError: If the file cannot be read, a line is not a single word, or there are too few or too many words.
    """
    return _concepts(_words_of_file(path), path)


def concepts_in(text: str, where: object) -> Concepts:
    r"""The words in the text of a file, one a line; ``where`` names the file in errors.

    Raises:
        UserError: If a line is not a single word, or there are too few or too many words.

    >>> concepts_in("Dog\nball\n", "concepts.txt").words
    ('dog', 'ball')
    """
    return _concepts(_words_in(text, where), where)


def _words_of_file(path: str) -> tuple[str, ...]:
    place = user_path(path)
    return _words_in(read_text(place, "settings_bytes"), place)


def _words_in(text: str, where: object) -> tuple[str, ...]:
    words: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        cut = unicode_words(line)
        if len(cut) != 1 or not _has_letter(cut[0]):
            raise UserError(f"{where}, line {number}: {line.strip()[:60]!r} is no single word; give one word a line")
        if (first := words.setdefault(cut[0], number)) != number:
            raise UserError(f"{where}, line {number}: {cut[0][:60]!r} stands in line {first} as well; take one out")
    return tuple(words)


def _concepts(words: tuple[str, ...], where: object) -> Concepts:
    if not LEAST_CONCEPTS <= len(words) <= MOST_CONCEPTS:
        raise UserError(
            f"{where}: {len(words)} words, where concepts must be {LEAST_CONCEPTS}..{MOST_CONCEPTS}; give others"
        )
    return Concepts(words)


def co_occurrence(found: Tokens, concepts: int) -> NDArray[np.int64]:
    """(concepts, concepts) number of texts that hold both concepts; on the diagonal, texts that hold one.

    >>> co_occurrence(Tokens.of([[0, 1], [0]]), 2).tolist()
    [[2, 1], [1, 1]]
    """
    ones = np.ones(len(found.numbers), np.int64)
    held = sparse.csr_array((ones, found.numbers, found.starts), shape=(len(found), concepts))
    together: NDArray[np.int64] = (held.T @ held).toarray()
    return together


def correlation(together: NDArray[np.int64], config: ConceptConfig) -> NDArray[np.float64]:
    """(concepts, concepts) G, by which concepts mix each other's vectors (Wang et al. 2020, section 3.2).

    It is computed from the counts of :func:`co_occurrence`, with the program's weights. A concept that no text holds
    has no neighbours.

    >>> correlation(np.array([[4, 4], [4, 40]]), ConceptConfig()).round(3).tolist()
    [[0.8, 0.0], [0.224, 1.0]]
    """
    times = together.diagonal()[:, None]
    likely = np.divide(together, times, out=np.zeros(together.shape), where=times > 0)
    np.fill_diagonal(likely, 0)
    scaled = config.scale ** (likely - config.shift) - config.scale**-config.shift
    near = (scaled >= config.threshold).astype(np.float64)
    weighted = np.eye(len(near)) + config.neighbours * near / near.sum(axis=0).clip(min=1)
    lengths = weighted.sum(axis=1) ** -0.5
    graph: NDArray[np.float64] = lengths[:, None] * weighted.T * lengths
    return graph


def of_pictures(found: Tokens, picture: NDArray[np.int64]) -> Tokens:
    """For each text, the concepts that any text of the same picture holds, ascending, each once.

    Args:
        found: Numbers of the concepts of each text.
        picture: (texts,) number of the picture of each text.

    >>> of_pictures(Tokens.of([[0, 2], [1], [1, 2]]), np.array([5, 3, 5]))[:]
    [[0, 1, 2], [1], [0, 1, 2]]
    """
    held: defaultdict[int, set[int]] = defaultdict(set)
    numbers = picture.tolist()
    for text, number in enumerate(numbers):
        held[number].update(found[text])
    known = {number: sorted(concepts) for number, concepts in held.items()}
    return Tokens.of([known[number] for number in numbers])


@dataclass(frozen=True)
class ConceptTexts(Tokens):
    """Token numbers of texts, and the concepts that label them.

    Attributes:
        concepts: Numbers of the concepts that the words of each text name, each once.
        training_concepts: Numbers of the concepts that label each text in training, each once.
    """

    concepts: Tokens
    training_concepts: Tokens

    @classmethod
    def with_concepts(cls, tokens: Tokens, concepts: Tokens, training_concepts: Tokens | None = None) -> ConceptTexts:
        """Combine the tokens and the concepts of the same texts.

        ``training_concepts`` None takes ``concepts`` in training, too.
        """
        return cls(
            tokens.numbers, tokens.starts, concepts, concepts if training_concepts is None else training_concepts
        )


def labels_of(found: Tokens, chosen: NDArray[np.int64], concepts: int) -> Tensor:
    """(n, concepts) float32 of the chosen texts: 1 for each concept of a text, else 0.

    >>> labels_of(Tokens.of([[], [0, 2]]), np.array([1, 0]), 3).tolist()
    [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    rows = np.zeros((len(chosen), concepts), np.float32)
    for row, text in enumerate(chosen.tolist()):
        rows[row, found[text]] = 1
    return torch.from_numpy(rows)


def _has_letter(word: str) -> bool:
    return any(letter.isalpha() for letter in word)
