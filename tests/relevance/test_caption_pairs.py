import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import WordVectors
from rungwise.relevance import (
    CaptionPairs,
    Cascade,
    CBoW,
    CIDErD,
    Labels,
    TfIdf,
    answers_caption_pairs,
    caption_pairs,
    load,
)
from rungwise.relevance.combine import Maximum, mean
from rungwise.relevance.combine._combinations import Calibrated

CAPTIONS = ["a dog runs", "a dog", "the cat sleeps", "a black cat"]
OWNERS = [0, 0, 1, 1]
VECTORS = WordVectors({"dog": 0, "cat": 1, "runs": 2}, np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32))


def sources(**options):
    words = CBoW(CAPTIONS, OWNERS, VECTORS, **options)
    return [TfIdf(CAPTIONS, OWNERS, **options), words, Cascade(words, words, threshold=0.5, **options)]


def test_degrees_of_a_batch_are_those_by_the_paired_caption():
    """R(t_q, t_p): with one caption in each image's place, R by image is R by that caption."""
    for paired in ([0, 2], [1, 3], [1, 2]):
        for source in sources(reference=paired):
            np.testing.assert_allclose(source.pair_block(paired, paired), source.block([0, 1], paired), rtol=1e-6)


def test_the_reference_choice_does_not_matter_to_a_batch():
    batch = [1, 0, 0]
    for source, other in zip(sources(), sources(reference="mean", leave_one_out=True), strict=True):
        block = source.pair_block(batch, batch)
        np.testing.assert_array_equal(block, other.pair_block(batch, batch))
        np.testing.assert_allclose(block.diagonal(), 1, rtol=1e-6)
        assert not np.allclose(block[:2, :2], source.block([0, 0], [1, 0])), "by image it is something else"


@pytest.mark.parametrize(("first", "second"), [([-1], [0]), ([0], [-1]), ([4], [0]), ([0], [4])])
def test_positions_outside_are_refused(first, second):
    for source in sources():
        with pytest.raises(UserError, match=r"caption positions run .* must lie in 0\.\.3"):
            source.pair_block(first, second)


def test_who_answers(tmp_path):
    source = TfIdf(CAPTIONS, OWNERS)
    source.save(tmp_path / "degrees")
    assert all(answers_caption_pairs(one) and caption_pairs(one) is one for one in sources())
    for other in (CIDErD(CAPTIONS, OWNERS), Labels(["x", "y"], OWNERS), load(tmp_path / "degrees")):
        assert not isinstance(other, CaptionPairs)
        assert not answers_caption_pairs(other)
        with pytest.raises(UserError, match="tfidf, cbow, spice, bi-encoder, cross-encoder, cascade and") as caught:
            caption_pairs(other)
        assert "\n" not in str(caught.value)


def test_a_source_of_anybody_s_answers_by_its_method_alone():
    class Theirs:
        def pair_block(self, first, second):
            return np.zeros((len(first), len(second)), np.float32)

    assert answers_caption_pairs(Theirs())


def test_a_combination_answers_if_all_its_sources_do():
    pairs, images = TfIdf(CAPTIONS, OWNERS), CIDErD(CAPTIONS, OWNERS)
    for one, does in ((pairs, True), (images, False)):
        for combined in (mean([pairs, one]), Maximum([one]), Calibrated(one, [0, 1], [0, 1])):
            assert answers_caption_pairs(combined) == does
