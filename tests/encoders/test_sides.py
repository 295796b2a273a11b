"""What sides promise is tested here by one that does the least."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, models
from torch import Tensor

from rungwise.encoders import TOKENIZER, TextSide


class Lengths(TextSide):
    """A text is its length."""

    width = 1

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        return [[len(text)] for text in texts]

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return tokens[:, :1].float()

    def identity(self) -> str:
        return ""

    def fingerprint(self) -> str:
        return "lengths"


def test_a_side_without_a_limit_cuts_nothing_and_keeps_no_files() -> None:
    side = Lengths()
    assert side.longest is None
    assert side.too_long(["a" * 10_000]).size == 0
    assert side.files() == {}
    assert torch.equal(side(torch.tensor([[3], [4]]), torch.ones(2)), torch.tensor([[3.0], [4.0]]))


def test_a_table_of_tokens_has_a_row_for_what_fills_a_batch() -> None:
    words = Tokenizer(models.WordLevel({"a": 0, "dog": 5}, unk_token="a"))

    class Words(Lengths):
        def files(self) -> dict[str, str]:
            return {TOKENIZER: words.to_str()}

    side = Words()
    assert side.token_rows == 6, "numbers may have gaps"
    side.pad_number = 8
    assert side.token_rows == 9
