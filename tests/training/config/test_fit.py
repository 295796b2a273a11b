"""Configurations of fits: what YAML says comes back, and what cannot be is one line."""

from pathlib import Path

import pytest

from rungwise.core import UserError, dump_yaml, from_plain, load_yaml
from rungwise.models.subspace.methods._gmlda import GMLDAConfig
from rungwise.training.config import FitConfig, TrainConfig, load_config, load_run_config, load_training
from rungwise.training.config._fit import config_type

GRID = {"dimension": [2, 3], "regularisation": [0.1, 1.0]}


def test_yaml_says_it_all(tmp_path: Path) -> None:
    config = from_plain(FitConfig, {"model": {"kind": "gmlda", "alpha": 3}, "grid": GRID, "refit": False}, "a file")
    assert isinstance(config.model, GMLDAConfig)
    assert config.model.alpha == 3
    (tmp_path / "config.yaml").write_text(dump_yaml(config))
    assert load_yaml(FitConfig, tmp_path / "config.yaml") == config
    assert load_run_config(tmp_path / "config.yaml") == config
    assert len(list(config.points())) == 4


def test_the_family_of_the_model_decides_what_settings_there_are(tmp_path: Path) -> None:
    assert config_type({"model": "mvda"}) is FitConfig
    assert config_type({"model": {"kind": "vse"}}) is TrainConfig
    assert config_type({"model": {"kind": "nothing of the kind"}}) is TrainConfig
    file = tmp_path / "c.yaml"
    file.write_text("model: {kind: lcfs}\nepochs: [3]\n")
    with pytest.raises(UserError, match=r"c\.yaml: epochs: unexpected, there is no such setting"):
        load_config(str(file))
    file.write_text("model: {kind: lcfs, dimensions: 3}\n")
    with pytest.raises(UserError, match="model.dimensions: unexpected"):
        load_config(str(file))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grid": {"dimension": []}}, "grid: dimension has no values"),
        ({"grid": {"dimensio": [3]}}, "dimensio: unexpected"),
        ({"grid": {"dimension": [0]}}, "dimension: must be at least 1"),
        ({"grid": {"dimension": list(range(1, 200)), "pca": [0.001 * k for k in range(1, 100)]}}, "more than 10,000"),
        ({"snapshot": {"measure": "nDCG@10"}}, "needs degrees of relevance, which a fit does not read"),
        ({"model": {"kind": "vse"}}, "trained in steps, not fitted"),
        (
            {"model": {"kind": "cca", "regularisation": -1}},
            "regularisation: must be at least 0",
        ),
        (
            {"model": {"kind": "cca", "kernel": {"kind": "gaussian", "gamma": 0}}},
            "gamma: must be above 0",
        ),
    ],
)
def test_what_cannot_be_is_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        from_plain(FitConfig, settings, "a file")
    assert "\n" not in str(refused.value)


def test_a_training_takes_no_model_that_is_fitted() -> None:
    with pytest.raises(UserError, match="fitted, not trained in steps"):
        from_plain(TrainConfig, {"model": {"kind": "scm"}}, "a file")
    with pytest.raises(UserError, match="a fit, not a training"):
        load_training("scm")


def test_draws_have_the_seed_of_the_kernel() -> None:
    kernel = {"kind": "gaussian", "seed": 7}
    assert from_plain(FitConfig, {"model": {"kind": "cca", "kernel": kernel}}, "a file").seed == 7
    assert FitConfig().seed == 0
