"""Text side: a vocabulary of words, and a GRU over their vectors (Faghri et al. 2018, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rungwise.core import ELSEWHERE, BelowOne, Cancelled, Natural, Size, UserError, from_plain
from rungwise.core.formats import digest_of_tensors
from rungwise.data.files import FeatureRows
from rungwise.encoders._sides import TEXT_ENCODER, TOKENIZER, SavedFiles, TextSideConfig, require_words
from rungwise.encoders.texts._pooling import last_of, max_of, mean_of
from rungwise.encoders.texts._prefix_gru import Prefixes, prefix_states
from rungwise.encoders.texts._word_side import WordSide
from rungwise.encoders.texts._word_table import Missing, WordCoverage, initialise
from rungwise.encoders.vocabulary import UNSPACED_LETTER, cutting, pieces, read_vocabulary, tokenise, too_long
from rungwise.language import load_word_vectors, word_vector_dimension

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<start>", "<end>"
_SPECIAL = (PAD, UNKNOWN, START, END)
_POOLS = {"last": last_of, "mean": mean_of, "max": max_of}

Unspaced = Literal["runs", "characters"]


@dataclass(frozen=True)
class GRUConfig(TextSideConfig):
    """The caption encoder of VSE++ (Faghri et al. 2018, section 3), and its variants.

    Attributes:
        kind: Name of the encoder.
        word_dimension: Width of the word vectors; with word_vectors, that of the file.
        min_count: Words that occur less often than this in the training captions become <unk>.
        directions: one reads from left to right; both averages that with reading from right to left (SCAN, Lee et al.
            2018, Eq. 9).
        pool: How states are pooled: the last (of each direction its own), the mean, or the maximum of each component.
        layers: Number of layers of the GRU.
        context_length: Tokens of a caption that are read, <start> and <end> included; None for all.
        word_vectors: A file of word vectors to start from, as GloVe or word2vec write them, gzipped or not.
        train_words: Train word vectors with the rest; otherwise they stay as they start.
        missing: How the vectors of words start that the file lacks: uniform in +-0.1 as without a file, or the mean of
            those found.
        vocabulary: Source of the vocabulary: words of the training captions, of the file, or of both.
        unspaced: How scripts without spaces (Chinese, Japanese, Thai, ...) are cut: into runs between blanks and marks,
            or into characters.
        frozen: Keep the encoder fixed, such as that of a trained model under new heads; vectors are cached.
        width: Width of the states; None for that of the joint space.
        word_dropout: Share of the numbers of word vectors that training sets to 0 (SGRAF's program takes 0.4).
    """

    word_dimension: Size = 300
    min_count: Natural = 4
    kind: Literal["gru"] = "gru"
    directions: Literal["one", "both"] = "one"
    pool: Literal["last", "mean", "max"] = "last"
    layers: Annotated[int, Field(ge=1, le=16)] = 1
    context_length: Annotated[int, Field(ge=3)] | None = None
    word_vectors: str | None = field(default=None, metadata=ELSEWHERE)
    train_words: bool = field(default=True, metadata=ELSEWHERE)
    missing: Missing = field(default="uniform", metadata=ELSEWHERE)
    vocabulary: Literal["captions", "file", "both"] = field(default="captions", metadata=ELSEWHERE)
    unspaced: Unspaced = field(default="runs", metadata=ELSEWHERE)
    frozen: bool = field(default=False, metadata=ELSEWHERE)
    width: Size | None = None
    word_dropout: BelowOne = field(default=0.0, metadata=ELSEWHERE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.word_vectors is None and (self.vocabulary != "captions" or not self.train_words):
            asked = "train_words: false" if not self.train_words else f"vocabulary: {self.vocabulary}"
            raise UserError(f"text.{asked} needs a file of word vectors; set text.word_vectors")

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Options of word vectors without a file of them, and of captions where words come from the file."""
        if self.word_vectors is None and self.missing != GRUConfig.missing:
            yield Cancelled(
                f"{place}.missing {self.missing} changes nothing without {place}.word_vectors, a file that may lack"
                " words; leave it out, or name a file"
            )
        if self.vocabulary == "file" and self.min_count != GRUConfig.min_count:
            yield Cancelled(
                f"{place}.min_count {self.min_count} changes nothing: {place}.vocabulary file takes no words from"
                f" captions; leave it out, or set {place}.vocabulary to both"
            )
        if self.word_vectors is not None and self.word_dimension != GRUConfig.word_dimension:
            yield Cancelled(
                f"{place}.word_dimension {self.word_dimension} changes nothing: {place}.word_vectors"
                f" {self.word_vectors} has a width of its own; leave it out"
            )

    @property
    def l2_normalise(self) -> bool:
        """False: states reach the head unnormalised."""
        return False

    def of(self, texts: Sequence[str] | FeatureRows) -> GRUConfig:
        """The configuration with the width of the file of word vectors, if there is one."""
        require_words(texts)
        if self.word_vectors is None:
            return self
        return replace(self, word_dimension=word_vector_dimension(Path(self.word_vectors)))

    def build(self, texts: Sequence[str] | FeatureRows, dimension: int) -> GRUEncoder:
        """A new encoder; its vocabulary comes from these texts, from the file of word vectors, or from both.

        Args:
            texts: Captions of the training split.
            dimension: Width of the joint space, and of the GRU's states unless :attr:`width` is set.

        Raises:
            UserError: If the file of word vectors cannot be read or has none of the words.
        """
        texts = require_words(texts)
        if self.word_vectors is None:
            return self._encoder(learn_vocabulary(texts, self.min_count, unspaced=self.unspaced), dimension)
        captions = [] if self.vocabulary == "file" else texts
        learned = learn_vocabulary(captions, self.min_count, unspaced=self.unspaced)
        if self.vocabulary == "captions":
            vectors = load_word_vectors(self.word_vectors, learned.get_vocab())
        else:
            vectors = load_word_vectors(self.word_vectors)
            learned = with_words(learned, vectors.row)
        encoder = self._encoder(learned, dimension)
        encoder.coverage = initialise(encoder.words, learned.get_vocab(), vectors, self.missing, _SPECIAL)
        return encoder

    def restore(self, files: SavedFiles, dimension: int) -> GRUEncoder:
        """A saved model's encoder, without its weights."""
        encoder = self._encoder(read_vocabulary(files.text(TOKENIZER), str(files.path / TOKENIZER)), dimension)
        if self.word_vectors is not None:
            encoder.coverage = from_plain(WordCoverage, files.json(TEXT_ENCODER), str(files.path / TEXT_ENCODER))
        return encoder

    def _encoder(self, vocabulary: Tokenizer, dimension: int) -> GRUEncoder:
        encoder = GRUEncoder(
            vocabulary,
            self.word_dimension,
            self.width or dimension,
            directions=self.directions,
            pool=self.pool,
            layers=self.layers,
            context_length=self.context_length,
            word_dropout=self.word_dropout,
        )
        encoder.words.requires_grad_(self.train_words)
        return encoder


def learn_vocabulary(captions: Iterable[str], min_count: int = 4, *, unspaced: Unspaced = "runs") -> Tokenizer:
    """A word tokenizer that knows the words which occur at least ``min_count`` times in ``captions``.

    Words and punctuation marks are tokens, lower-cased, in any script; ``<start>`` and ``<end>`` frame each caption.

    >>> vocabulary = learn_vocabulary(["A dog.", "Ein Hund über a dog"], min_count=2)
    >>> vocabulary.encode("A dog barks").tokens
    ['<start>', 'a', 'dog', '<unk>', '<end>']
    >>> learn_vocabulary(["一隻狗 runs"], 1, unspaced="characters").encode("一隻狗 runs").tokens
    ['<start>', '一', '隻', '狗', 'runs', '<end>']
    """
    tokenizer = word_cutter(unspaced)
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31 - 1, min_frequency=min_count, special_tokens=list(_SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(captions, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, _SPECIAL.index(START)), (END, _SPECIAL.index(END))]
    )
    return tokenizer


def word_cutter(unspaced: Unspaced = "runs") -> Tokenizer:
    """A tokenizer that cuts texts into lower-cased words and punctuation marks, with an empty vocabulary."""
    tokenizer = Tokenizer(models.WordLevel({UNKNOWN: 0}, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if unspaced == "characters":
        letters = pre_tokenizers.Split(Regex(UNSPACED_LETTER), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([letters, pre_tokenizers.Whitespace()])
    return tokenizer


def with_words(tokenizer: Tokenizer, words: Iterable[str]) -> Tokenizer:
    """Append words to a vocabulary; words that no text can be cut into are left out.

    >>> with_words(learn_vocabulary(["a dog"], 1), ["cat", "dog", "Capital", "two words"]).encode("dog cat").ids
    [2, 5, 6, 3]
    """
    cutter, known = tokenizer.pre_tokenizer, tokenizer.get_vocab()
    for word in words:
        cut = cutter.pre_tokenize_str(tokenizer.normalizer.normalize_str(word))
        if len(cut) == 1 and cut[0][0] == word:
            known.setdefault(word, len(known))
    tokenizer.model = models.WordLevel(known, unk_token=UNKNOWN)
    return tokenizer


class GRUEncoder(WordSide):
    """Word vectors, a GRU, and its states pooled.

    On a processor, captions are read by :mod:`rungwise.encoders.texts._prefix_gru`, which computes common prefixes of a
    batch once, and no padding. Elsewhere, and where layers above the first read in both directions, torch's network
    reads them: padded in one direction, and packed in two, so that the way back begins at the last token.

    Args:
        tokenizer: The vocabulary.
        word_dimension: Width of the word vectors.
        width: Width of the states.
        directions: Whether states of one direction are read, or the average of both.
        pool: How the states of the last layer are pooled.
        layers: Number of layers.
        context_length: Tokens that are read; None for all.
        word_dropout: Dropout of word vectors in training.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        word_dimension: int,
        width: int,
        *,
        directions: Literal["one", "both"] = "one",
        pool: Literal["last", "mean", "max"] = "last",
        layers: int = 1,
        context_length: int | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(tokenizer)
        self.width = width
        self.longest = context_length
        self.pool = pool
        self._cutter = cutting(tokenizer, context_length)
        self.words = nn.Embedding(tokenizer.get_vocab_size(), word_dimension)
        self.recurrent = nn.GRU(
            word_dimension, width, num_layers=layers, batch_first=True, bidirectional=directions == "both"
        )
        nn.init.uniform_(self.words.weight, -0.1, 0.1)
        self.dropout = nn.Dropout(word_dropout)

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, cut to the context length."""
        return tokenise(self._cutter, texts)

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text, spelled as in the text."""
        return pieces(self._cutter, text)

    def too_long(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Positions of the texts that are cut, ascending."""
        return too_long(self._cutter, texts)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, width) vectors, from (n, longest) int64 tokens and (n,) int64 lengths."""
        if self.pool != "last":
            return _POOLS[self.pool](self.states(tokens, lengths), lengths)
        if self._reads_prefixes(tokens):
            last = [
                states.index_select(0, last_of(prefixes.places.unsqueeze(2), lengths).squeeze(1))
                for states, prefixes in self._by_prefixes(tokens, lengths)
            ]
            return _mean(last)
        onward, *back = self._by_network(tokens, lengths)
        return _mean([last_of(onward, lengths), *(states[:, 0] for states in back)])

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest, width) states, averaged over the directions."""
        if not self._reads_prefixes(tokens):
            return _mean(self._by_network(tokens, lengths))
        found = []
        for direction, (states, prefixes) in enumerate(self._by_prefixes(tokens, lengths)):
            places = _turned(prefixes.places, lengths) if direction else prefixes.places
            found.append(F.embedding(places, states))
        return _mean(found)

    def _reads_prefixes(self, tokens: Tensor) -> bool:
        """Whether a caption's states depend on its prefixes alone, so that reading each prefix once is faster."""
        # What follows the network's operations, such as to export it, is to see them as torch has them.
        followed = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[attr-defined, no-untyped-call]
        one_way = self.recurrent.num_layers == 1 or not self.recurrent.bidirectional
        drops = self.training and self.dropout.p > 0  # of a word, other numbers in each caption
        return len(tokens) > 1 and tokens.device.type == "cpu" and one_way and not followed and not drops

    def _by_network(self, tokens: Tensor, lengths: Tensor) -> Sequence[Tensor]:
        """(n, longest, width) states of each direction."""
        words = self.dropout(self.words(tokens))
        if not self.recurrent.bidirectional:
            return [self.recurrent(words)[0]]
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_states, _ = self.recurrent(packed)
        both, _ = pad_packed_sequence(packed_states, batch_first=True, total_length=tokens.shape[1])
        return both.chunk(2, dim=2)

    def _by_prefixes(self, tokens: Tensor, lengths: Tensor) -> Iterator[tuple[Tensor, Prefixes]]:
        """The states of each direction after every prefix, with the prefixes in that direction's order."""
        directions = 1 + self.recurrent.bidirectional
        for direction in range(directions):
            read = _turned(tokens, lengths) if direction else tokens
            prefixes = Prefixes.of(read.numpy(), lengths.numpy())
            layers = self.recurrent.all_weights[direction::directions]
            states = prefix_states(self.words(prefixes.elements), prefixes.element, layers[0], prefixes)
            for weights in layers[1:]:
                states = prefix_states(states, None, weights, prefixes)
            yield states, prefixes

    def fingerprint(self) -> str:
        """Hash of vocabulary, weights, pooling and context length."""
        return digest_of_tensors(self.state_dict(), self.identity(), f"{self.pool} {self.longest}")


def _mean(of_directions: Sequence[Tensor]) -> Tensor:
    return of_directions[0] if len(of_directions) == 1 else torch.stack(list(of_directions)).mean(dim=0)


def _turned(rows: Tensor, lengths: Tensor) -> Tensor:
    """(n, longest) with the first ``lengths`` of each row in reverse order."""
    places = (lengths.unsqueeze(1) - 1 - torch.arange(rows.shape[1])).clamp(min=0)
    return rows.gather(1, places)
