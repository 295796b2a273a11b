"""Similarity vectors against nested loops, and the modes of a similarity that is made of modules."""

import pytest
import torch

from rungwise.models.regions.alignment._similarity_vectors import SMOOTHING, contexts
from tests.models.regions import loops
from tests.models.regions.aligned_models import sets, small_model


@pytest.mark.parametrize(("images", "regions", "length"), [(3, 3, 2), (2, 1, 1), (1, 4, 3)])
def test_nodes_are_those_of_nested_loops(images, regions, length):
    vectors = small_model("sgr", regions).vectors
    seen, words = sets(images, regions, [length] * 2)
    words = words[:, :length]
    found = vectors.nodes(vectors.of_images(seen), vectors.of_captions(words))
    expected = loops.similarity_nodes(vectors, seen, list(words), training=False)
    assert found.shape == (images, 2, length + 1, 4)
    for image, of_captions in enumerate(expected):
        for caption, nodes in enumerate(of_captions):
            for place, node in enumerate(nodes):
                torch.testing.assert_close(found[image, caption, place], torch.stack(node), rtol=1e-11, atol=1e-12)


def test_contexts_have_length_1_and_are_those_of_nested_loops():
    seen, words = sets(2, 3, [2, 2])
    words = words[:, :2]
    found = contexts(seen, seen @ seen.transpose(1, 2), words).view(2, 2, 2, -1)
    torch.testing.assert_close(found.norm(dim=3), torch.ones(2, 2, 2, dtype=torch.float64))
    for image in range(2):
        v = [loops.row(one) for one in seen[image]]
        for caption in range(2):
            attention = loops.attention_over_words(v, [loops.row(one) for one in words[caption]])
            for word in range(2):
                weights = loops.softmax([SMOOTHING * attention[region][word] for region in range(3)])
                expected = torch.stack(loops.unit(loops.weighted(weights, v)))
                torch.testing.assert_close(found[image, caption, word], expected, rtol=1e-11, atol=1e-12)


def test_a_similarity_keeps_the_mode_in_which_it_was_made():
    model = small_model("saf")
    made = model.comparison
    model.train()
    assert not made.vectors.training
    assert not made.compares_images
    assert model.comparison.compares_images
    assert model.comparison.vectors is model.vectors
    assert made.vectors.local.weight is model.vectors.local.weight


def test_a_block_is_counted_by_its_largest_tensor():
    assert small_model("sgr").comparison.values_of_pair(regions=3, words=7) == 7 * 5
