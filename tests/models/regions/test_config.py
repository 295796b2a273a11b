import numpy as np
import pytest

from rungwise.core import UserError, from_plain
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig, TextFeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import BagOfWordsConfig, GRUConfig
from rungwise.models.regions._scan import SCAN, SCANConfig
from rungwise.training.config import TrainConfig

WORDS = GRUConfig(word_dimension=3, min_count=1)
REGIONS = FeatureRows(np.zeros((2, 3, 4), np.float32))


def test_the_width_of_regions_comes_from_the_data() -> None:
    model = SCAN.create(SCANConfig(image=FeatureConfig(), text=WORDS, dimension=5), ["a dog"], REGIONS)
    assert model.region_projection.in_features == 4


def test_pictures_give_way_to_features() -> None:
    model = SCAN.create(SCANConfig(text=WORDS, dimension=5), ["a dog"], REGIONS)
    assert isinstance(model.config.image, FeatureConfig)
    assert not model.config.image.l2_normalise


@pytest.mark.parametrize(
    ("image", "text", "captions", "features", "message"),
    [
        (FeatureConfig(), WORDS, ["a dog"], FeatureRows(np.zeros((2, 4))), "one vector of 4 numbers for each image"),
        (FeatureConfig(), WORDS, ["a dog"], None, "no rows of features"),
        (
            ImageConfig("test_resnet.r160_in1k", weights="random", size=32), WORDS, ["a dog"], None,
            "set model.image.pool: regions",
        ),
        (FeatureConfig(), WORDS, FeatureRows(np.zeros((2, 4))), REGIONS, "features in place of texts"),
        (FeatureConfig(), TextFeatureConfig(), ["a dog"], REGIONS, "captions in words"),
        (FeatureConfig(), BagOfWordsConfig(min_count=1), ["a dog"], REGIONS, "set model.text.kind: gru or transformer"),
    ],
)  # fmt: skip
def test_what_has_no_regions_or_no_words_is_refused_in_one_line(image, text, captions, features, message) -> None:
    with pytest.raises(UserError, match=message) as refused:
        SCAN.create(SCANConfig(image=image, text=text, dimension=5), captions, features)
    assert "\n" not in str(refused.value)


def test_a_width_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="dimension"):
        SCANConfig(dimension=0)


@pytest.mark.parametrize("kind", ["scan", "sgr", "saf", "vsrn", "cvse"])
def test_counts_of_pieces_are_refused_where_words_are_read(kind):
    values = {"model": {"kind": kind, "text": {"kind": "transformer", "counted_pieces": 5}}}
    with pytest.raises(UserError, match=rf"text\.counted_pieces: a model of kind '{kind}' reads vectors of words"):
        from_plain(TrainConfig, values, "")
