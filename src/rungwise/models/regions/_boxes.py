"""Place of a model's regions in the picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rungwise.data.files import FeatureRows, Picture
from rungwise.data.pictures import picture_bytes, picture_name, upright_size
from rungwise.encoders import ImageSide, PictureSide


def boxes_of(side: ImageSide, picture: Picture | bytes | FeatureRows) -> NDArray[np.float64] | None:
    """(R, 4) boxes of the regions in a picture's file.

    They are those of :meth:`PictureSide.region_boxes <rungwise.encoders.PictureSide.region_boxes>`. None for rows
    of features, and where the regions form no grid.
    """
    if isinstance(picture, FeatureRows) or not isinstance(side, PictureSide) or side.region_grid is None:
        return None
    return side.region_boxes(*upright_size(picture_bytes(picture), picture_name(picture)))
