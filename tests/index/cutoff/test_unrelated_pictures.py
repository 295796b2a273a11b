from io import BytesIO

import numpy as np
from PIL import Image

from rungwise.index.cutoff._unrelated_pictures import unrelated_pictures


def test_they_are_always_the_same_and_all_different() -> None:
    pictures = unrelated_pictures()
    assert pictures == unrelated_pictures()
    assert len(set(pictures)) == len(pictures) == 24


def test_they_are_small_coloured_pictures_that_any_reader_opens() -> None:
    for picture in unrelated_pictures():
        with Image.open(BytesIO(picture)) as opened:
            assert (opened.format, opened.mode, opened.size) == ("PNG", "RGB", (128, 128))


def test_hardly_any_two_are_alike_point_by_point() -> None:
    values = np.stack([np.asarray(Image.open(BytesIO(one)), np.float64).ravel() for one in unrelated_pictures()])
    apart = np.abs(values[:, None, ::97] - values[None, :, ::97]).mean(axis=2)
    assert np.median(apart[np.triu_indices(len(values), 1)]) > 60
