import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.relevance.human import Labels

some_labels = st.lists(st.sampled_from("abcd"), max_size=3)


@settings(max_examples=30)
@given(st.lists(some_labels, min_size=1, max_size=5), st.lists(some_labels, min_size=1, max_size=5))
def test_equals_sets(of_images, of_captions):
    shared = [[len(set(a) & set(b)) for b in of_captions] for a in of_images]
    either = [[len(set(a) | set(b)) for b in of_captions] for a in of_images]
    binary = Labels(of_images, caption_labels=of_captions).dense()
    graded = Labels(of_images, caption_labels=of_captions, degree="jaccard").dense()
    np.testing.assert_array_equal(binary, np.minimum(shared, 1))
    np.testing.assert_allclose(graded, np.array(shared) / np.maximum(either, 1), atol=1e-7)


def test_captions_have_their_image_s_labels():
    source = Labels([1, 2, 1], [0, 1, 2, 2])
    assert source.dense().tolist() == [[1, 0, 1, 1], [0, 1, 0, 0], [1, 0, 1, 1]]
    assert source.block([2, 1], [3, 1, 1]).tolist() == [[1, 0, 0], [0, 1, 1]]
    assert source.block([2], [3]).dtype == np.float32


def test_hash_follows_labels_and_degree():
    base = Labels(["a", "b"], [0, 1]).content_hash()
    assert base == Labels([("a",), ("b",)], [0, 1]).content_hash()
    assert base != Labels(["a", "a"], [0, 1]).content_hash()
    assert base != Labels(["a", "b"], [0, 1], degree="jaccard").content_hash()


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"image_of_caption": [2]}, "labels of 2 images"),
        ({}, "image_of_caption or caption_labels"),
        ({"image_of_caption": [0], "degree": "dice"}, "'any' or 'jaccard'"),
    ],
)
def test_what_does_not_fit_is_refused(given_, said):
    with pytest.raises(UserError, match=said):
        Labels(["a", "b"], **given_)
