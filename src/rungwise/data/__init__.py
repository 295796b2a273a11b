"""Collections of images (picture files or rows of features) and captions: readers, inspection, batches."""

from rungwise.data.collection import NO_SPLIT, ImageCaptions, Issue
from rungwise.data.files.feature_rows import FeatureRows
from rungwise.data.readers import read

__all__ = ["NO_SPLIT", "FeatureRows", "ImageCaptions", "Issue", "read"]
