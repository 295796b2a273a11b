import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rungwise.core import UserError
from rungwise.runs import SEEDS, Spread, checked_seeds, train_seeds
from rungwise.runs import _seeds as module
from rungwise.runs._results import kept_results
from tests.training.conftest import Said, files


@pytest.fixture
def short(config):
    return replace(config, epochs=(1,), learning_rates=(1e-2,))


@pytest.fixture
def tested(coloured):
    """The same pictures with a test split, and what colour they are as labels."""
    splits = tuple("test" if at >= 42 else split for at, split in enumerate(coloured.splits))
    return replace(coloured, splits=splits, labels=tuple((str(at % 4),) for at in range(len(coloured))))


def test_every_seed_is_a_run_and_their_numbers_come_together(short, tested, cache, tmp_path):
    found = train_seeds(short, tested, tmp_path / "runs", [3, 0], device="cpu", cache=cache)
    assert found.finished
    assert sorted(found.folders) == [0, 3]
    read = json.loads((tmp_path / "runs" / SEEDS).read_text())
    for seed, folder in found.folders.items():
        assert folder == tmp_path / "runs" / f"seed-{seed}"
        assert {"config.yaml", "model", "checkpoint.safetensors", "history.jsonl", "results"} <= files(folder)
        history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
        assert read["seeds"][str(seed)]["validation"]["rsum"] == history[0]["rsum"]
    values = [read["seeds"][seed]["validation"]["rsum"] for seed in ("0", "3")]
    assert found.validation["rsum"].values == tuple(values)
    mean, deviation, low, high = read["spreads"]["validation"]["rsum"]
    assert (mean, deviation) == (pytest.approx(np.mean(values)), pytest.approx(np.std(values, ddof=1)))
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 1, np.mean(values), stats.sem(values)))
    assert set(found.test) == {"full", "labels"}
    lower = min(("0", "3"), key=lambda seed: read["seeds"][seed]["test full"]["rsum"])
    assert found.median == {"full": int(lower)}
    kept = {one.result.protocol: one.result for one in kept_results(found.folders[3])}
    assert kept["labels"].numbers["i2t/MAP"] == read["seeds"]["3"]["test labels"]["i2t/MAP"]
    assert (kept["full"].split, kept["full"].seed, kept["full"].queries["i2t"]) == ("test", 3, 6)


def test_a_warm_up_as_long_as_the_runs_is_refused_for_seeds_too(short, coloured, tmp_path):
    with pytest.raises(UserError, match="warm_up_epochs 1 covers the whole run of 1 epoch"):
        train_seeds(replace(short, warm_up_epochs=1), coloured, tmp_path / "runs", [0, 1], device="cpu")


def test_the_seeds_are_of_different_models_and_equal_a_run_of_their_own(short, coloured, cache, tmp_path):
    found = train_seeds(short, coloured, tmp_path / "runs", [0, 1], device="cpu", cache=cache)
    assert found.test == {}
    alone = module.run_stages(replace(short, seed=1), coloured, tmp_path / "alone", cache=cache)
    weights = [
        (folder / "model.safetensors").read_bytes()
        for folder in (*(found.folders[seed] / "model" for seed in (0, 1)), alone.model_folder)
    ]
    assert weights[1] == weights[2] != weights[0]


def test_resume_skips_what_is_finished_and_goes_on_with_the_rest(short, coloured, cache, tmp_path, monkeypatch):
    out, begun = tmp_path / "runs", []
    train = module.run_stages

    def watched(config, data, folder, **more):
        begun.append((config.seed, more["resume"]))
        if config.seed == 1 and not more["resume"]:
            found = train(config, data, folder, **more)
            return replace(found, finished=False)
        return train(config, data, folder, **more)

    monkeypatch.setattr(module, "run_stages", watched)
    found = train_seeds(short, coloured, out, [0, 1, 2], device="cpu", cache=cache)
    assert not found.finished
    assert not (out / "seed-2").exists()
    said = Said()
    found = train_seeds(short, coloured, out, [0, 1, 2], device="cpu", cache=cache, resume=True, watcher=said)
    assert begun == [(0, False), (1, False), (1, True), (2, False)]
    assert [len(spread.values) for spread in found.validation.values()] == [3] * len(found.validation)
    assert [line for line in said.lines if line.startswith("seed")] == [
        f"seed 1 (2 of 3): {out / 'seed-1'}",
        f"seed 2 (3 of 3): {out / 'seed-2'}",
    ]
    longer = replace(short, epochs=(2,))
    begun.clear()
    train_seeds(longer, coloured, out, [0, 1], device="cpu", cache=cache, resume=True)
    assert begun == [(0, True), (1, True)]  # the numbers of shorter runs are not those of longer ones


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ([], "seeds: none are given"),
        ([0, 1, 0], "seeds: 0 stands twice in 0 1 0; give each seed once"),
        ([5, 5, 5], "seeds: 5 stands 3 times"),
        ([0, -1], r"seeds: -1 in 0 -1 does not lie in 0..4294967295"),
        ([1 << 32], "seeds: 4294967296 in 4294967296 does not lie"),
    ],
)
def test_a_list_that_is_none_is_refused_in_one_line(seeds, said, short, coloured, tmp_path):
    with pytest.raises(UserError, match=said) as caught:
        train_seeds(short, coloured, tmp_path / "runs", seeds)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()
    assert checked_seeds([0, (1 << 32) - 1]) == (0, (1 << 32) - 1)


def test_folders_that_stand_are_not_overwritten(short, coloured, tmp_path):
    (tmp_path / "seed-1").mkdir()
    with pytest.raises(UserError, match="seed-1: holds a run already; go on with it"):
        train_seeds(short, coloured, tmp_path, [0, 1])
    assert not (tmp_path / "seed-0").exists()
    (tmp_path / SEEDS).write_text("mine")
    with pytest.raises(UserError, match=r"seeds.json: of other runs, and would be overwritten"):
        train_seeds(short, coloured, tmp_path, [0])


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": "rungwise-seeds/2", "asked": "", "seeds": {}, "spreads": {}}',
        '{"format": "rungwise-seeds/1", "asked": "", "seeds": {"x": {}}, "spreads": {}}',
        '{"format": "rungwise-seeds/1", "asked": "", "seeds": {"0": {"validation": {"rsum": "much"}}}, "spreads": {}}',
    ],
)
def test_a_damaged_file_of_seeds_is_refused(content, short, coloured, tmp_path):
    (tmp_path / SEEDS).write_text(content)
    with pytest.raises(UserError, match=r"seeds\.json") as caught:
        train_seeds(short, coloured, tmp_path, [0], resume=True)
    assert "\n" not in str(caught.value)


def test_one_seed_has_no_interval():
    assert math.isnan(Spread((1.0,)).deviation)
    assert all(math.isnan(bound) for bound in Spread((1.0,)).interval)


def test_a_part_of_a_test_split_is_under_no_name_of_a_dataset(tested):
    part = tested.split("test")
    assert module._protocols(part, "flickr8k") == ("full", "labels")
