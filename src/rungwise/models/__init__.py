"""Encoders and similarity as one thing that saves, loads and encodes."""

from rungwise.models.config import ModelConfig
from rungwise.models.joint import EncodedPictures, JointEmbedding, load

__all__ = ["EncodedPictures", "JointEmbedding", "ModelConfig", "load"]
