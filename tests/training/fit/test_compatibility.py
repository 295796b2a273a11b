from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.training.config import load_config
from rungwise.training.fit import check_fits

ROWS = FeatureRows(np.ones((2, 8), np.float32))
PHOTOS = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]), name="photos")
FEATURES = replace(PHOTOS, features=ROWS, name="features")
BOTH = replace(FEATURES, text_features=ROWS, labels=(("art",), ("war",)), name="both")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "cmal2r/wikipedia",
            PHOTOS,
            "cmal2r/wikipedia does not fit photos: it reads class labels, and the data have none",
        ),
        ("cmal2r/own", replace(PHOTOS, labels=BOTH.labels), "reads rows of features in place of pictures"),
        ("cmal2r/own", replace(FEATURES, labels=BOTH.labels), "reads rows of features in place of captions"),
        ("vsepp/own", BOTH, "it reads words, and the data have rows of features in place of captions"),
        ("vsepp/flickr30k:rc", FEATURES, "it sees another crop of a picture on each visit"),
        ("vsepp/own:finetuned", FEATURES, "it trains the backbone, and the data are rows of features"),
        ("convse/flickr30k", FEATURES, "it sees another crop"),
        ("scenes", FEATURES, "it trains a network on pictures"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(name: str, data: ImageCaptions, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        check_fits(load_config(name), data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cmal2r/own", BOTH),
        ("vsepp/flickr30k", FEATURES),
        ("vsepp/coco:10c-rv", FEATURES),
        ("vsepp/own:finetuned", PHOTOS),
        ("convse/own", FEATURES),
        ("quick", PHOTOS),
        ("improve", PHOTOS),
    ],
)
def test_what_fits_passes(name: str, data: ImageCaptions) -> None:
    check_fits(load_config(name), data)


def test_a_model_that_is_begun_from_reads_its_own_kind_of_data() -> None:
    check_fits(replace(load_config("vsepp/own"), start="hf:someone/model"), BOTH)
