import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance import CIDErD, HumanJudgements, TfIdf, Visual, answers_caption_pairs, load
from rungwise.relevance import _base as relevance_base
from rungwise.relevance.combine import Maximum, mean
from rungwise.relevance.embedding import ImagePairs

WORDS = ("dog", "cat", "fox", "cow", "hen", "owl")
CAPTIONS = tuple(f"{size} {animal}" for animal in WORDS for size in ("big", "small"))
OWNERS = np.arange(12) // 2


def vectors(images=6, width=4, seed=0):
    return np.random.default_rng(seed).normal(size=(images, width)).astype(np.float32)


def cosine(first, second):
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def slow(rows, through, neighbours, lending):
    """Degrees by loops over images and captions."""
    text = through.dense()
    out = np.zeros((len(rows), len(CAPTIONS)))
    for image in range(len(rows)):
        near = sorted(range(len(rows)), key=lambda other: (other != image, -cosine(rows[image], rows[other]), other))[
            :neighbours
        ]
        weights = [1.0 if other == image else cosine(rows[image], rows[other]) for other in near]
        for caption in range(len(CAPTIONS)):
            lent = [text[other, caption] for other in near]
            kept = [max(weight, 0) for weight in weights]
            parts = [weight * one for weight, one in zip(kept, lent, strict=True)]
            out[image, caption] = max(parts) if lending == "max" else sum(parts) / sum(kept)
    return out


def test_pictures_alone_are_compared_by_their_cosine():
    rows = vectors()
    source = Visual(rows, OWNERS)
    wanted = np.array([[cosine(rows[i], rows[OWNERS[c]]) for c in range(12)] for i in range(6)])
    np.testing.assert_allclose(source.dense(), wanted, atol=1e-6)
    np.testing.assert_allclose(source.block([4, 0], [3, 11, 3]), wanted[np.ix_([4, 0], [3, 11, 3])], atol=1e-6)
    np.testing.assert_allclose(source.pair_block([2, 9], [0, 5, 2]), wanted[np.ix_([1, 4], [0, 5, 2])], atol=1e-6)
    assert (source.dense()[OWNERS, np.arange(12)] == 1).all()


def test_images_are_compared_with_images():
    rows = vectors()
    source = Visual(rows, OWNERS)
    assert isinstance(source, ImagePairs)
    wanted = [[cosine(rows[i], rows[j]) for j in (5, 0, 2)] for i in (2, 5)]
    np.testing.assert_allclose(source.image_block([2, 5], [5, 0, 2]), wanted, atol=1e-6)
    with pytest.raises(UserError, match="image positions run"):
        source.image_block([6], [0])


@pytest.mark.parametrize("lending", ["max", "mean"])
@pytest.mark.parametrize("neighbours", [1, 3, 6, 100])
def test_neighbours_lend_their_captions(lending, neighbours, monkeypatch):
    rows = vectors()
    text = TfIdf(CAPTIONS, OWNERS)
    wanted = slow(rows, text, neighbours, lending)
    source = Visual(rows, OWNERS, through=text, neighbours=neighbours, lending=lending)
    np.testing.assert_allclose(source.dense(), wanted, atol=1e-6)
    np.testing.assert_allclose(source.block([5, 5, 1], [7, 0]), wanted[np.ix_([5, 5, 1], [7, 0])], atol=1e-6)
    for module in ("rungwise.relevance.embedding._visual", "rungwise.relevance._base"):
        monkeypatch.setattr(f"{module}.CHUNK_BYTES", 64)  # a few captions at a time
    again = Visual(rows, OWNERS, through=text, neighbours=neighbours, lending=lending)
    np.testing.assert_allclose(again.dense(), wanted, atol=1e-6)
    assert relevance_base.CHUNK_BYTES == 64


def test_one_neighbour_lends_what_the_source_says():
    text = CIDErD(CAPTIONS, OWNERS)
    np.testing.assert_array_equal(Visual(vectors(), OWNERS, through=text, neighbours=1).dense(), text.dense())


def test_a_picture_is_its_own_nearest_even_without_a_vector_and_among_twins():
    rows = np.zeros((6, 2), np.float32)
    rows[3:] = 1
    text = TfIdf(CAPTIONS, OWNERS)
    for lending in ("max", "mean"):
        source = Visual(rows, OWNERS, through=text, neighbours=2, lending=lending)
        np.testing.assert_allclose(source.dense()[:3], text.dense()[:3])
        assert (source.dense()[OWNERS, np.arange(12)] > 0).all()
    alone = Visual(rows, OWNERS).image_block([0, 3], [0, 1, 3, 4])
    np.testing.assert_allclose(alone, [[1, 0, 0, 0], [0, 0, 1, 1]], atol=1e-6)
    assert alone[0, 0] == alone[1, 2] == 1


def test_caption_pairs_are_those_of_pictures_alone():
    assert answers_caption_pairs(Visual(vectors(), OWNERS))
    assert not answers_caption_pairs(Visual(vectors(), OWNERS, through=TfIdf(CAPTIONS, OWNERS)))


def test_the_model_goes_with_the_degrees_wherever_they_go(tmp_path):
    visual = Visual(vectors(), OWNERS, model="5eed", captions=CAPTIONS)
    text = TfIdf(CAPTIONS, OWNERS)
    assert text.models == Visual(vectors(), OWNERS).models == frozenset()
    assert mean([text, visual]).models == Maximum([mean([visual, text]), text]).models == {"5eed"}
    lent = Visual(vectors(seed=1), OWNERS, through=mean([text, visual]), model="other")
    assert lent.models == {"5eed", "other"}
    lent.save(tmp_path / "degrees")
    assert load(tmp_path / "degrees").models == {"5eed", "other"}
    load(tmp_path / "degrees").save(tmp_path / "again", k=2)
    assert load(tmp_path / "again").models == {"5eed", "other"}
    text.save(tmp_path / "text")
    assert load(tmp_path / "text").models == frozenset()


def test_whatever_decides_the_degrees_is_in_the_hash():
    text, other = TfIdf(CAPTIONS, OWNERS), TfIdf(CAPTIONS, OWNERS, orders=2)
    sources = [
        Visual(vectors(), OWNERS),
        Visual(vectors(seed=1), OWNERS),
        Visual(vectors(), OWNERS[::-1]),
        Visual(vectors(), OWNERS, model="5eed"),
        *(Visual(vectors(), OWNERS, through=one) for one in (text, other)),
        Visual(vectors(), OWNERS, through=text, neighbours=3),
        Visual(vectors(), OWNERS, through=text, lending="mean"),
    ]
    assert len({source.content_hash() for source in sources}) == len(sources)


def test_what_does_not_fit_is_refused_in_one_line():
    broken = vectors()
    broken[2, 1] = np.nan
    cases = {
        "vectors of shape (6,)": lambda: Visual(np.ones(6), OWNERS),
        "vectors of shape (0, 4)": lambda: Visual(np.ones((0, 4)), []),
        "vectors of shape (6, 1), <U1": lambda: Visual(np.full((6, 1), "a"), OWNERS),
        "vector 2 (from 0) holds NaN": lambda: Visual(broken, OWNERS),
        "other images than the 3": lambda: Visual(vectors(3), OWNERS),
        "TfIdf has degrees of (6, 12)": lambda: Visual(vectors(7), OWNERS, through=TfIdf(CAPTIONS, OWNERS)),
        "HumanJudgements knows some pairs only": lambda: Visual(
            vectors(), OWNERS, through=HumanJudgements([0], [0], [1], (6, 12))
        ),
        "0 neighbours": lambda: Visual(vectors(), OWNERS, neighbours=0),
        "lending 'sum'": lambda: Visual(vectors(), OWNERS, lending="sum"),
        "caption positions run": lambda: Visual(vectors(), OWNERS).pair_block([12], [0]),
    }
    for message, make in cases.items():
        with pytest.raises(UserError) as caught:
            make()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
