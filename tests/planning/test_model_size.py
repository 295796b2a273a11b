"""What a plan knows of the model: its size, from its files where they are at hand, and what a query costs."""

from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.planning import STORED, Need
from rungwise.planning._model_size import model_size


def test_without_a_model_it_is_the_default_and_says_so() -> None:
    found = model_size(Need(10), STORED)
    assert found.said == "siglip2-base-patch32-256 (the default)"
    assert (found.kind, found.weights) == ("torch", STORED["weights of siglip2-base-patch32-256"])
    assert found.query == STORED["query of siglip2-base-patch32-256"]
    assert found.remark == ""


@pytest.mark.parametrize(("suffix", "kind"), [(".onnx", "exported"), (".safetensors", "torch")])
def test_of_a_folder_the_size_is_that_of_its_weights(tmp_path: Path, suffix: str, kind: str) -> None:
    for name, size in ((f"image{suffix}", 300), (f"text{suffix}", 40), ("tokenizer.json", 9000)):
        (tmp_path / name).write_bytes(bytes(size))
    for place in (str(tmp_path), f"hf:{tmp_path}", f"{tmp_path}/"):
        found = model_size(Need(10, model=place), STORED)
        assert (found.name, found.kind, found.weights.value) == (tmp_path.name, kind, 340)
        assert "--measure --model takes yours" in found.remark, "nobody measured its queries"


def test_an_export_beside_its_weights_is_taken_for_an_export(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_bytes(bytes(50))
    (tmp_path / "model.safetensors").write_bytes(bytes(70))
    found = model_size(Need(10, model=str(tmp_path)), STORED)
    assert (found.exported, found.weights.value) == (True, 50)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file of weights is there; name the folder of a model"):
        model_size(Need(10, model=str(tmp_path)), STORED)


def test_a_name_whose_size_is_not_known_is_reckoned_as_the_default() -> None:
    found = model_size(Need(10, model="hf:somebody/something"), STORED)
    assert found.weights == STORED["weights of siglip2-base-patch32-256"]
    assert "the size of something is not known" in found.remark
