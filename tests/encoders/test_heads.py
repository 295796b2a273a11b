import pytest
import torch
from torch import nn

from rungwise.core import UserError, from_plain
from rungwise.encoders import AdapterHead, LinearHead, NoHead
from rungwise.encoders._heads import MLPHead, ResidualHead, StackHead
from rungwise.encoders.texts import GRUConfig
from rungwise.models import VSEConfig


def test_no_head_changes_nothing_and_needs_the_width_of_the_joint_space() -> None:
    rows = torch.randn(3, 4)
    assert torch.equal(NoHead().build(4, 4)(rows), rows)
    with pytest.raises(UserError, match="set dimension: 4"):
        NoHead().build(4, 5)
    with pytest.raises(UserError, match="set dimension: 4"):
        AdapterHead().build(4, 5)


def test_layers_compute_what_is_written() -> None:
    torch.manual_seed(0)
    rows = torch.randn(3, 4)
    head = MLPHead(hidden=(6, 5), activation="tanh").build(4, 2).eval()
    first, second, third = (one for one in head.modules() if isinstance(one, torch.nn.Linear))
    by_hand = torch.tanh(torch.tanh(rows @ first.weight.T + first.bias) @ second.weight.T + second.bias)
    torch.testing.assert_close(head(rows), by_hand @ third.weight.T + third.bias)
    both = ResidualHead(hidden=6, activation="relu", dropout=0.0).build(4, 2)
    linear, hidden, last = (one for one in both.modules() if isinstance(one, torch.nn.Linear))
    by_hand = rows @ linear.weight.T + torch.relu(rows @ hidden.weight.T) @ last.weight.T
    torch.testing.assert_close(both(rows), by_hand)


def test_an_adapter_begins_as_nothing_and_learns() -> None:
    head = AdapterHead(hidden=8, dropout=0.0).build(4, 4)
    rows = torch.randn(3, 4)
    torch.testing.assert_close(head(rows), rows)
    head(rows).square().sum().backward()
    assert any(float(one.grad.abs().max()) > 0 for one in head.parameters() if one.grad is not None)


@pytest.mark.parametrize("head", [MLPHead(dropout=0.5), ResidualHead(dropout=0.5)])
def test_dropout_is_of_training_alone(head: MLPHead | ResidualHead) -> None:
    layers, rows = head.build(4, 3), torch.randn(2, 4)
    assert not torch.equal(layers(rows), layers(rows))
    layers.eval()
    assert torch.equal(layers(rows), layers(rows))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "mlp", "hidden": []}, "hidden: the number of its values must be at least 1"),
        ({"kind": "mlp", "hidden": [0]}, r"hidden\.0: must be at least 1"),
        ({"kind": "residual", "dropout": 1.0}, "dropout: must be below 1"),
        ({"kind": "adapter", "hidden": -1}, "hidden: must be at least 1"),
        ({"kind": "cubic"}, "cubic"),
    ],
)
def test_mistakes_have_one_line(values: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_plain(VSEConfig, {"image_head": values}, "run.yaml")


def test_a_name_alone_means_its_defaults() -> None:
    read = from_plain(VSEConfig, {"image_head": "residual", "text_head": {"kind": "mlp", "hidden": [7]}}, "run.yaml")
    assert read == VSEConfig(image_head=ResidualHead(), text_head=MLPHead(hidden=(7,)), text=GRUConfig())
    assert VSEConfig().image_head == LinearHead()


def test_a_stack_has_a_width_of_its_own_between_its_heads() -> None:
    stack = StackHead(of=(LinearHead(), MLPHead(hidden=(6,))), width=5).build(4, 3)
    assert [one.out_features for one in stack.modules() if isinstance(one, nn.Linear)] == [5, 6, 3]
    assert [one.out_features for one in StackHead(of=(LinearHead(), LinearHead())).build(4, 3)] == [3, 3]
    with pytest.raises(UserError, match="width: must be at least 1"):
        StackHead(width=0)
