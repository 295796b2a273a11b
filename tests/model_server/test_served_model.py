"""Vectors are those of the model; texts are encoded together, and one that fails fails by itself."""

import base64
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from rungwise.model_server import create_model_app
from rungwise.model_server._served_model import encoded_together
from rungwise.models import DualEncoder, load_dual_encoder
from rungwise.models.export import export_onnx
from rungwise.serving import ServerSettings
from tests.colour_model import ColourModel
from tests.model_server.conftest import PATIENT
from tests.models.exported import TEXTS, pictures, seeing
from tests.published import Published


class Choosy(ColourModel):
    """Encodes no text with a certain word, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append([*texts])
        if "bad" in texts:
            raise RuntimeError("bad")
        return super().encode_text(texts)


def test_texts_of_several_requests_are_encoded_in_one_call_each_text_once() -> None:
    model = Choosy()
    first, second = encoded_together(model, [("red", "blue"), ("blue",)])
    assert model.asked == [["red", "blue"]]
    expected = ColourModel().encode_text(["red", "blue"])
    assert np.array_equal(first, expected)
    assert np.array_equal(second, expected[1:])


def test_a_request_that_fails_leaves_the_others() -> None:
    first, second, third = encoded_together(Choosy(), [("red",), ("bad",), ("blue",)])
    assert np.array_equal(first, ColourModel().encode_text(["red"]))
    with pytest.raises(RuntimeError, match="bad"):
        raise second
    assert np.array_equal(third, ColourModel().encode_text(["blue"]))


@pytest.fixture(params=["trained", "exported", "published"])
def any_model(request: pytest.FixtureRequest, tmp_path: Path, published: Published) -> DualEncoder:
    """A model of each kind that is served."""
    if request.param == "published":
        return load_dual_encoder(f"hf:{published.clip}", "cpu")
    if request.param == "exported":
        export_onnx(seeing(), tmp_path / "onnx")
    else:
        seeing().save_pretrained(tmp_path / "onnx")
    return load_dual_encoder(tmp_path / "onnx", "cpu")


@pytest.mark.slow
def test_vectors_are_those_of_the_model(any_model: DualEncoder, tmp_path: Path) -> None:
    files = [path.read_bytes() for path in pictures(tmp_path / "pictures")]
    texts = [text for text in TEXTS if text.strip()]
    sent = [{"image": f"data:image/png;base64,{base64.b64encode(one).decode()}"} for one in files]
    app = create_model_app(any_model, settings=ServerSettings(limits=PATIENT))
    with TestClient(app) as client:
        answer = client.post("/v1/embeddings", json={"input": [*texts, *sent]})
        assert answer.status_code == 200, answer.text
        vectors = np.array([one["embedding"] for one in answer.json()["data"]], np.float32)
    expected = np.concatenate([any_model.encode_text(texts), any_model.encode_image(files).vectors])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
