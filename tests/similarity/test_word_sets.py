import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.similarity import WordSets

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def sets_of(lengths: list[int]) -> tuple[torch.Tensor, WordSets]:
    padded = torch.randn(len(lengths), max(lengths) + 1, 3, generator=torch.Generator().manual_seed(1))
    return padded, WordSets.of(padded, lengths)


@given(LENGTHS)
def test_every_text_comes_once_with_its_own_words_and_texts_of_one_length_together(lengths: list[int]) -> None:
    padded, sets = sets_of(lengths)
    seen = []
    for which, words in sets.by_length():
        for text, own in zip(which.tolist(), words, strict=True):
            assert own.tolist() == padded[text, : lengths[text]].tolist()
            seen.append(text)
    assert sorted(seen) == list(range(len(lengths)))
    assert [lengths[text] for text in seen] == sorted(lengths)
    assert len(list(sets.by_length())) == len(set(lengths))


@given(LENGTHS, st.data())
def test_a_choice_of_texts_is_made_of_their_words(lengths: list[int], data: st.DataObject) -> None:
    padded, sets = sets_of(lengths)
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=8))
    some = sets.select(torch.tensor(chosen, dtype=torch.int64))
    assert some.lengths.tolist() == [lengths[text] for text in chosen]
    wanted = [row for text in chosen for row in padded[text, : lengths[text]].tolist()]
    assert some.words.tolist() == wanted


def test_what_stands_after_the_end_is_not_read() -> None:
    padded, sets = sets_of([2, 4, 1])
    other = padded.clone()
    for text, length in enumerate([2, 4, 1]):
        other[text, length:] = torch.nan
    assert torch.equal(WordSets.of(other, [2, 4, 1]).words, sets.words)


@pytest.mark.parametrize(
    ("shape", "lengths", "message"),
    [
        ((2, 3), [1, 1], r"words must be \(captions, W, D\)"),
        ((2, 3, 4), [1], "a length for each caption"),
        ((2, 3, 4), [1, 0], r"caption 1 \(from 0\) has 0 words; lengths lie in 1..3"),
        ((2, 3, 4), [4, 1], r"caption 0 \(from 0\) has 4 words"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(shape, lengths, message) -> None:
    with pytest.raises(UserError, match=message) as refused:
        WordSets.of(torch.zeros(shape), lengths)
    assert "\n" not in str(refused.value)


def test_device_and_precision_are_those_of_another_tensor() -> None:
    _, sets = sets_of([2, 3])
    assert sets.to(torch.zeros(1, dtype=torch.float64)).words.dtype == torch.float64
