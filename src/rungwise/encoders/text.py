"""Text side: a vocabulary learned from captions, and a GRU whose last state is the sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn

from rungwise.core.configuration import STRICT, check_size
from rungwise.core.errors import UserError

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<start>", "<end>"


@dataclass(frozen=True)
class TextConfig:
    """The caption encoder of VSE++ (Faghri et al. 2018, section 3).

    Attributes:
        word_dimension: Width of the word vectors.
        min_count: Words that the training captions hold less often become <unk>.
    """

    __pydantic_config__ = STRICT

    word_dimension: int = 300
    min_count: int = 4

    def __post_init__(self) -> None:
        check_size("text.word_dimension", self.word_dimension)
        if self.min_count < 0:
            raise UserError(f"text.min_count must not be negative, got {self.min_count}")


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


def pad(tokens: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Batch token lists.

    Returns:
        (n, longest) int64 tokens, padded with 0 on the right, and (n,) int64 lengths.

    >>> pad([[2, 7, 3], [2, 3]])
    (tensor([[2, 7, 3],
            [2, 3, 0]]), tensor([3, 2]))
    """
    lengths = torch.tensor([len(one) for one in tokens])
    padded = torch.zeros(len(tokens), int(lengths.max()), dtype=torch.int64)
    for row, one in zip(padded, tokens, strict=True):
        row[: len(one)] = torch.tensor(one)
    return padded, lengths


class GRUEncoder(nn.Module):
    """Word vectors, one GRU layer, its state after the last token.

    Batches are padded, not packed: with captions of similar length in a batch that is faster on CPUs.

    >>> GRUEncoder(words=10, word_dimension=4, dimension=6)(*pad([[2, 7, 3], [2, 3]])).shape
    torch.Size([2, 6])
    """

    def __init__(self, words: int, word_dimension: int, dimension: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, word_dimension)
        self.recurrent = nn.GRU(word_dimension, dimension, batch_first=True)
        nn.init.uniform_(self.words.weight, -0.1, 0.1)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest) int64 and (n,) int64 to (n, dimension)."""
        states, _ = self.recurrent(self.words(tokens))
        last = (lengths - 1).to(states.device).view(-1, 1, 1).expand(-1, 1, states.shape[2])
        return torch.as_tensor(states.gather(1, last).squeeze(1))
