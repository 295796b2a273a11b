"""A family of models that nobody foresaw goes through the whole house: trained, saved, loaded, searched, served."""

from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.data import ImageCaptions
from rungwise.data.features import FeatureRows
from rungwise.evaluation import evaluate
from rungwise.index import Index, Manifest, Searcher
from rungwise.models import load
from rungwise.serving import create_app
from rungwise.training.config import TrainConfig
from rungwise.training.loop import train
from tests.index.toy_store import ToyStore
from tests.models.toy_family import ToyConfig, ToyFamily

KINDS = ["dog", "cat", "boat", "tree"]


@pytest.fixture(scope="module")
def data() -> ImageCaptions:
    """80 rows of features, which lie near one of four corners, with a caption each."""
    draw = np.random.default_rng(0)
    kinds = np.arange(80) % 4
    rows = np.eye(4)[kinds] + draw.normal(0, 0.1, (80, 4))
    return ImageCaptions(
        tuple(f"i{n}" for n in range(80)),
        tuple(f"a {KINDS[kind]}" for kind in kinds),
        np.arange(80),
        splits=tuple("train" if n < 48 else "val" if n < 64 else "test" for n in range(80)),
        features=FeatureRows(rows.astype(np.float32)),
        name="corners",
    )


def test_a_toy_family_goes_through_the_whole_house(data: ImageCaptions, tmp_path: Path) -> None:
    config = TrainConfig(model=ToyConfig(), epochs=(8,), learning_rates=(3e-2,), batch_size=8)
    result = train(config, data, tmp_path / "run", device="cpu")
    model = load(result.model_folder, "cpu")
    assert isinstance(model, ToyFamily)

    test = data.split("test")
    scores = model.on(test)
    judged = evaluate(**scores.for_evaluation(), image_of_caption=test.image_of_caption, measures=["R@5"])
    assert judged["t2i/R@5"] > 90  # any picture of the right kind ranks by chance among four

    index = Index.build(test, model, tmp_path / "index", model_location=str(result.model_folder))
    assert [hit.position % 4 for hit in Searcher(index, model).search_text("a boat", k=4)] == [2] * 4
    assert [hit.position % 4 for hit in index.similar("i64", k=3)] == [0] * 3

    client = TestClient(create_app(Index.open(tmp_path / "index"), load(result.model_folder, "cpu")))
    results = client.get("/api/search", params={"q": "a tree", "k": 4}).json()["results"]
    assert [hit["captions"] for hit in results] == [["a tree"]] * 4

    stores = (ToyStore(model.dimension, model.similarity, side) for side in ("image", "text"))
    other = Index(Manifest("in a dictionary", model.fingerprint, "", model.dimension), *stores)
    other.upsert(test, model)
    served = TestClient(create_app(other, model)).get("/api/search", params={"q": "a tree", "k": 4}).json()["results"]
    assert [hit["id"] for hit in served] == [hit["id"] for hit in results]
