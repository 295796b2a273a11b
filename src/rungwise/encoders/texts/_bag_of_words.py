"""Text side without a network: weighted word counts of a text, or the mean of its words' vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Tokenizer, models
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import ELSEWHERE, Cancelled, Natural, Size, UserError, from_plain
from rungwise.core.formats import digest_of_tensors
from rungwise.data.files import FeatureRows
from rungwise.encoders._sides import TEXT_ENCODER, TOKENIZER, SavedFiles, TextSideConfig, require_words
from rungwise.encoders.texts._gru import UNKNOWN, Unspaced, learn_vocabulary, with_words, word_cutter
from rungwise.encoders.texts._pooling import inside
from rungwise.encoders.texts._word_side import WordSide
from rungwise.encoders.texts._word_table import WordCoverage, covered
from rungwise.encoders.vocabulary import Tokens, is_word, read_vocabulary
from rungwise.language import WordVectors, load_word_vectors, word_vector_dimension

WordWeights = Literal["idf", "counts", "presence"]

_NO_WORD = 0
"""Token number of words outside the vocabulary, and of padding; its weight is 0."""


@dataclass(frozen=True)
class BagOfWordsConfig(TextSideConfig):
    """The words of a text without their order, and without training.

    A text is a vector of one number for each word of the vocabulary. With a file of word vectors it is the mean of the
    vectors of its words, as texts are read by CMAL2R. A text without any known word is the zero vector.

    Attributes:
        kind: Name of the encoder.
        min_count: Words that occur less often than this in the training captions are left out.
        most_words: Largest size of the vocabulary, made of the most frequent words of the training captions.
        weights: Weight of a word in a text: how often it stands there, times its inverse document frequency over the
            training captions (idf); how often it stands there (counts); or 1, however often (presence).
        unspaced: How scripts without spaces (Chinese, Japanese, Thai, ...) are cut: into runs between blanks and marks,
            or into characters.
        word_vectors: A file of word vectors, as GloVe or word2vec write them, gzipped or not.
        vocabulary: With word_vectors, words of the captions that the file holds, or all words of the file.
        word_dimension: Width of the word vectors, taken from the file.
        l2_normalise: Normalise vectors before the head.
    """

    kind: Literal["bag_of_words"] = "bag_of_words"
    min_count: Natural = 2
    most_words: Annotated[int, Field(ge=1, le=1 << 16)] = 2000
    weights: WordWeights = "idf"
    unspaced: Unspaced = "runs"
    word_vectors: str | None = field(default=None, metadata=ELSEWHERE)
    vocabulary: Literal["captions", "file"] = "captions"
    word_dimension: Size | None = None
    l2_normalise: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.word_vectors is None and (self.vocabulary, self.word_dimension) != ("captions", None):
            asked = "word_dimension" if self.word_dimension is not None else f"vocabulary: {self.vocabulary}"
            raise UserError(f"text.{asked} needs a file of word vectors; set text.word_vectors")

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """A width beside a file that has its own, and what chooses words where the file has them."""
        if self.vocabulary == "file":
            for name, usual in (("min_count", BagOfWordsConfig.min_count), ("most_words", BagOfWordsConfig.most_words)):
                if getattr(self, name) != usual:
                    yield Cancelled(
                        f"{place}.{name} {getattr(self, name)} changes nothing: {place}.vocabulary file takes all words"
                        f" of the file; leave it out, or set {place}.vocabulary to captions"
                    )
        if self.word_vectors is not None and self.word_dimension is not None:
            yield Cancelled(
                f"{place}.word_dimension {self.word_dimension} changes nothing: {place}.word_vectors"
                f" {self.word_vectors} has a width of its own; leave it out"
            )

    @property
    def frozen(self) -> bool:
        """True: nothing is trained."""
        return True

    def of(self, texts: Sequence[str] | FeatureRows) -> BagOfWordsConfig:
        """The configuration with the width of the file of word vectors, if there is one."""
        require_words(texts)
        if self.word_vectors is None:
            return self
        return replace(self, word_dimension=word_vector_dimension(Path(self.word_vectors)))

    def build(self, texts: Sequence[str] | FeatureRows, dimension: int = 0) -> BagOfWords:
        """A new encoder whose words and weights come from the training captions ``texts``; ``dimension`` is not used.

        Raises:
            UserError: If no word is left, or the file of word vectors cannot be read or has none of the words.
        """
        texts = require_words(texts)
        learned = learn_vocabulary(texts, self.min_count, unspaced=self.unspaced)
        words = _words_of(learned)[: self.most_words]
        if not words:
            raise UserError(
                f"no word stands {self.min_count} times in the {len(texts):,} training captions; lower text.min_count"
            )
        if self.word_vectors is None:
            return self._weighed(self._encoder(words), texts)
        vectors = load_word_vectors(self.word_vectors, words if self.vocabulary == "captions" else None)
        coverage = covered(words, vectors)
        if self.vocabulary == "file":
            words = _words_of(with_words(learned, vectors.row))
        encoder = self._encoder([word for word in words if word in vectors.row], vectors)
        encoder.coverage = coverage
        return self._weighed(encoder, texts)

    def restore(self, files: SavedFiles, dimension: int = 0) -> BagOfWords:
        """A saved model's encoder, without its weights; the file of word vectors is not needed.

        Raises:
            UserError: If the vocabulary cannot be read, or the width of the word vectors is missing.
        """
        where = str(files.path / TOKENIZER)
        tokenizer = read_vocabulary(files.text(TOKENIZER), where)
        if tokenizer.token_to_id(UNKNOWN) != _NO_WORD or tokenizer.get_vocab_size() < 2:
            raise UserError(f"{where}: not the vocabulary of a bag of words, which begins with {UNKNOWN}; copy it anew")
        if self.word_vectors is not None and self.word_dimension is None:
            raise UserError(f"{files.path}: model.text.word_dimension is missing in config.json; copy the folder anew")
        encoder = BagOfWords(tokenizer, self.word_dimension, once=self.weights == "presence")
        if self.word_vectors is not None:
            encoder.coverage = from_plain(WordCoverage, files.json(TEXT_ENCODER), str(files.path / TEXT_ENCODER))
        return encoder

    def _encoder(self, words: Sequence[str], vectors: WordVectors | None = None) -> BagOfWords:
        """An encoder of these words with equal weights."""
        tokenizer = word_cutter(self.unspaced)
        numbers = {word: number for number, word in enumerate((UNKNOWN, *words))}
        tokenizer.model = models.WordLevel(numbers, unk_token=UNKNOWN)
        width = None if vectors is None else vectors.dimension
        encoder = BagOfWords(tokenizer, width, once=self.weights == "presence")
        if vectors is not None and encoder.vectors is not None:
            encoder.vectors.data.copy_(torch.from_numpy(vectors.table[[vectors.row[word] for word in words]]))
        return encoder

    def _weighed(self, encoder: BagOfWords, texts: Sequence[str]) -> BagOfWords:
        """The encoder with its words' weights over the training captions."""
        if self.weights == "idf":
            holding = _texts_holding(Tokens.of(encoder.tokenise(texts)), len(encoder.importance))
            encoder.importance.data.copy_(torch.from_numpy(np.log((1 + len(texts)) / (1 + holding)) + 1))
        return encoder


class BagOfWords(WordSide):
    """Weighted counts of a text's words, or the weighted mean of their vectors.

    Args:
        tokenizer: The vocabulary, whose number 0 is every other word.
        word_dimension: Width of the word vectors; None for word counts.
        once: Whether a word counts once, however often it stands in a text.

    Attributes:
        importance: (words,) weight of each word, such as its inverse document frequency.
        vectors: (words, word_dimension) word vectors, or None.

    >>> encoder = BagOfWordsConfig(weights="counts", min_count=1).build(["a dog", "a cat"])
    >>> from rungwise.encoders.vocabulary import pad
    >>> sorted(encoder.known_words), encoder(*pad(encoder.tokenise(["A dog, a dog.", "zebra"]))).tolist()
    (['cat', 'dog'], [[2.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    """

    quick = True
    vectors: nn.Parameter | None

    def __init__(self, tokenizer: Tokenizer, word_dimension: int | None = None, *, once: bool = False) -> None:
        super().__init__(tokenizer)
        self.once = once
        words = tokenizer.get_vocab_size() - 1
        self.width = words if word_dimension is None else word_dimension
        self.importance = nn.Parameter(torch.ones(words), requires_grad=False)
        table = None if word_dimension is None else nn.Parameter(torch.zeros(words, word_dimension), False)
        self.register_parameter("vectors", table)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, width) vectors, from (n, longest) int64 tokens and (n,) int64 lengths."""
        numbers = tokens.masked_fill(~inside(lengths, tokens.shape[1], tokens.device), _NO_WORD)
        # One place more, since a batch of empty texts has none.
        numbers = F.pad(numbers, (0, 1), value=_NO_WORD)
        if self.once:
            numbers = _without_repeats(numbers)
        return (self._sums(numbers) if self.vectors is None else self._means(numbers, self.vectors)).float()

    def _sums(self, numbers: Tensor) -> Tensor:
        """(n, words) number of times that each word stands in a text, times its weight."""
        ones = torch.ones_like(numbers, dtype=self.importance.dtype)
        counts = ones.new_zeros(numbers.shape[0], 1 + len(self.importance)).scatter_add(1, numbers, ones)
        return counts[:, 1:] * self.importance

    def _means(self, numbers: Tensor, vectors: Tensor) -> Tensor:
        """(n, word_dimension) weighted mean of the vectors of a text's words."""
        rows = (numbers - 1).clamp(min=0)
        weights = self.importance[rows] * (numbers != _NO_WORD)
        # What follows the operations to export them would make a loop of a bag, and exported graphs hold none.
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            sums = torch.bmm(weights.unsqueeze(1), F.embedding(rows, vectors)).squeeze(1)
        else:
            sums = F.embedding_bag(rows, vectors, mode="sum", per_sample_weights=weights)
        # In float64 the order of the weights, and zeros among them, change no bit of their sum.
        total = weights.double().sum(dim=1, keepdim=True).to(sums.dtype)
        return sums / torch.where(total > 0, total, 1)

    def fingerprint(self) -> str:
        """Hash of vocabulary, weights, and whether repeats count."""
        return digest_of_tensors(self.state_dict(), self.identity(), f"bag of words {self.once}")


def _words_of(tokenizer: Tokenizer) -> list[str]:
    """Words of a vocabulary, the most frequent first, without punctuation and special tokens."""
    framing = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    known = tokenizer.get_vocab()
    return [word for word in sorted(known, key=known.__getitem__) if is_word(word) and word not in framing]


def _texts_holding(tokens: Tokens, words: int) -> NDArray[np.int64]:
    """(words,) number of texts that hold each word."""
    text = np.repeat(np.arange(len(tokens)), tokens.lengths)
    pairs = np.unique(text * (1 + words) + tokens.numbers)
    return np.bincount(pairs % (1 + words), minlength=1 + words)[1:]


def _without_repeats(numbers: Tensor) -> Tensor:
    """(n, longest) with each number once in a row, ascending; repeats become the number that counts nothing."""
    ordered = numbers.sort(dim=1).values
    repeated = ordered[:, 1:] == ordered[:, :-1]
    return torch.cat([ordered[:, :1], ordered[:, 1:].masked_fill(repeated, _NO_WORD)], dim=1)
