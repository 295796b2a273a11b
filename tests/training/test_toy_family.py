"""A family of models from outside the package: trained, saved, loaded by kind, evaluated, indexed, searched, served."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from fastapi.testclient import TestClient
from torch import nn

import rungwise
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.data.pictures import load_picture
from rungwise.encoders import ReadFeatures
from rungwise.index import Index
from rungwise.models import EncodedImages, ModelConfig, TrainableEncoder, load
from rungwise.models._training_pairs import pair_up
from rungwise.serving import create_app
from rungwise.similarity import Cosine
from rungwise.training.config import TrainConfig
from rungwise.training.engine import train


@dataclass(frozen=True)
class ToyConfig(ModelConfig):
    kind: Literal["toy"] = "toy"
    dimension: int = 4


class Toy(TrainableEncoder):
    """The mean colour of a picture, and the mean of word vectors."""

    kind, config_type, similarity = "toy", ToyConfig, Cosine()

    def __init__(self, config: ToyConfig, words: list[str]) -> None:
        super().__init__()
        self.config, self.words, self.provenance = config, words, {}
        self.image = nn.Linear(3, config.dimension)
        self.text = nn.EmbeddingBag(len(words) + 1, config.dimension)

    @property
    def dimension(self) -> int:
        return self.config.dimension

    @classmethod
    def create(cls, config: Any, captions: Any, features: Any = None) -> "Toy":
        return cls(config, sorted({word for caption in captions for word in caption.split()}))

    def files(self) -> dict[str, str]:
        return {"words.json": json.dumps({"words": self.words})}

    @classmethod
    def restore(cls, config: Any, folder: Any) -> "Toy":
        return cls(config, folder.json("words.json")["words"])

    def colours(self, pictures: Any) -> np.ndarray:
        return np.array([load_picture(one).float().mean(dim=(1, 2)).numpy() / 128 - 1 for one in pictures], np.float32)

    def numbers(self, texts: Any) -> list[list[int]]:
        known = {word: number for number, word in enumerate(self.words, 1)}
        return [[known.get(word, 0) for word in text.split()] or [0] for text in texts]

    def read(self, data: Any, images: Any, *, cache: Any = None, progress: Any = None) -> Any:
        rows = ReadFeatures(FeatureRows(self.colours([data.paths[image] for image in images])))
        return pair_up(data, images, rows, self.numbers)

    def batch(self, pairs: Any, chosen: Any) -> Any:
        return pairs.rows.take(pairs.image[chosen]), [pairs.texts[caption] for caption in chosen]

    def embed(self, batch: Any) -> Any:
        rows, texts = batch
        starts = torch.tensor([0, *np.cumsum([len(text) for text in texts])[:-1]])
        vectors = self.text(torch.tensor([word for text in texts for word in text]), starts)
        return self.similarity.images(self.image(rows)), self.similarity.texts(vectors)

    @torch.inference_mode()
    def encode_image(self, pictures: Any, *, progress: Any = None, cache: Any = None) -> EncodedImages:
        vectors = self.similarity.images(self.image(torch.from_numpy(self.colours(pictures))))
        return EncodedImages(vectors.numpy(), np.arange(len(pictures)))

    @torch.inference_mode()
    def encode_text(self, texts: Any) -> np.ndarray:
        return self.embed((torch.zeros(len(texts), 3), self.numbers(texts)))[1].numpy()


def test_a_family_of_ones_own(config: TrainConfig, coloured: ImageCaptions, tmp_path: Path) -> None:
    asked = replace(config, model=ToyConfig(), epochs=(12, 2), learning_rates=(5e-2, 1e-2))
    result = train(asked, coloured, tmp_path / "run")
    assert json.loads((result.model_folder / "config.json").read_text())["kind"] == "toy"
    model = load(result.model_folder, "cpu")
    assert type(model) is Toy
    scores = model.on(coloured.split("val"))
    owners = scores.data.image_of_caption
    relevance = (np.arange(12)[:, None] % 4 == owners[None, :] % 4).astype(np.float32)
    measured = rungwise.evaluate(
        **scores.for_evaluation(), image_of_caption=owners, relevance=relevance, measures=["NCS@3"]
    )
    assert measured["t2i/NCS@3"] > 90
    Index.build(coloured, model, tmp_path / "index")
    client = TestClient(create_app(Index.open(tmp_path / "index"), model))
    for number, colour in enumerate(("red", "green", "blue", "white")):
        found = client.get("/search", params={"q": colour, "k": 3, "fold": False, "words": "off"}).json()["hits"]
        assert all(coloured.image_ids.index(hit["id"]) % 4 == number for hit in found), colour
