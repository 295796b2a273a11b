import json
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.encoders.pretrained import ModelSource


@pytest.mark.parametrize("text", ["run/model", "someone/model", "C:\\model", "http://x", "gpt:x", "hf", ""])
def test_other_texts_name_no_published_model(text: str) -> None:
    assert ModelSource.parse(text) is None


def test_a_prefix_without_a_name_is_refused() -> None:
    with pytest.raises(UserError, match="hf:: name a folder or a model after hf:"):
        ModelSource.parse("hf:")


def test_folders_become_absolute_and_names_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert ModelSource.parse("st:model").resolved() == ModelSource("st", str(tmp_path / "model"))  # type: ignore[union-attr]
    assert str(ModelSource("hf", "someone/model").resolved()) == "hf:someone/model"


@pytest.mark.parametrize(
    ("file", "text", "library"),
    [
        ("open_clip_config.json", "{}", "open_clip"),
        ("modules.json", "[]", "st"),
        ("config.json", json.dumps({"model_type": "clip"}), "hf"),
        ("config.json", json.dumps({"format": 2, "kind": "vse"}), None),
        ("config.json", "{", None),
        ("weights.bin", "", None),
    ],
)
def test_a_folder_without_a_prefix_is_told_by_its_files(
    file: str, text: str, library: str | None, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    found = ModelSource.named(tmp_path)
    assert (found and found.library) == library


def test_a_library_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"^open_clip:ViT-B-32/x needs open_clip; run: pip install 'rungwise\[open-clip\]'"
    ):
        ModelSource("open_clip", "ViT-B-32/x").require_library()
    with pytest.raises(UserError, match=r"pip install 'rungwise\[hf\]'"):
        ModelSource("st", "clip-ViT-B-32").require_library()
