from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rungwise.encoders.texts import GRUEncoder, Prefixes, learn_vocabulary
from rungwise.encoders.texts import _prefix_gru as module
from rungwise.encoders.texts._prefix_gru import prefix_states
from rungwise.encoders.vocabulary import pad

SEQUENCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=6)
WORDS = "one two three four five six seven"


def prefixes_of(sequences: list[list[int]]) -> Prefixes:
    padded, lengths = pad(sequences, number=3)  # what fills a row may be an element of another
    return Prefixes.of(padded.numpy(), lengths.numpy())


@given(SEQUENCES)
def test_each_distinct_prefix_has_one_row_of_its_own(sequences: list[list[int]]) -> None:
    found = prefixes_of(sequences)
    rows = {
        tuple(one[: end + 1]): int(found.places[number, end])
        for number, one in enumerate(sequences)
        for end in range(len(one))
    }
    assert sorted(rows.values()) == list(range(len(found)))
    for prefix, row in rows.items():
        level = len(prefix) - 1
        assert found.starts[level] <= row < found.starts[level + 1]
        assert int(found.elements[found.element[row]]) == prefix[-1]
        if level:
            within, parents = row - found.starts[level], found.parents[level]
            parent = within if parents is None else int(parents[within])
            assert parent < found.parent_counts[level]
            assert found.starts[level - 1] + parent == rows[prefix[:-1]]


def gru(x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Tensor:
    """The equations of torch's documentation, component by component."""
    width = w_hh.shape[1]
    state = torch.zeros(width)
    for one in x:
        after = torch.zeros(width)
        for at in range(width):
            given_, added = (
                [w[gate * width + at] @ value + b[gate * width + at] for gate in range(3)]
                for w, value, b in ((w_ih, one, b_ih), (w_hh, state, b_hh))
            )
            reset, update = torch.sigmoid(given_[0] + added[0]), torch.sigmoid(given_[1] + added[1])
            new = torch.tanh(given_[2] + reset * added[2])
            after[at] = (1 - update) * new + update * state[at]
        state = after
    return state


@settings(max_examples=25)
@given(SEQUENCES)
def test_states_are_those_of_the_equations(sequences: list[list[int]]) -> None:
    torch.manual_seed(0)
    table, weights = torch.randn(4, 2), [torch.randn(9, 2), torch.randn(9, 3), torch.randn(9), torch.randn(9)]
    found = prefixes_of(sequences)
    states = prefix_states(table[found.elements], found.element, weights, found)
    for number, one in enumerate(sequences):
        torch.testing.assert_close(states[found.places[number, len(one) - 1]], gru(table[one], *weights))


def both_ways(
    options: dict[str, Any], captions: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> list[list[Tensor]]:
    """Vectors and all slopes, by prefixes and by torch's network."""
    torch.manual_seed(0)
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7, **options)
    upstream = torch.randn(len(captions), 7)
    found = []
    for by_prefixes in (True, False):
        if not by_prefixes:
            monkeypatch.setattr(GRUEncoder, "_by_prefixes", None)
            monkeypatch.setattr(GRUEncoder, "_reads_prefixes", lambda self, tokens: False)
        encoder.zero_grad()
        vectors = encoder(*pad(captions))
        vectors.backward(upstream)
        found.append([vectors.detach(), *(one.grad.clone() for one in encoder.parameters())])  # type: ignore[union-attr]
    return found


CAPTIONS = [[2, 5, 6, 3], [2, 3], [2, 9, 8, 7, 6, 5, 3], [2, 5, 6, 3], [2, 5, 6, 6, 3], [2, 5, 3], [2, 9, 8, 3]]


@pytest.mark.parametrize("directions", ["one", "both"])
@pytest.mark.parametrize("pool", ["last", "mean", "max"])
@pytest.mark.parametrize("layers", [1, 2])
def test_vectors_and_slopes_are_those_of_torch(
    directions: str, pool: str, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = both_ways({"directions": directions, "pool": pool, "layers": layers}, CAPTIONS, monkeypatch)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_in_bfloat16_slopes_are_as_near_as_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    captions = [torch.randint(4, 11, (length,)).tolist() for length in range(2, 30)]
    exact, _ = both_ways({}, captions, monkeypatch)
    monkeypatch.undo()
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = both_ways({}, captions, monkeypatch)
    for right, one, other in zip(exact, ours, theirs, strict=True):
        assert one.dtype == torch.float32
        assert (one - right).norm() < 1.5 * (other.float() - right).norm() + 1e-3 * right.norm()


def assert_same_bits(slopes: list[list[Tensor | None]]) -> None:
    for one, other in zip(*slopes, strict=True):
        assert one is not None
        assert torch.equal(one, torch.as_tensor(other))


def test_the_same_batch_gives_the_same_bits() -> None:
    torch.manual_seed(0)
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=16, width=32)
    captions = [torch.randint(4, 11, (int(length),)).tolist() for length in np.arange(1, 65) % 9 + 1]
    slopes = []
    for _ in range(2):
        encoder.zero_grad()
        encoder(*pad(captions)).square().sum().backward()
        slopes.append([one.grad for one in encoder.parameters()])
    assert_same_bits(slopes)


def test_packed_weights_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    weight, bias = (torch.randn(*shape).bfloat16() for shape in ((96, 32), (96,)))
    for count in (1, 2, 7, 33, 128):
        rows = torch.randn(count, 32).bfloat16()
        found = module._products_with(weight, bias)(rows)
        assert torch.equal(found, torch.nn.functional.linear(rows, weight, bias))
    monkeypatch.setattr(module, "_packs", lambda: False)
    assert torch.equal(module._products_with(weight, bias)(rows), found)


@pytest.mark.parametrize("at_once", [1, 3, 256])
def test_slopes_do_not_depend_on_how_many_are_computed_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=16, width=32)
    slopes = []
    for rows in (256, at_once):
        monkeypatch.setattr(module, "_ROWS", rows)
        encoder.zero_grad()
        encoder(*pad(CAPTIONS)).square().sum().backward()
        slopes.append([one.grad for one in encoder.parameters()])
    assert_same_bits(slopes)


def test_without_gradients_nothing_is_kept() -> None:
    encoder = GRUEncoder(learn_vocabulary([WORDS], 1), word_dimension=5, width=7)
    with torch.inference_mode():
        assert not encoder(*pad(CAPTIONS)).requires_grad
    encoder.requires_grad_(False)
    assert encoder(*pad(CAPTIONS)).grad_fn is None
