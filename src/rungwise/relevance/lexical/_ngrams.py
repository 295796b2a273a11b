"""N-grams of a collection as integers, and in how many images each occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import MissingFileError, UserError, digest_of_parts
from rungwise.core.disk import replacing
from rungwise.core.formats import opened_npz
from rungwise.core.output import short_repr
from rungwise.language.tokenisers import Tokeniser, ptb

Integers = NDArray[np.int64]


class NgramCounts:
    """How often each n-gram stands in each caption, for all orders 1..n.

    N-gram x of order n is (prefix, last word), prefix an n-gram of order n - 1. So a whole collection is counted by a
    sort of integers per order, and n-grams of another corpus are found by binary search.

    Args:
        captions: (captions,) texts.
        tokeniser: Text to tokens.
        orders: Length of the longest n-gram.

    Attributes:
        words: The vocabulary, by first appearance.
        lengths: (captions,) number of tokens.
        keys: Per order, (n-grams,) sorted ``prefix * len(words) + last word``.
        caption, ngram, count: Per order, three arrays of equal length: the caption, ascending, one of its distinct
            n-grams, ascending within the caption, and how often it stands there.

    >>> counts = NgramCounts(["a dog a dog", "dog"], str.split, orders=2)
    >>> counts.words, counts.lengths.tolist()
    (['a', 'dog'], [4, 1])
    >>> [column.tolist() for column in (counts.caption[1], counts.ngram[1], counts.count[1])]
    [[0, 0], [0, 1], [2, 1]]
    """

    def __init__(self, captions: Sequence[str], tokeniser: Tokeniser, orders: int = 4) -> None:
        number: dict[str, int] = {}
        tokens: list[int] = []
        lengths = np.empty(len(captions), np.int64)
        for caption, text in enumerate(captions):
            words = tokeniser(text)
            lengths[caption] = len(words)
            tokens.extend(number.setdefault(word, len(number)) for word in words)
        self._count(list(number), np.array(tokens, np.int64), lengths, orders, None)

    @classmethod
    def known(cls, words: Sequence[str], keys: Sequence[Integers], tokens: Integers, lengths: Integers) -> NgramCounts:
        """Counts of some captions of a collection whose words and n-grams are numbered already.

        Args:
            words: Vocabulary of the whole collection.
            keys: Per order, all n-grams of the collection.
            tokens: (tokens,) word numbers of these captions, one caption after the other.
            lengths: (captions,) number of tokens of each caption.
        """
        self = cls.__new__(cls)
        self._count(words, tokens, lengths, len(keys), keys)
        return self

    def _count(
        self,
        words: Sequence[str],
        tokens: Integers,
        lengths: Integers,
        orders: int,
        known: Sequence[Integers] | None,
    ) -> None:
        self.words = list(words)
        self.lengths = lengths
        self.tokens = tokens
        self.keys: list[Integers] = []
        self.caption: list[Integers] = []
        self.ngram: list[Integers] = []
        self.count: list[Integers] = []
        owner = np.repeat(np.arange(len(lengths)), lengths)
        remaining = np.cumsum(lengths)[owner] - np.arange(len(owner))
        prefix = np.zeros(len(owner), np.int64)
        start = np.arange(len(owner))
        for order in range(1, orders + 1):
            inside = remaining[start] >= order
            start, prefix = start[inside], prefix[inside]
            here = prefix * len(words) + tokens[start + order - 1]
            if known is None:
                keys, prefix = np.unique(here, return_inverse=True)
            else:
                keys = known[order - 1]
                prefix = np.searchsorted(keys, here)
            together = np.sort(owner[start] * max(1, len(keys)) + prefix)
            first = _firsts(together)
            of, ngram = np.divmod(together[first], max(1, len(keys)))
            self.keys.append(keys)
            self.caption.append(of)
            self.ngram.append(ngram)
            self.count.append(np.diff(first, append=len(together)))


class Numbered(Protocol):
    """Words and n-grams of a collection, numbered as in :class:`NgramCounts`."""

    @property
    def words(self) -> Sequence[str]:
        """The vocabulary, by first appearance."""
        ...

    @property
    def keys(self) -> Sequence[Integers]:
        """Per order, (n-grams,) keys."""
        ...


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many images of a corpus each n-gram occurs: an image counts once, however many of its captions have it.

    Attributes:
        images: Number of images in the corpus.
        words: The vocabulary of the corpus.
        keys: Per order, (n-grams,) as in :class:`NgramCounts`.
        counts: Per order, (n-grams,) number of images that have each n-gram.
        origin: Which captions were counted, such as ``"train"`` for the training split; empty where that is not known.

    >>> corpus = DocumentFrequencies.of(["a dog", "the dog", "a cat"], [0, 0, 1])
    >>> corpus.images, corpus.look_up(NgramCounts(["a dog sits"], str.split, 2))[0].tolist()
    (2, [2, 1, 0])
    """

    images: int
    words: tuple[str, ...]
    keys: tuple[Integers, ...]
    counts: tuple[Integers, ...]
    origin: str = ""

    __repr__ = short_repr

    @classmethod
    def of(
        cls,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        tokenizer: Tokeniser = ptb,
        orders: int = 4,
    ) -> DocumentFrequencies:
        """Count a corpus.

        Args:
            captions: (captions,) texts.
            image_of_caption: (captions,) the image of each caption; images without captions do not count.
            tokenizer: Text to tokens; scores mean something only if it is the tokeniser of the captions to be scored.
            orders: Length of the longest n-gram.
        """
        owners = np.asarray(image_of_caption, np.int64)
        return cls.counted(NgramCounts(captions, tokenizer, orders), owners)

    @classmethod
    def counted(cls, counts: NgramCounts, image_of_caption: Integers) -> DocumentFrequencies:
        """Frequencies of n-grams that are counted already."""
        frequencies = []
        for keys, caption, ngram in zip(counts.keys, counts.caption, counts.ngram, strict=True):
            width = max(1, len(keys))
            in_image = np.sort(image_of_caption[caption] * width + ngram)
            frequencies.append(np.bincount(in_image[_firsts(in_image)] % width, minlength=len(keys)))
        return cls(len(np.unique(image_of_caption)), tuple(counts.words), tuple(counts.keys), tuple(frequencies))

    def look_up(self, counts: Numbered) -> list[Integers]:
        """Per order, (n-grams of ``counts``,) number of images of this corpus that have each; 0 for those it never saw.

        Raises:
            UserError: If the corpus was counted to shorter n-grams than are asked for.
        """
        if len(counts.keys) > len(self.keys):
            raise UserError(
                f"document frequencies go up to n-grams of {len(self.keys)} words and {len(counts.keys)} are needed;"
                " count the corpus again"
            )
        if counts.keys[0] is self.keys[0]:
            return list(self.counts[: len(counts.keys)])
        number = {word: position for position, word in enumerate(self.words)}
        here = np.array([number.get(word, -1) for word in counts.words], np.int64)
        frequencies = []
        known = np.zeros(1, np.int64)
        width = max(1, len(counts.words))
        for keys, own, own_counts in zip(counts.keys, self.keys, self.counts, strict=False):
            prefix, word = known[keys // width], here[keys % width]
            wanted = prefix * len(self.words) + word
            place = np.minimum(np.searchsorted(own, wanted), max(0, len(own) - 1))
            found = (prefix >= 0) & (word >= 0)
            if len(own):
                found &= own[place] == wanted
            else:
                found[:] = False
            known = np.where(found, place, -1)
            frequencies.append(np.where(found, own_counts[place] if len(own) else 0, 0))
        return frequencies

    def save(self, path: Path | str) -> None:
        """Write to one ``.npz`` file, whole or not at all."""
        text = np.frombuffer("\0".join(self.words).encode("utf-8", "surrogatepass"), np.uint8)
        arrays: dict[str, Any] = {f"keys{order}": keys for order, keys in enumerate(self.keys, 1)}
        arrays |= {f"counts{order}": counts for order, counts in enumerate(self.counts, 1)}
        with replacing(Path(path)) as draft, draft.open("wb") as file:
            np.savez(file, images=np.array(self.images), words=text, origin=np.array(self.origin), **arrays)

    @classmethod
    def load(cls, path: Path | str) -> DocumentFrequencies:
        """Read what :meth:`save` wrote; a UserError if the file is missing or is something else."""
        try:
            with opened_npz(Path(path)) as file:
                orders = sum(name.startswith("keys") for name in file.names)
                if sum(name.startswith("counts") for name in file.names) != orders:
                    raise ValueError(f"there are {', '.join(file.names)}")
                text = file["words"].tobytes().decode("utf-8", "surrogatepass")
                found = cls(
                    int(file["images"]),
                    tuple(text.split("\0")) if text else (),
                    tuple(file[f"keys{order}"] for order in range(1, orders + 1)),
                    tuple(file[f"counts{order}"] for order in range(1, orders + 1)),
                    str(file["origin"]),
                )
                found._check()
                return found
        except MissingFileError as error:
            raise UserError(f"{path}: no such file; save document frequencies there first") from error
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise UserError(f"{path}: holds no document frequencies ({error}); save them again") from error

    def _check(self) -> None:
        """Raise a ValueError for arrays that do not fit together, which would give wrong weights without a word."""
        words, below = len(self.words), 1
        if self.images < 0 or not self.keys:
            raise ValueError(f"{self.images} images, n-grams of {len(self.keys)} orders")
        for order, (keys, counts) in enumerate(zip(self.keys, self.counts, strict=True), start=1):
            for what, array in (("keys", keys), ("counts", counts)):
                if array.ndim != 1 or array.dtype.kind not in "iu" or array.shape != keys.shape:
                    raise ValueError(f"{what}{order} has the shape {array.shape} and type {array.dtype}")
            if len(keys) and not (keys[0] >= 0 and keys[-1] < below * words and (np.diff(keys) > 0).all()):
                raise ValueError(f"keys{order} are not ascending n-grams of {words} words")
            if len(counts) and not 1 <= counts.min() <= counts.max() <= self.images:
                raise ValueError(f"counts{order} run {counts.min()}..{counts.max()} in {self.images} images")
            below = len(keys)

    def content_hash(self) -> str:
        """Hash of everything that weights depend on."""
        numbers = (array.astype("<i8") for array in (*self.keys, *self.counts))
        return digest_of_parts(chain([f"{self.images}\n", "\0".join(self.words)], numbers))


def _firsts(ascending: Integers) -> Integers:
    """Where each run of equal values begins; numpy's unique hashes, which takes several times as long as a sort."""
    return np.flatnonzero(np.diff(ascending, prepend=-1))
