import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from rungwise.core import UserError
from rungwise.encoders.pretrained.open_clip._transformer_texts import NETWORKS, foreign_text
from rungwise.models import load
from tests.published import CAPTIONS, Published

open_clip = pytest.importorskip("open_clip")


@pytest.fixture
def folder(published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As such models are published: the network by its name, whose configuration is in the hub's cache."""
    folder = shutil.copytree(published.open_clip_roberta, tmp_path / "model")
    change(folder, hf_model_name="xlm-roberta-base")
    monkeypatch.setattr(
        "rungwise.encoders.pretrained.open_clip._transformer_texts.hub_folder",
        lambda name, patterns: published.home / "roberta",
    )
    return folder


def change(folder: Path, **settings: Any) -> None:
    file = folder / "open_clip_config.json"
    said = json.loads(file.read_text())
    said["model_cfg"]["text_cfg"].update(settings)
    file.write_text(json.dumps(said))


@pytest.mark.parametrize("pooler", ["mean_pooler", "cls_last_hidden_state_pooler"])
def test_vectors_are_those_of_the_library(pooler: str, folder: Path, published: Published, tmp_path: Path) -> None:
    own = shutil.copytree(published.open_clip_roberta, tmp_path / "own")
    for one in (own, folder):
        change(one, hf_pooler_type=pooler)
    model = open_clip.create_model_from_pretrained(f"local-dir:{own}", return_transform=False).eval()
    with torch.inference_mode():
        texts = model.encode_text(open_clip.get_tokenizer(f"local-dir:{own}")(list(CAPTIONS)), normalize=True).numpy()
    mine = load(f"open_clip:{folder}", "cpu")
    assert mine.encode_text(CAPTIONS) == pytest.approx(texts, abs=1e-5)
    mine.save_pretrained(tmp_path / "saved")
    again = load(tmp_path / "saved", "cpu")
    assert again.fingerprint == mine.fingerprint
    assert again.encode_text(CAPTIONS) == pytest.approx(texts, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hf_model_name": "somebody/model"}, f"'somebody/model' is not read; those are {NETWORKS[0]}"),
        ({"hf_pooler_type": "cls_pooler"}, "hf_pooler_type is not read"),
        ({"hf_proj_type": "code"}, "text_cfg: proj"),
        ({"hf_config": {}}, "'hf_config' is not read"),
        ({"context_length": 1000}, "context_length 1000 does not fit the network"),
        ({"hf_proj_type": None}, "the network's 32 numbers are not the model's 24"),
    ],
)
def test_what_is_not_listed_is_refused(settings: dict[str, Any], said: str, folder: Path) -> None:
    change(folder, **settings)
    with pytest.raises(UserError, match=said) as refused:
        load(f"open_clip:{folder}", "cpu")
    assert "\n" not in str(refused.value)


def test_a_network_of_another_family_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "somebody", "vocab_size": 10}))
    monkeypatch.setattr(
        "rungwise.encoders.pretrained.open_clip._transformer_texts.hub_folder", lambda name, patterns: tmp_path
    )
    with pytest.raises(UserError, match=r"text_cfg: network\.model_type"):
        foreign_text({"hf_model_name": "roberta-base"}, 24, Path("open_clip_config.json"))
