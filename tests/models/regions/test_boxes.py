"""Where regions lie, and what a model of regions says of a pair: SCAN, with its numbers by hand."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.models import DualEncoder
from rungwise.models.regions._boxes import boxes_of
from rungwise.models.regions._scan import SCAN, SCANConfig

CAPTIONS = ["a dog runs", "a cat sleeps on a mat"]


def backbone(**options):
    return ImageConfig(
        "test_resnet.r160_in1k", weights="random", size=64, pool="regions", l2_normalise=False, **options
    )


@pytest.fixture(scope="module")
def model() -> SCAN:
    torch.manual_seed(0)
    from rungwise.encoders.texts import GRUConfig

    text = GRUConfig(directions="both", min_count=1)
    return SCAN.create(SCANConfig(image=backbone(), text=text, dimension=8), CAPTIONS).eval()


def picture(width: int, height: int, **options) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


def test_boxes_cover_what_the_model_sees_of_the_picture(model):
    down, across = model.backbone.region_grid
    assert down * across == model.backbone.regions
    boxes = boxes_of(model.backbone, picture(200, 100))
    assert boxes.shape == (down * across, 4)
    # The middle square of a picture twice as wide as high, row by row.
    np.testing.assert_allclose(boxes[0], [0.25, 0, 0.25 + 0.5 / across, 1 / down], atol=1e-6)
    np.testing.assert_allclose(boxes[-1], [0.75 - 0.5 / across, 1 - 1 / down, 0.75, 1], atol=1e-6)


def test_boxes_are_those_of_the_upright_picture(model):
    turned = Image.Exif()
    turned[0x0112] = 6
    upright = boxes_of(model.backbone, picture(200, 100, exif=turned))
    np.testing.assert_allclose(upright, boxes_of(model.backbone, picture(100, 200)))
    assert upright[:, 1].min() == pytest.approx(0.25)


def test_an_explanation_is_that_of_the_comparison(model):
    one = picture(90, 60)
    found = model.explain(one, "A dog, zebra!")
    assert found.words == ("", "A", "dog", ",", "zebra", "!", "")
    assert found.weights.shape == (7, model.backbone.regions)
    np.testing.assert_allclose(found.weights.sum(axis=1), np.ones(7), rtol=1e-5)
    assert found.shares.sum() == pytest.approx(1, rel=1e-5)
    # log-sum-exp of the cosines is the score of the pair.
    score = np.log(np.exp(6.0 * found.answers.astype(np.float64)).sum()) / 6.0
    assert float(model.block([one], ["A dog, zebra!"])[0, 0]) == pytest.approx(score, abs=1e-5)
    assert found.boxes.shape == (model.backbone.regions, 4)


def test_words_that_are_the_same_place_the_same_way_twice(model):
    one = picture(90, 60)
    first, again = model.explain(one, "a dog"), model.explain(one, "a dog")
    np.testing.assert_array_equal(first.weights, again.weights)


def test_rows_of_features_are_explained_without_boxes():
    from rungwise.encoders.texts import GRUConfig

    rows = FeatureRows(np.random.default_rng(0).random((2, 5, 4)))
    text = GRUConfig(directions="both", min_count=1)
    model = SCAN.create(SCANConfig(image=FeatureConfig(), text=text, dimension=8), CAPTIONS, rows).eval()
    found = model.explain(rows.take(np.array([1])), "a dog")
    assert found.weights.shape == (4, 5)
    assert found.boxes is None


def test_what_cannot_be_explained_is_one_line(model, tmp_path):
    with pytest.raises(UserError, match="empty"):
        model.explain(picture(9, 9), "  ")
    with pytest.raises(UserError, match="gone.jpg"):
        model.explain(tmp_path / "gone.jpg", "a dog")
    with pytest.raises(UserError, match="not a picture|no picture"):
        model.explain(b"no picture", "a dog")


def test_a_model_of_vectors_does_not_explain():
    class Vectors(DualEncoder):
        kind = "vectors"
        dimension = fingerprint = similarity = None

        def encode_image(self, pictures, *, progress=None, cache=None):
            raise NotImplementedError

        def encode_text(self, texts):
            raise NotImplementedError

    model = Vectors()
    assert not model.explains
    with pytest.raises(UserError, match="kind 'vectors' does not compare words with regions"):
        model.explain(Path("a.jpg"), "a dog")
