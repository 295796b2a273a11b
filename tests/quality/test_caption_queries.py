from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import UNRELATED, Calibration
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import similarity_source
from rungwise.index import Index
from rungwise.quality import CaptionEnds, CaptionQueries
from tests.colour_model import ColourModel, colour_pictures

COLOURS = ("red", "green", "blue")
DATA = ImageCaptions(COLOURS, ("red", "dark red", "green", "blue"), np.array([0, 0, 1, 2]))


def queries() -> CaptionQueries:
    model = ColourModel()
    source = similarity_source(
        image_embeddings=model.encode_text(COLOURS),
        text_embeddings=model.encode_text(DATA.captions),
        image_of_caption=DATA.image_of_caption,
    )
    found = CaptionQueries.of(model, source, DATA)
    assert found is not None
    return found


def test_scores_without_vectors_of_a_model_have_no_such_queries() -> None:
    matrix = similarity_source(similarity=np.eye(3), image_of_caption=[0, 1, 2])
    assert CaptionQueries.of(ColourModel(), matrix, DATA) is None
    assert CaptionQueries.of(None, queries().source, DATA) is None


def test_a_caption_is_compared_with_the_captions_of_every_picture_but_itself() -> None:
    found = queries()
    vectors = found.source.text / np.linalg.norm(found.source.text, axis=1, keepdims=True)
    for at, known in enumerate(found.known(np.arange(4), likeness=True)):
        expected = []
        for image in range(3):
            others = [one for one in range(4) if DATA.image_of_caption[one] == image and one != at]
            expected.append(max((float(vectors[at] @ vectors[one]) for one in others), default=np.nan))
        np.testing.assert_allclose(known.caption_scores, expected, atol=1e-6)
        np.testing.assert_array_equal(known.vector, found.source.text[at])
    assert found.known(np.arange(1))[0].caption_scores is None


def test_texts_that_fit_no_picture_are_scored_with_every_picture() -> None:
    found = queries()
    scores, known = found.unrelated(likeness=True)
    assert scores.shape == (len(UNRELATED), 3)
    assert [one.caption_scores.shape for one in known] == [(3,)] * len(UNRELATED)
    assert found.unrelated()[1][0].caption_scores is None


def ends_of_many() -> tuple[CaptionEnds, CaptionQueries, np.ndarray, Calibration]:
    """Ends of 180 captions of 60 pictures, with their scores."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((60, 3)).astype(np.float32)
    owners = draw.permutation(np.repeat(np.arange(60), 3))
    texts = centres[owners] + 0.2 * draw.standard_normal((180, 3)).astype(np.float32)
    source = similarity_source(image_embeddings=centres, text_embeddings=texts, image_of_caption=owners)
    data = ImageCaptions(tuple(map(str, range(60))), tuple(f"red {at}" for at in range(180)), owners)
    found = CaptionQueries.of(ColourModel(), source, data)
    assert found is not None
    scores = texts @ centres.T
    degrees = np.exp(-((texts[:, None] - centres) ** 2).sum(-1))
    calibration = Calibration.fit(scores, degrees, 0.3, known=found.known(np.arange(180), likeness=True))
    return CaptionEnds.of(calibration, found), found, scores, calibration


def test_captions_are_judged_as_in_an_index_with_the_others() -> None:
    ends, found, scores, calibration = ends_of_many()
    known = found.known(np.arange(180), likeness=True)
    wanted = calibration.judge(scores, "t2i", np.arange(180), known)
    whole = ends.judge(scores, "t2i", np.arange(180))
    np.testing.assert_allclose(whole.degrees, wanted.degrees, atol=1e-5)
    np.testing.assert_array_equal(whole.cuts, wanted.cuts)
    without = calibration.judge(scores, "t2i", np.arange(180), found.known(np.arange(180)))
    assert not np.allclose(without.degrees, wanted.degrees, atol=1e-3)
    one = ends.judge(scores[7:8], "t2i", np.array([7]))
    np.testing.assert_array_equal(one.degrees[0], whole.degrees[7])  # to the bit, in whatever block
    some = np.arange(5)
    plain, informed = calibration.judge(scores.T[:5], "i2t", some), ends.judge(scores.T[:5], "i2t", some)
    np.testing.assert_array_equal(plain.degrees, informed.degrees)
    assert str(ends) == f"{calibration}; of captions, with the other captions of their hits"


def test_in_a_part_hits_keep_their_captions() -> None:
    ends, found, scores, calibration = ends_of_many()
    images, captions = np.arange(5, 45), np.flatnonzero(found.data.image_of_caption == 7)
    known = [
        replace(one, caption_scores=one.caption_scores[images])
        for one in found.known(captions, likeness=True)
        if one.caption_scores is not None
    ]
    part = scores[np.ix_(captions, images)]
    wanted = calibration.judge(part, "t2i", np.arange(3), known)
    judged = ends.of_part(images, captions).judge(part, "t2i", np.arange(3))
    np.testing.assert_allclose(judged.degrees, wanted.degrees, atol=1e-5)


def test_an_index_gives_its_captions(tmp_path: Path) -> None:
    model = ColourModel()
    pictures = colour_pictures(tmp_path / "pictures", COLOURS, captions=False)
    with pytest.raises(UserError, match="its pictures have no captions to learn from"):
        CaptionQueries.of_index(Index.build(pictures, model, tmp_path / "bare"), model)
    owners = DATA.image_of_caption
    told = replace(pictures, captions=DATA.captions, image_of_caption=owners)
    found = CaptionQueries.of_index(Index.build(told, model, tmp_path / "told"), model)
    given = sorted(zip([told.image_ids[owner] for owner in owners], told.captions, strict=True))
    there = [found.data.image_ids[owner] for owner in found.data.image_of_caption]
    assert sorted(zip(there, found.data.captions, strict=True)) == given
    assert found.source.shape == (3, 4)
