from collections.abc import Sequence

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import SearchOptions
from rungwise.index.search import reranked
from rungwise.models import PairScorer


class Lengths(PairScorer):
    """Long files fit long texts; files of one byte cannot be read."""

    fingerprint = "lengths"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def block(self, images: Sequence[bytes], captions: Sequence[str]) -> np.ndarray:
        self.asked.append(len(images))
        if any(len(one) == 1 for one in images):
            raise UserError("x.jpg: cut off")
        return np.array([[-abs(len(one) - len(text)) for text in captions] for one in images], np.float32)


def test_pictures_are_ranked_by_the_weighted_sum_of_their_scores() -> None:
    scorer = Lengths()
    done = reranked(scorer, [b"ab", b"abcdef", b"abcd"], ["abcd", "abcdef"], [1.0, -0.5])
    assert done.order == [2, 0, 1]
    assert scorer.asked == [3]
    assert done.note.startswith("reranked the first 3 by Lengths: ")
    assert done.note.endswith(" pairs/s")


def test_pictures_that_cannot_be_scored_come_last_as_they_stood() -> None:
    done = reranked(Lengths(), [b"a", None, b"ab", b"abcd", b"b"], ["abcd"], [1.0])
    assert done.order == [3, 2, 0, 1, 4]
    assert "the first 2 by" in done.note
    assert done.note.endswith("; 3 without a file that can be read stand after them")


class OfRows(Lengths):
    """Rows of features stand for its pictures, or for its texts."""

    def __init__(self, pictures: bool, words: bool) -> None:
        super().__init__()
        self.reads = pictures, words

    @property
    def reads_pictures(self) -> bool:
        return self.reads[0]

    @property
    def reads_words(self) -> bool:
        return self.reads[1]


def test_a_model_that_reads_no_pictures_or_no_words_is_no_reranker() -> None:
    for reads, what in (((False, True), "pictures"), ((True, False), "words")):
        with pytest.raises(UserError, match=f"'OfRows', was trained on .* reads no {what}; rerank by one") as caught:
            SearchOptions(rerank=OfRows(*reads))
        assert "\n" not in str(caught.value)
    assert SearchOptions(rerank=OfRows(True, True)).rerank is not None
