"""Collections of pictures and captions: readers, the generated scenes, batches."""

from rungwise.data.collection import NO_SPLIT, ImageCaptions, Issue
from rungwise.data.readers import read

__all__ = ["NO_SPLIT", "ImageCaptions", "Issue", "read"]
