"""Configurations of the sources that compare words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rungwise.core import UserError, to_plain, user_path
from rungwise.core.disk import digest_of
from rungwise.core.text import written_without_blanks
from rungwise.data import ImageCaptions, with_splits
from rungwise.language import stemmed, tokenisers
from rungwise.relevance._base import Degrees
from rungwise.relevance._captions import hash_of_captions
from rungwise.relevance.config._base import Building, CaptionPairsConfig, CaptionsConfig, training_images
from rungwise.relevance.config._cache import Recipe
from rungwise.relevance.storage import CachedSource

if TYPE_CHECKING:
    from rungwise.relevance.lexical import DocumentFrequencies

LONGEST_NGRAM = 100
"""Most words of an n-gram; captions are shorter, and each order costs a pass through all of them."""
Tokenizer = Literal["ptb", "unicode", "whitespace", "icu", "bigrams"]

TOKENISERS: dict[Tokenizer, tokenisers.Tokeniser] = {
    "ptb": tokenisers.ptb,
    "unicode": tokenisers.unicode_words,
    "whitespace": tokenisers.whitespace,
    "icu": tokenisers.icu_words,
    "bigrams": tokenisers.character_bigrams,
}
_BY_BLANKS: tuple[Tokenizer, ...] = ("ptb", "whitespace")
"""Tokenisers that find words by the blanks between them."""


@dataclass(frozen=True)
class WordsConfig(CaptionsConfig):
    """What sources of weighted words have in common.

    Attributes:
        tokenizer: ptb for English, unicode for any language, whitespace as the NCS program; in languages without spaces
            unicode gives characters, bigrams two of them, and icu words of its dictionaries.
        stem: Map words to their stems, as CIDEr's paper has it: a language such as english or german.
        frequencies: Pictures among which a word is rare or common: all (collection), or those of the training split
            (train). Default: train where the data have a training split and others, else collection.
    """

    IN_SHARDS: ClassVar[bool] = True
    tokenizer: Tokenizer = "ptb"
    stem: str | None = None
    frequencies: Literal["collection", "train"] | None = None

    def advice(self, data: ImageCaptions, building: Building) -> str:
        """The option that finds words where captions have no blanks between them."""
        return _without_blanks(self.tokenizer, data, building)

    def _of_words(self, data: ImageCaptions, building: Building, orders: int) -> dict[str, Any]:
        return {
            "leave_one_out": self.leave_one_out,
            "images": len(data),
            "tokenizer": TOKENISERS[self.tokenizer],
            "stemming": self.stem,
            "document_frequencies": self._frequencies(data, building, orders),
            "share": building.share,
        }

    def _corpus(self, data: ImageCaptions, building: Building) -> ImageCaptions | None:
        """The training split, whose words are counted; None lets the source count its own captions."""
        wanted = self.frequencies or building.frequencies
        if wanted == "collection":
            return None
        if wanted == "train":
            data = with_splits(building.whole or data)
        training = training_images(data, building.train)
        if wanted is None and len(training) in (0, len(data)):
            return None
        if not len(training):
            known = ", ".join(data.split_names)
            raise UserError(
                f"{data.name}: no picture is in split {' or '.join(map(repr, building.train))}; it has {known};"
                f" take {building.option('frequencies')} collection"
            )
        building.say(
            f"{self.kind}: document frequencies of the {len(training):,} training pictures alone, of {len(data):,}"
        )
        return data.select(training)

    def _frequencies(self, data: ImageCaptions, building: Building, orders: int) -> DocumentFrequencies | None:
        part = self._corpus(data, building)
        if part is None:
            return None
        from rungwise.relevance.lexical import vocabulary

        tokenizer = stemmed(TOKENISERS[self.tokenizer], self.stem)
        counted = vocabulary(part.captions, part.image_of_caption, tokenizer, orders, building.share)
        return counted.document_frequencies("train")

    def _counts(self, data: ImageCaptions, building: Building) -> dict[str, Any]:
        """All that the weights of words depend on besides the captions."""
        part = self._corpus(data, replace(building, say=lambda _: None))
        corpus = None if part is None else hash_of_captions(part.captions, part.image_of_caption)
        return {**to_plain(self), "frequencies": corpus, **_packages(self.tokenizer, self.stem)}


def _without_blanks(tokenizer: Tokenizer, data: ImageCaptions, building: Building) -> str:
    if tokenizer not in _BY_BLANKS or not written_without_blanks(data.captions):
        return ""
    return f"these captions have no blanks between words; {building.option('tokenizer')} icu"


def _packages(tokenizer: Tokenizer, stem: str | None) -> dict[str, str]:
    """Versions of the packages whose dictionaries and rules decide the tokens."""
    names = [name for name, used in (("icu4py", tokenizer == "icu"), ("snowballstemmer", stem is not None)) if used]
    with suppress(PackageNotFoundError):  # making the source says what is missing
        return {name: version(name) for name in names}
    return {}


@dataclass(frozen=True)
class _ConsensusConfig(WordsConfig):
    """What CIDEr and CIDEr-D have in common."""

    def _recipe(self, data: ImageCaptions, building: Building) -> Recipe:
        from rungwise.relevance.precomputed import CachedConsensus, kept_rows

        def restore(kept: CachedSource) -> Degrees:
            return CachedConsensus(
                kept, data.captions, data.image_of_caption, leave_one_out=self.leave_one_out, images=len(data)
            )

        return Recipe(self._counts(data, building), kept_rows, restore)


@dataclass(frozen=True)
class CIDErDConfig(_ConsensusConfig):
    """N-grams in common, a penalty on other lengths (CIDEr-D)."""

    kind: Literal["cider-d"] = field(default="cider-d", init=False)

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.lexical import ORDERS, CIDErD

        return CIDErD(data.captions, data.image_of_caption, **self._of_words(data, building, ORDERS))


@dataclass(frozen=True)
class CIDErConfig(_ConsensusConfig):
    """N-grams in common (CIDEr)."""

    kind: Literal["cider"] = field(default="cider", init=False)

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.lexical import ORDERS, CIDEr

        return CIDEr(data.captions, data.image_of_caption, **self._of_words(data, building, ORDERS))


@dataclass(frozen=True)
class TfIdfConfig(WordsConfig, CaptionPairsConfig):
    """Words in common, rare ones above all.

    Attributes:
        orders: The longest n-gram; 1 is words.
    """

    kind: Literal["tfidf"] = field(default="tfidf", init=False)
    orders: int = 1

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.lexical import TfIdf

        if self.orders < 1:
            raise UserError(f"tfidf: {building.option('orders')} must be at least 1, got {self.orders}")
        if self.orders > LONGEST_NGRAM:
            raise UserError(f"tfidf: {building.option('orders')} must be at most {LONGEST_NGRAM}, got {self.orders}")
        options = self._of_words(data, building, self.orders) | self.of_captions(data)
        return TfIdf(data.captions, data.image_of_caption, orders=self.orders, **options)

    def _recipe(self, data: ImageCaptions, building: Building) -> Recipe:
        from rungwise.relevance.precomputed import CachedPairRows, kept_rows

        def restore(kept: CachedSource) -> Degrees:
            return CachedPairRows(kept, data.captions, data.image_of_caption, **self.of_captions(data))

        return Recipe(self._counts(data, building), kept_rows, restore)


@dataclass(frozen=True)
class CBoWConfig(CaptionPairsConfig):
    """Averaged word vectors (CBoW).

    Attributes:
        vectors: File of word vectors: GloVe text, word2vec text or binary.
        tokenizer: ptb for English, unicode for any language, whitespace as the NCS program, icu for languages without
            spaces.
    """

    IN_SHARDS: ClassVar[bool] = True
    NEEDS: ClassVar[Mapping[str, str]] = {"vectors": "a file of word vectors, such as glove.6B.300d.txt"}
    kind: Literal["cbow"] = field(default="cbow", init=False)
    vectors: Path | None = None
    tokenizer: Tokenizer = "ptb"

    def advice(self, data: ImageCaptions, building: Building) -> str:
        """The option that finds words where captions have no blanks between them."""
        return _without_blanks(self.tokenizer, data, building)

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        from rungwise.relevance.embedding import CBoW

        assert self.vectors is not None, "missing() says so before"
        source = CBoW(
            data.captions,
            data.image_of_caption,
            self.vectors,
            tokenizer=TOKENISERS[self.tokenizer],
            **self.of_captions(data),
        )
        unknown = ", ".join(list(source.unknown_words)[:5])
        building.say(
            f"cbow: {source.unknown_share:.1%} of the words have no vector{f', such as {unknown}' if unknown else ''}"
        )
        return source

    def _recipe(self, data: ImageCaptions, building: Building) -> Recipe | None:
        from rungwise.relevance.precomputed import CachedVectors, kept_vectors

        assert self.vectors is not None, "missing() says so before"
        vectors = user_path(self.vectors)
        if not vectors.is_file():
            return None  # making it says what is wrong

        def restore(kept: CachedSource) -> Degrees:
            return CachedVectors(kept, data.captions, data.image_of_caption, **self.of_captions(data))

        depends_on = {"tokenizer": self.tokenizer, "vectors": digest_of(vectors), **_packages(self.tokenizer, None)}
        return Recipe(depends_on, kept_vectors, restore)
