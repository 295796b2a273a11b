from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.core.disk import check_seal
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.evaluation import Provenance, Result, card_facts, evaluate
from rungwise.models import JointEmbedding, VSEConfig, add_evaluation, load
from rungwise.models.io._card import tables_of

CAPTIONS = ("a red dog", "a blue cat", "a green bird")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = VSEConfig(image=FeatureConfig(width=3), text=GRUConfig(4, 1), dimension=4)
    JointEmbedding.create(config, CAPTIONS).save_pretrained(tmp_path / "model", {"data": "three", "seed": 3})
    return tmp_path / "model"


def result_of(folder: Path, **more: str) -> Result:
    model = load(folder, "cpu")
    images = model.encode_image(FeatureRows(np.eye(3, dtype=np.float32))).vectors  # type: ignore[attr-defined]
    return evaluate(
        image_embeddings=images,
        text_embeddings=model.encode_text(CAPTIONS),  # type: ignore[attr-defined]
        image_of_caption=[0, 1, 2],
        provenance=Provenance(**{"data_name": "three | pictures", "model_hash": model.fingerprint, **more}),
    )


def test_a_result_stands_on_the_card_and_the_folder_stays_whole(saved: Path) -> None:
    before, weights = load(saved, "cpu"), (saved / "model.safetensors").read_bytes()
    result = result_of(saved)
    add_evaluation(saved, card_facts(result, result.intervals()))
    check_seal(saved)
    after = load(saved, "cpu")
    card = (saved / "README.md").read_text(encoding="utf-8")
    assert after.fingerprint == before.fingerprint
    assert (saved / "model.safetensors").read_bytes() == weights
    assert "### three \\| pictures, protocol full" in card
    assert "in brackets: 95 % bootstrap intervals" in card
    assert after.provenance["seed"] == 3  # type: ignore[attr-defined]


def test_the_table_is_kept_when_the_model_is_saved_elsewhere(saved: Path, tmp_path: Path) -> None:
    add_evaluation(saved, card_facts(result_of(saved)))
    add_evaluation(saved, card_facts(result_of(saved, data_name="other")))
    load(saved, "cpu").save_pretrained(tmp_path / "copy")  # type: ignore[attr-defined]
    tables = tables_of(load(tmp_path / "copy", "cpu").provenance)  # type: ignore[attr-defined]
    assert [one.data for one in tables] == ["three | pictures", "other"]
    assert "### other, protocol full" in (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")


def test_a_result_of_another_model_is_refused(saved: Path) -> None:
    facts = card_facts(result_of(saved))
    card = (saved / "README.md").read_text(encoding="utf-8")
    with pytest.raises(UserError, match=r"the result is of another model \(0000\); evaluate this one"):
        add_evaluation(saved, {**facts, "model_hash": "0000"})
    with pytest.raises(UserError, match="it does not say of which"):
        add_evaluation(saved, {**facts, "model_hash": ""})
    with pytest.raises(UserError, match="the evaluation: rows"):
        add_evaluation(saved, {**facts, "rows": 3})
    assert (saved / "README.md").read_text(encoding="utf-8") == card


def test_an_altered_model_gets_no_card(saved: Path) -> None:
    facts = card_facts(result_of(saved))
    (saved / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer.json: altered or damaged"):
        add_evaluation(saved, facts)


def test_a_card_of_ones_own_is_not_replaced(saved: Path) -> None:
    facts = card_facts(result_of(saved))
    (saved / "README.md").write_text("mine")
    with pytest.raises(UserError, match=r"README.md: was changed since it was written, and would be replaced"):
        add_evaluation(saved, facts)
    assert (saved / "README.md").read_text() == "mine"
    (saved / "README.md").unlink()
    add_evaluation(saved, facts)
    assert "three" in (saved / "README.md").read_text()
