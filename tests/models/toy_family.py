"""A whole family of models in one screen: a linear map of feature rows, and the sum of its words' vectors."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from rungwise.encoders.features import ReadFeatures
from rungwise.models import EncodedImages, ModelConfig, Pairs, TrainableEncoder, VectorScores
from rungwise.models.pairs import pair_up
from rungwise.similarity import Cosine

WORDS = 512


@dataclass(frozen=True)
class ToyConfig(ModelConfig):
    kind: Literal["toy"] = "toy"
    width: int = 0
    dimension: int = 16


class ToyFamily(TrainableEncoder):
    kind, config_type, similarity = "toy", ToyConfig, Cosine()
    dimension = property(lambda self: self.config.dimension)

    def __init__(self, config: ToyConfig) -> None:
        super().__init__()
        self.config, self.provenance = config, {}
        self.pictures = nn.Linear(config.width, config.dimension)
        self.words = nn.EmbeddingBag(WORDS, config.dimension, mode="sum")

    @classmethod
    def create(cls, config, captions, features=None):
        return cls(replace(config, width=features.shape[1]))

    @classmethod
    def restore(cls, config, folder):
        return cls(config)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(b"".join(one.numpy().tobytes() for one in self.state_dict().values())).hexdigest()

    def read(self, data, images, *, cache=None, progress=None) -> Pairs:
        return pair_up(data, images, ReadFeatures(data.features.take(images)), words_of)

    def batch(self, pairs: Pairs, chosen) -> tuple[Tensor, list]:
        return pairs.rows.take(pairs.image[chosen]), [pairs.texts[caption] for caption in chosen]

    def embed(self, batch) -> tuple[Tensor, Tensor]:
        rows, texts = batch
        starts = np.cumsum([0, *map(len, texts)])[:-1]
        words = self.words(torch.tensor([word for text in texts for word in text]), torch.from_numpy(starts))
        return self.similarity.images(self.pictures(rows.float())), self.similarity.texts(words)

    def scores_of(self, pairs: Pairs, autocast: Any = nullcontext) -> VectorScores:
        return self.on(pairs.data.select(pairs.images))

    def encode_image(self, pictures, *, progress=None, cache=None) -> EncodedImages:
        with torch.inference_mode():
            rows = self.embed((torch.from_numpy(pictures[:]), [[0]]))[0]
        return EncodedImages(rows.numpy(), np.arange(len(pictures)))

    def encode_text(self, texts) -> np.ndarray:
        with torch.inference_mode():
            return self.embed((torch.zeros(1, self.config.width), words_of(texts)))[1].numpy()


def words_of(texts) -> list[list[int]]:
    return [[crc32(word.encode()) % WORDS for word in text.lower().split()] or [0] for text in texts]
