"""Text side: a vocabulary learned from captions, and a GRU whose last state is the sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn

from rungwise.core.configuration import LATER, STRICT, check_size
from rungwise.core.errors import UserError
from rungwise.core.tensors import add_tensors
from rungwise.data.features import FeatureRows
from rungwise.encoders.sides import TOKENIZER, SavedFiles, TextSide
from rungwise.encoders.vocabulary import read_vocabulary

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<start>", "<end>"


@dataclass(frozen=True)
class GRUConfig:
    """The caption encoder of VSE++ (Faghri et al. 2018, section 3).

    Attributes:
        kind: Names the encoder.
        word_dimension: Width of the word vectors.
        min_count: Words that the training captions hold less often become <unk>.
    """

    __pydantic_config__ = STRICT

    word_dimension: int = 300
    min_count: int = 4
    kind: Literal["gru"] = field(default="gru", metadata=LATER)

    def __post_init__(self) -> None:
        check_size("text.word_dimension", self.word_dimension)
        if self.min_count < 0:
            raise UserError(f"text.min_count must not be negative, got {self.min_count}")

    @property
    def frozen(self) -> bool:
        """It is trained with the rest."""
        return False

    @property
    def l2_normalise(self) -> bool:
        """Its states reach the head as they are."""
        return False

    def of(self, texts: Sequence[str] | FeatureRows) -> GRUConfig:
        """As it is.

        Raises:
            UserError: If the data have rows of features in place of words.
        """
        if isinstance(texts, FeatureRows):
            raise UserError("the data have rows of features in place of texts; set model.text.kind: features")
        return self

    def build(self, texts: Sequence[str] | FeatureRows, dimension: int) -> GRUEncoder:
        """A new encoder whose vocabulary comes from these texts.

        Args:
            texts: Captions of the training split.
            dimension: Width of the joint space, which is that of the GRU's states.
        """
        assert not isinstance(texts, FeatureRows)
        return GRUEncoder(learn_vocabulary(texts, self.min_count), self.word_dimension, dimension)

    def restore(self, files: SavedFiles, dimension: int) -> GRUEncoder:
        """The encoder of a saved model, without its weights.

        Raises:
            UserError: If the vocabulary cannot be read.
        """
        vocabulary = read_vocabulary(files.text(TOKENIZER), str(files.path / TOKENIZER))
        return GRUEncoder(vocabulary, self.word_dimension, dimension)


def learn_vocabulary(captions: Iterable[str], min_count: int = 4) -> Tokenizer:
    """A word tokenizer whose vocabulary is the words of ``captions`` seen at least ``min_count`` times.

    Words and punctuation marks are tokens, lower-cased, in any script; ``<start>`` and ``<end>`` frame each caption.

    >>> vocabulary = learn_vocabulary(["A dog.", "Ein Hund über a dog"], min_count=2)
    >>> vocabulary.encode("A dog barks").tokens
    ['<start>', 'a', 'dog', '<unk>', '<end>']
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [PAD, UNKNOWN, START, END]
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31 - 1, min_frequency=min_count, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(captions, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, special.index(START)), (END, special.index(END))]
    )
    return tokenizer


def tokenise(tokenizer: Tokenizer, captions: Sequence[str]) -> list[list[int]]:
    """Token numbers of each caption."""
    return [encoding.ids for encoding in tokenizer.encode_batch(list(captions))]


def pad(tokens: Sequence[Sequence[int]], number: int = 0) -> tuple[Tensor, Tensor]:
    """Batch token lists.

    Returns:
        (n, longest) int64 tokens, padded with ``number`` on the right, and (n,) int64 lengths.

    >>> pad([[2, 7, 3], [2, 3]])
    (tensor([[2, 7, 3],
            [2, 3, 0]]), tensor([3, 2]))
    """
    lengths = torch.tensor([len(one) for one in tokens])
    padded = torch.full((len(tokens), int(lengths.max())), number, dtype=torch.int64)
    for row, one in zip(padded, tokens, strict=True):
        row[: len(one)] = torch.tensor(one)
    return padded, lengths


class GRUEncoder(TextSide):
    """Word vectors, one GRU layer, its state after the last token.

    Batches are padded, not packed: with captions of similar length in a batch that is faster on CPUs.

    Args:
        tokenizer: The vocabulary.
        word_dimension: Width of the word vectors.
        width: Of the states.

    >>> encoder = GRUEncoder(learn_vocabulary(["a dog"], 1), word_dimension=4, width=6)
    >>> encoder(*pad(encoder.tokenise(["a dog", "a"]))).shape
    torch.Size([2, 6])
    """

    def __init__(self, tokenizer: Tokenizer, word_dimension: int, width: int) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.width = width
        self.words = nn.Embedding(tokenizer.get_vocab_size(), word_dimension)
        self.recurrent = nn.GRU(word_dimension, width, batch_first=True)
        nn.init.uniform_(self.words.weight, -0.1, 0.1)

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text."""
        return tokenise(self.tokenizer, texts)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest) int64 and (n,) int64 to (n, width)."""
        states, _ = self.recurrent(self.words(tokens))
        last = (lengths - 1).to(states.device).view(-1, 1, 1).expand(-1, 1, states.shape[2])
        return torch.as_tensor(states.gather(1, last).squeeze(1))

    def identity(self) -> str:
        """The vocabulary."""
        return self.tokenizer.to_str()

    def fingerprint(self) -> str:
        """Hash of vocabulary and weights."""
        digest = hashlib.sha256(self.identity().encode())
        add_tensors(digest, self.state_dict())
        return digest.hexdigest()

    def files(self) -> Mapping[str, str]:
        """The vocabulary."""
        return {TOKENIZER: self.tokenizer.to_str(pretty=True)}
