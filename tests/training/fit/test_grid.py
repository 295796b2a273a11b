"""A fit from its configuration: the grid chooses on the validation split, and what is kept is whole."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import Check, UserError
from rungwise.data import FeatureRows, ImageCaptions
from rungwise.evaluation import EvaluationSettings, evaluate, positives_from_labels
from rungwise.models import load
from rungwise.models.subspace import CCA, LCFS
from rungwise.runs import is_run_folder, verify_run
from rungwise.training.config import Choice, FitConfig, load_config
from rungwise.training.fit import fit_run
from tests.training.conftest import Said

CLASSES = 4


def labelled(items: int = 160, captions: int = 1, seed: int = 0) -> ImageCaptions:
    """Documents whose features tell their class on both sides, with noise; 1 of 8 validates and 1 of 4 tests."""
    draw = np.random.default_rng(seed)
    own = draw.integers(0, CLASSES, items)
    means = draw.normal(size=(CLASSES, 12)), draw.normal(size=(CLASSES, 8))
    owners = np.repeat(np.arange(items), captions)
    images = (means[0][own] + draw.normal(size=(items, 12))).astype(np.float32)
    texts = (means[1][own[owners]] + draw.normal(size=(len(owners), 8))).astype(np.float32)
    return ImageCaptions(
        image_ids=tuple(f"i{k}" for k in range(items)),
        captions=tuple(f"t{k}" for k in range(len(owners))),
        image_of_caption=owners,
        splits=tuple("val" if k % 8 == 0 else "test" if k % 4 == 1 else "train" for k in range(items)),
        labels=tuple((f"class {label}",) for label in own),
        features=FeatureRows(images),
        text_features=FeatureRows(texts),
        name="documents",
    )


def of(kind: str, **grid: tuple[float, ...]) -> FitConfig:
    return replace(FitConfig(), model=load_config(f"{kind}/wikipedia").model, grid=grid)


@pytest.mark.parametrize("kind", ["cca", "scm", "gmlda", "gmmfa", "mvda", "mlcca", "lcfs", "lgcfl"])
def test_every_method_is_fitted_kept_and_better_than_chance(kind: str, tmp_path: Path) -> None:
    data = labelled()
    found = fit_run(of(kind, dimension=(2, 3)), data, tmp_path / "run")
    model, test = load(found.model_folder), data.split("test")
    scores = model.on(test)
    result = evaluate(
        **scores.for_evaluation(),
        image_of_caption=test.image_of_caption,
        protocol="labels",
        settings=EvaluationSettings(positives=positives_from_labels(test.labels, test.image_of_caption)),
    )
    assert model.kind == kind
    assert found.measure == "labels/MAP"
    assert min(result["i2t/MAP"], result["t2i/MAP"]) > 100 / CLASSES + 10
    assert is_run_folder(tmp_path / "run")
    assert [check for check in verify_run(tmp_path / "run") if check.wrong] == []


def test_a_grid_of_one_value_is_said(tmp_path: Path) -> None:
    said = Said()
    fit_run(of("cca", dimension=(2,)), labelled(), tmp_path / "run", watcher=said)
    assert [line.partition(":")[0] for line in said.lines] == ["grid.dimension tries one value, 2"]


def test_the_history_tells_what_was_tried_and_the_best_is_taken(tmp_path: Path) -> None:
    found = fit_run(of("gmlda", dimension=(1, 2), regularisation=(0.01, 100.0)), labelled(), tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert lines == found.history
    assert [line["settings"] for line in lines] == [
        {"dimension": size, "regularisation": ridge} for size in (1, 2) for ridge in (0.01, 100.0)
    ]
    best = max(lines, key=lambda line: line["labels/MAP"])
    assert found.chosen == best["settings"]
    assert found.value == best["labels/MAP"]
    facts = json.loads((found.model_folder / "config.json").read_text())
    assert facts["model"]["dimension"] == found.chosen["dimension"]
    assert facts["provenance"]["fitted_to"] == ["train", "val"]
    assert facts["provenance"]["chosen_by"] == found.measure
    assert len(facts["model"]["fitted"]["classes"]) == CLASSES


def test_without_refit_the_validation_split_stays_unseen(tmp_path: Path) -> None:
    data = labelled()
    found = fit_run(replace(of("cca", dimension=(3,)), refit=False), data, tmp_path / "held")
    train = data.split("train")
    alone = CCA(dimension=3).fit(train.features, train.text_features)
    vectors = load(found.model_folder).encode_text(data.text_features)
    assert np.allclose(vectors, alone.encode_text(data.text_features), atol=1e-5)
    again = fit_run(of("cca", dimension=(3,)), data, tmp_path / "both")
    assert not np.allclose(vectors, load(again.model_folder).encode_text(data.text_features), atol=1e-5)


def test_an_image_of_several_captions_stands_once_for_each(tmp_path: Path) -> None:
    data = labelled(captions=3)
    found = fit_run(replace(of("lcfs", sparsity=(0.1,)), refit=False), data, tmp_path)
    train = data.split("train")
    labels = [train.labels[owner] for owner in train.image_of_caption.tolist()]
    alone = LCFS().fit(train.features.take(train.image_of_caption), train.text_features, labels)
    vectors = load(found.model_folder).encode_text(data.text_features)
    assert np.allclose(vectors, alone.encode_text(data.text_features), atol=1e-4)


def test_data_without_labels_are_chosen_by_rsum(tmp_path: Path) -> None:
    data = replace(labelled(), labels=())
    found = fit_run(of("cca", dimension=(2, 4)), data, tmp_path / "run")
    assert found.measure == "rsum"
    with pytest.raises(UserError, match="documents has no class labels"):
        fit_run(replace(of("cca"), snapshot=Choice("MAP", "labels")), data, tmp_path / "other")


def test_items_without_a_label_are_counted_and_listed(tmp_path: Path) -> None:
    data = labelled()
    labels = tuple(() if k % 10 == 2 else own for k, own in enumerate(data.labels))
    found = fit_run(of("mvda", dimension=(3,)), replace(data, labels=labels), tmp_path)
    assert len(found.issues) == 1
    assert "left out" in found.issues[0].detail
    assert "no label" in (tmp_path / "skipped.txt").read_text()


def test_a_combination_that_cannot_be_fitted_is_told_and_passed_over(tmp_path: Path) -> None:
    data = labelled()
    alone = replace(data, labels=tuple((f"c{k}",) for k in range(len(data))))  # nobody shares a class
    with pytest.raises(UserError, match="every class has one item"):
        fit_run(replace(of("gmmfa"), snapshot=Choice()), alone, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_run_is_left_alone(tmp_path: Path) -> None:
    data, config = labelled(), of("cca", dimension=(2,))
    fit_run(config, data, tmp_path / "run")
    before = (tmp_path / "run" / "model" / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="holds a run already"):
        fit_run(config, data, tmp_path / "run")
    assert (tmp_path / "run" / "model" / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "why"), [("config.yaml", "is no run's configuration"), ("skipped.txt", "is of no run that stands here")]
)
def test_files_of_no_run_are_not_overwritten(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("years: of work")
    with pytest.raises(UserError, match=f"{name}: {why}, and would be overwritten; name another folder"):
        fit_run(of("cca", dimension=(2,)), labelled(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "years: of work"


def test_a_history_that_is_gone_is_found(tmp_path: Path) -> None:
    fit_run(of("cca", dimension=(2,)), labelled(), tmp_path)
    (tmp_path / "history.jsonl").unlink()
    wrong: list[Check] = [check for check in verify_run(tmp_path) if check.wrong]
    assert [check.what for check in wrong] == ["history.jsonl"]
    (tmp_path / "history.jsonl").write_text("{}\n")
    assert "history.jsonl: altered or damaged" in "".join(check.wrong for check in verify_run(tmp_path))
