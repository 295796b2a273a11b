"""The consensus level in float64 against nested loops over scalars, which give the gradients too."""

import pytest
import torch

from rungwise.models.regions.consensus._levels import (
    ConceptAttention,
    ConceptGraph,
    concept_divergence,
    consensus_vectors,
    with_labels,
)
from tests.models.regions.consensus_loops import (
    compare,
    divergence_loops,
    graph_loops,
    label_loops,
    mixed_up,
    score_loops,
    stacked,
)
from tests.models.regions.loops import row, softmax, unit, weighted


@pytest.mark.parametrize(("concepts", "width", "dimension"), [(4, 3, 6), (2, 1, 5), (3, 5, 2), (1, 2, 3)])
def test_graph_convolution(concepts, width, dimension):
    graph = mixed_up(ConceptGraph(concepts, width, dimension))
    with torch.no_grad():
        graph.nodes.weight.sub_(0.7)  # of both signs, which the bend tells apart
        graph.first.sub_(0.7)
        graph.second.sub_(0.7)
    compare(graph(), stacked(graph_loops(graph)), graph.nodes.weight, graph.first, graph.second)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("instances", "concepts", "dimension"), [(3, 4, 5), (2, 2, 3), (4, 3, 1)])
def test_scores_of_concepts(instances, concepts, dimension, training):
    module = mixed_up(ConceptAttention(dimension, smoothing=3.0)).train(training)
    vectors = torch.randn(instances, dimension, dtype=torch.float64, requires_grad=True)
    nodes = torch.randn(concepts, dimension, dtype=torch.float64, requires_grad=True)
    found = module(vectors, nodes).exp()
    expected = score_loops(module, [row(one) for one in vectors], [row(one) for one in nodes], training)
    weights = [weight for name, weight in module.named_parameters() if name != "common.bias"]
    compare(found, stacked(expected), vectors, nodes, *weights)


def test_one_picture_is_scored_in_evaluation_as_among_others():
    module = mixed_up(ConceptAttention(4, smoothing=10.0)).eval()
    vectors, nodes = torch.randn(5, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(module(vectors[2:3], nodes), module(vectors, nodes)[2:3], rtol=1e-12, atol=1e-12)
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(module(vectors, nodes[order]), module(vectors, nodes)[:, order], rtol=1e-12, atol=1e-12)


def test_one_picture_is_trained_by_the_statistics_that_were_kept():
    module = mixed_up(ConceptAttention(4, smoothing=10.0)).train()
    module.concept_norm.eval()
    vectors, nodes = torch.randn(1, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(module(vectors, nodes), module.eval()(vectors, nodes), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_labels_are_mixed_in(share):
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1.0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=torch.float64)
    found = with_labels(logits.log_softmax(dim=1), labels, share, 10.0)
    expected = stacked(label_loops([softmax(row(one)) for one in logits], labels, share, 10.0))
    if share < 1:
        compare(found, expected, logits)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(3, dtype=torch.float64))


def test_consensus_vectors():
    weights = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    concepts = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    nodes = [row(one) for one in concepts]
    expected = stacked([unit(weighted(row(one), nodes)) for one in weights])
    compare(consensus_vectors(weights, concepts), expected, weights, concepts)


def test_divergence():
    first, second = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    found = concept_divergence(first.log_softmax(dim=1), second.softmax(dim=1))
    expected = divergence_loops([softmax(row(one)) for one in first], [softmax(row(one)) for one in second])
    compare(found, expected, first, second)
    other = concept_divergence(second.log_softmax(dim=1), first.softmax(dim=1))
    assert not torch.isclose(found, other), "the direction must count"
    same = concept_divergence(first.log_softmax(dim=1), first.softmax(dim=1))
    assert same.item() == pytest.approx(0, abs=1e-12)


def test_scores_that_round_to_nothing_leave_values_and_gradients_finite():
    logits = torch.tensor([[0.0, -400.0], [300.0, 0.0]], requires_grad=True)
    labels = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    scores = logits.log_softmax(dim=1)
    value = concept_divergence(scores, with_labels(scores, labels, 0.35, 200.0))
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_start_vectors_of_a_file_are_not_trained():
    graph = ConceptGraph(3, 4, 6, trained=False)
    graph().sum().backward()
    assert graph.nodes.weight.grad is None
    assert graph.first.grad is not None
    assert "adjacency" not in dict(graph.named_parameters())
