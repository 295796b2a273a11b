"""What SGR has of its own; its values are tested in test_aligned."""

import pytest
import torch

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models.regions.alignment._sgr import SGR, GraphReasoning, SGRConfig
from tests.models.regions import loops


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("count", [2, 5])
def test_any_number_of_steps_is_that_of_nested_loops(steps, count):
    torch.manual_seed(0)
    module = GraphReasoning(4, steps).double()
    for parameter in module.parameters():
        parameter.data += torch.rand_like(parameter)
    nodes = torch.randn(2, 3, count, 4, dtype=torch.float64)
    found = module.reader()(nodes, torch.float64)
    for image in range(2):
        for caption in range(3):
            expected = loops.reasoned(module, [loops.row(one) for one in nodes[image, caption]])
            torch.testing.assert_close(found[image, caption], expected, rtol=1e-11, atol=1e-13)


def test_steps_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"^sgr\.steps: must be at least 1 \(got 0\)$"):
        SGRConfig(steps=0)


def test_it_has_as_many_parameters_as_the_authors_model():
    words = 1000
    captions = [f"word{number}" for number in range(words)]
    text = GRUConfig(directions="both", min_count=1, word_dropout=0.4)
    rows = torch.zeros(1, 36, 2048).numpy()
    with torch.device("meta"):
        model = SGR.create(SGRConfig(image=FeatureConfig(), text=text), captions, FeatureRows(rows))
    expected = (
        2048 * 1024 + 1024  # regions
        + (words + 4) * 300  # word vectors; four words stand for what is none
        + 2 * (3 * 1024 * 300 + 3 * 1024 * 1024 + 2 * 3 * 1024)  # a GRU in each direction
        + 2 * (1024 * 1024 + 1024) + (1024 + 1) + 2 * 36 + 2 * 1024  # self-attention of regions, with batch norm
        + 2 * (1024 * 1024 + 1024) + (1024 + 1)  # self-attention of words
        + 2 * (1024 * 256 + 256)  # similarity vectors of parts and wholes
        + 3 * 3 * (256 * 256 + 256)  # three steps of query, key and update
        + (256 + 1)  # score
    )  # fmt: skip
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
