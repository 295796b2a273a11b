"""Configurations of runs: what YAML says comes back, and what cannot be is one line that names the file.

Also tests rungwise.training.config._data.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rungwise.core import UserError, dump_yaml, from_plain, load_yaml
from rungwise.losses import Ladder, MaxOfHinges, Weighted
from rungwise.models import VSEConfig
from rungwise.models.io import FITTED, family
from rungwise.models.io._families import REGIONS
from rungwise.relevance.config import source_config
from rungwise.similarity import Order
from rungwise.training.batches._sampling import RelevanceAware
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.config._losses import LOSSES
from rungwise.training.steps import Plain
from rungwise.training.steps._strategies import CachedGradients, GlobalNegativesStep


def parsed(text: str, folder: Path) -> TrainConfig:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return load_yaml(TrainConfig, path)


def refused(text: str | bytes, folder: Path) -> str:
    path = folder / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as caught:
        load_yaml(TrainConfig, path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < 1000
    return message


def ours(kind: str) -> bool:
    """Whether a loss is the package's own, and none that a file of tests defines."""
    return LOSSES.named(kind).__module__.startswith("rungwise.")


WITHOUT_DEFAULTS = {"weighted": "losses: [sum_of_hinges, {kind: ladder, shares: [0.1]}], weights: [1.0, 0.5]"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        *(f"loss: {{kind: {kind}, {WITHOUT_DEFAULTS.get(kind, '')}}}" for kind in LOSSES.names() if ours(kind)),
        "loss: {kind: ladder, shares: [0.01]}",
        "loss: {kind: max_of_hinges, margin: 0.3, reduction: mean, mask_above: 0.5}",
        *(f"sampler: {kind}" for kind in ("shuffled", "by_length", "one_caption_per_image", "relevance_aware")),
        "sampler: {kind: relevance_aware, at_least: 0.3, below: 0.9, keep: 4, group: 2}",
        "sampler: {kind: label_lists, irrelevant: 3}",
        *(f"step: {kind}" for kind in ("plain", "cached_gradients", "global_negatives")),
        "step: {kind: cached_gradients, chunk: 7}",
        "step: {kind: global_negatives, chunk: 9}",
        *(f"model: {{similarity: {kind}}}" for kind in ("cosine", "inner", "order", "shifted_cosine")),
        "model: {similarity: {kind: order, root: true, absolute: true}}",
        "model: {kind: vse, image: {kind: features}}",
        "model: {image: {kind: features, width: 2048, l2_normalise: false}}",
        "model: {image: {backbone: resnet50, options: {pad_type: same}, mean: [0.5, 0.5, 0.5], crop: 0.9}}",
        "data: {relevance: tfidf, reference: batch}",
        "data: {relevance: some/folder, train: [train, restval], validation: dev, join_restval: true}",
        "data: {relevance: {kind: tfidf, tokenizer: unicode}}",
        "data: {relevance: {kind: cascade, coarse: {kind: tfidf, orders: 2}, threshold: 0.5}}",
        "data: {relevance: {kind: combine, of: [{kind: tfidf, orders: 2}, a/folder], weights: [1.0, 0.5]}}",
        "data: {relevance: '{kind: tfidf, tokenizer: unicode}'}",
    ],
)
def test_what_is_written_is_read_back(text: str, tmp_path: Path) -> None:
    config = parsed(text, tmp_path)
    (tmp_path / "again.yaml").write_text(dump_yaml(config), encoding="utf-8")
    again = load_yaml(TrainConfig, tmp_path / "again.yaml")
    assert again == config
    assert dump_yaml(again) == dump_yaml(config)


def test_what_yaml_says_is_what_is_run(tmp_path: Path) -> None:
    config = parsed(
        "model: {similarity: {kind: order, root: true}, dimension: 5}\n"
        "loss: {kind: weighted, losses: [max_of_hinges, {kind: ladder, thresholds: [0.5]}], weights: [1, 2]}\n"
        "sampler: {kind: relevance_aware, at_least: 0.3}\n"
        "step: {kind: cached_gradients, chunk: 7}\n",
        tmp_path,
    )
    assert config.model == VSEConfig(dimension=5, similarity=Order(root=True))
    members = (config_of(MaxOfHinges)(), config_of(Ladder)(thresholds=(0.5,)))
    assert config.loss == config_of(Weighted)(losses=members, weights=(1.0, 2.0))
    assert config.sampler == RelevanceAware(at_least=0.3)
    assert config.step == CachedGradients(chunk=7)
    assert parsed("step: global_negatives", tmp_path).step == GlobalNegativesStep()
    assert parsed("", tmp_path).step == Plain()


def test_a_source_with_options_is_the_one_that_is_built(tmp_path: Path) -> None:
    from rungwise.data import ImageCaptions

    config = parsed("data: {relevance: {kind: tfidf, tokenizer: unicode, orders: 2}}", tmp_path)
    assert source_config(config.data.relevance) == source_config({"kind": "tfidf", "tokenizer": "unicode", "orders": 2})
    data = ImageCaptions(("a", "b"), ("Ein Hund über Käse", "ein Hund"), np.array([0, 1]))
    assert source_config(config.data.relevance).build(data).shape == (2, 2)
    combined = parsed("data: {relevance: {kind: combine, of: [{kind: tfidf, orders: 2}, x/y]}}", tmp_path)
    parts = source_config(combined.data.relevance).of
    assert [source_config(parts[0]).orders, parts[1]] == [2, "x/y"]


@pytest.mark.parametrize(("text", "value"), [("2", 2), ("[2]", (2,))])
def test_one_number_is_a_list_of_one_phase(text, value, tmp_path):
    of_one_phase = TrainConfig(epochs=(2,), learning_rates=(2.0,))
    assert parsed(f"{{epochs: {text}, learning_rates: {text}}}", tmp_path) == of_one_phase
    assert TrainConfig(epochs=value, learning_rates=value) == of_one_phase
    assert from_plain(TrainConfig, {"epochs": value, "learning_rates": value}, "") == of_one_phase


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs: yes", "epochs: must be a list"),
        ("epochs: two", "epochs: must be a list"),
        ("epochs: 1.5", "epochs.0: must be a whole number"),
        ("- a\n- b\n", "expected a mapping of settings, found list"),
        ("epochs: [1\n", "not valid YAML"),
        (b"\xff\xfe\x00epochs", "is not UTF-8"),
        (b"loss: \xe4\n", "is not UTF-8"),
        ("seed: 2024-99-99", "not valid YAML"),
        ("a: " + "[" * 2_000, "not valid YAML"),
        ("epoch: [1]", "epoch"),
        (
            "epochs: [1]",
            "learning_rates 0.0002 2e-05 are two; write --epochs 1 --learning-rates 0.0002",
        ),
        ("{epochs: [], learning_rates: []}", "epochs: the number of its values must be at least 1"),
        ("epochs: [0, 1]", "epochs.0: must be at least 1"),
        ("batch_size: 0", "batch_size: must be at least 1"),
        ("clip_norm: 0", "clip_norm: must be above 0"),
        ("clip_norm: .nan", "clip_norm: "),
        ("weight_decay: -1", "weight_decay: must be at least 0"),
        ("weight_decay: .nan", "weight_decay"),
        ("learning_rates: [-1.0, 1.0]", "learning_rates"),
        ("learning_rates: [.nan, 1.0]", "learning_rates"),
        ("learning_rates: [.inf, 1.0]", "learning_rates"),
        ("warm_up_epochs: -1", "warm_up_epochs"),
        ("seed: -1", "seed"),
        ("seed: 100000000000000000000", "seed"),
        ("precision: float8", "precision"),
        ("loss: no_such_loss", "loss"),
        ("loss: {kind: max_of_hinges, marge: 0.1}", "loss"),
        ("loss: {kind: max_of_hinges, margin: wide}", "loss.*margin"),
        ("loss: {kind: contrastive_sum, temperature: 0}", "temperature must be above 0"),
        ("loss: 5", "loss"),
        ("sampler: nobody", "sampler"),
        ("sampler: {kind: by_length, pools: 2}", "sampler.by_length.pools"),
        ("step: {kind: plain, chunk: 2}", "step.plain.chunk"),
        ("step: [plain]", "step"),
        ("model: {similarity: {kind: hamming}}", "model.*similarity"),
        ("model: {dimension: 0}", "dimension: must be at least 1"),
        ("model: {text: {word_dimension: -3}}", "word_dimension: must be at least 1"),
        ("model: {image: {kind: features, backbone: resnet50}}", "model.*image.features.backbone"),
        ("data: {relevance: [tfidf]}", "data.relevance"),
        ("data: {relevance: {kind: bleu}}", "no source 'bleu'; there are cider-d"),
        ("data: {relevance: {tokenizer: ptb}}", "the mapping has no kind"),
        ("data: {relevance: {kind: tfidf, tokenizer: latin}}", "tokenizer"),
        ("data: {reference: caption}", "data.reference"),
        ("data: train", "data"),
    ],
)
def test_what_cannot_be_is_one_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    import re

    assert re.search(message, refused(text, tmp_path))


def test_every_field_is_in_the_file(tmp_path: Path) -> None:
    values = yaml.safe_load(dump_yaml(TrainConfig()))
    assert values["model"]["similarity"] == {"kind": "cosine"}
    assert values["step"] == {"kind": "plain"}
    assert values["loss"]["kind"] == "max_of_hinges"
    assert values["data"]["reference"] == "image"


def test_needs_relevance() -> None:
    assert not TrainConfig().needs_relevance
    assert TrainConfig(sampler=RelevanceAware()).needs_relevance
    assert TrainConfig(loss=config_of(Ladder)()).needs_relevance
    assert TrainConfig(loss=config_of(Ladder)(shares=(0.1,))).needs_relevance


def test_the_rate_of_an_epoch() -> None:
    config = TrainConfig(epochs=(2, 1, 3), learning_rates=(1.0, 0.5, 0.25))
    assert [config.learning_rate(epoch) for epoch in range(7)] == [1.0, 1.0, 0.5, 0.25, 0.25, 0.25, 0.25]
    assert config.total_epochs == 6


def test_no_family_loses_a_bound_of_the_settings_that_it_declares_anew() -> None:
    for kind in (*REGIONS, *FITTED, "vse"):
        own: Any = family(kind)
        assert [one.name for one in fields(own.config_type) if one.type == "int"] == [], kind
