"""Also tests rungwise.similarity."""

import dataclasses

import numpy as np
import pytest
import torch
import yaml

from rungwise.core import UserError, dump_yaml, from_plain
from rungwise.similarity import (
    AnySimilarity,
    Cosine,
    Inner,
    Order,
    ShiftedCosine,
    Similarity,
    cosine,
    inner,
    order,
    shifted_cosine,
)

FUNCTIONS = {
    Cosine(): cosine,
    Inner(): inner,
    ShiftedCosine(): shifted_cosine,
    Order(): lambda a, b: order(*(v / v.norm(dim=1, keepdim=True) for v in (a, b))),
    Order(root=True): lambda a, b: order(*(v / v.norm(dim=1, keepdim=True) for v in (a, b)), root=True),
    Order(absolute=True): lambda a, b: order(*((v / v.norm(dim=1, keepdim=True)).abs() for v in (a, b))),
}


@pytest.fixture
def vectors() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(5, 7, generator=draw), torch.randn(4, 7, generator=draw)


@pytest.mark.parametrize("similarity", FUNCTIONS, ids=repr)
def test_tensor_form_is_the_function_and_array_form_is_the_tensor_form(similarity, vectors) -> None:
    images, texts = vectors
    wanted = FUNCTIONS[similarity](images, texts)
    torch.testing.assert_close(similarity(images, texts), wanted)
    prepared = similarity.images(images), similarity.texts(texts)
    torch.testing.assert_close(similarity.block(*prepared), wanted)
    array = similarity.array(*(one.numpy() for one in prepared))
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, wanted.numpy(), atol=1e-6)


@pytest.mark.parametrize("similarity", FUNCTIONS, ids=repr)
def test_preparing_twice_changes_nothing(similarity, vectors) -> None:
    for prepare, one in zip((similarity.images, similarity.texts), vectors, strict=True):
        torch.testing.assert_close(prepare(prepare(one)), prepare(one))


@pytest.mark.parametrize("similarity", [one for one in FUNCTIONS if one.metric], ids=repr)
def test_an_index_that_compares_by_the_metric_finds_the_similarity(similarity, vectors) -> None:
    images, texts = similarity.images(vectors[0]), similarity.texts(vectors[1])
    by_metric = {"cosine": cosine, "inner": lambda a, b: a @ b.T}[similarity.metric](images, texts)
    np.testing.assert_allclose(similarity.of_metric(by_metric.numpy()), similarity.block(images, texts), atol=1e-6)


@dataclasses.dataclass
class Model:
    similarity: AnySimilarity = dataclasses.field(default_factory=Cosine)


@pytest.mark.parametrize(
    ("values", "similarity"),
    [
        ({}, Cosine()),
        ({"similarity": "order"}, Order()),
        ({"similarity": {"kind": "order", "root": True}}, Order(root=True)),
        ({"similarity": "shifted_cosine"}, ShiftedCosine()),
    ],
)
def test_a_configuration_names_it(values, similarity) -> None:
    model = from_plain(Model, values, "model.yaml")
    assert model.similarity == similarity
    assert from_plain(Model, yaml.safe_load(dump_yaml(model)), "again") == model


@pytest.mark.parametrize("values", ["orders", {"kind": "cosine", "root": True}, {"root": True}, 3])
def test_a_misspelt_similarity_is_refused(values) -> None:
    with pytest.raises(UserError, match=r"model.yaml: similarity"):
        from_plain(Model, {"similarity": values}, "model.yaml")


@pytest.mark.parametrize("similarity", [Cosine(), Inner(), Order(), ShiftedCosine()])
def test_memory_maps_are_compared_without_a_warning(similarity: Similarity, recwarn: pytest.WarningsRecorder) -> None:
    images, texts = np.eye(3, dtype=np.float32), np.ones((2, 3), np.float32)
    expected = similarity.array(images, texts)
    for side in (images, texts):
        side.flags.writeable = False
    torch.set_warn_always(True)
    try:
        np.testing.assert_array_equal(similarity.array(images, texts), expected)
    finally:
        torch.set_warn_always(False)
    assert not recwarn.list
