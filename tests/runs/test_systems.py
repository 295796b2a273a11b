from dataclasses import replace
from pathlib import Path

import numpy as np

from rungwise.evaluation import ResultQuestion, evaluate
from rungwise.runs import RunWithResults, by_question, systems_of
from rungwise.training.config import DataConfig, TrainConfig


def run_of(folder, results=(), **changes):
    return RunWithResults(Path(folder), replace(TrainConfig(), **changes), tuple(results))


def measured(measures=("R@1",), seed=0, **more):
    scores = np.random.default_rng(seed).normal(size=(6, 6))
    return evaluate(similarity=scores, image_of_caption=range(6), measures=list(measures), **more)


def test_runs_that_differ_in_their_seed_are_one_system():
    runs = [run_of(f"out/one/seed-{seed}", seed=seed, logs=("jsonl",)) for seed in (2, 0)]
    runs += [run_of(f"out/two/seed-{seed}", seed=seed, ema=0.9, data=DataConfig(path=f"{seed}")) for seed in (0, 1)]
    found = systems_of(runs)
    assert [(one.name, [run.config.seed for run in one.runs]) for one in found] == [("one", [0, 2]), ("two", [0, 1])]
    assert found[1].config.ema == 0.9


def test_a_system_alone_is_named_by_its_folder():
    assert [one.name for one in systems_of([run_of("out/vsepp")])] == ["vsepp"]
    assert [one.name for one in systems_of([run_of(f"out/vsepp/seed-{seed}", seed=seed) for seed in (0, 1)])] == [
        "vsepp"
    ]


def test_names_keep_what_tells_folders_apart():
    runs = [run_of("a/run"), run_of("b/run", ema=0.5)]
    assert [one.name for one in systems_of(runs)] == ["a/run", "b/run"]


def test_two_runs_of_one_seed_are_two_systems():
    assert [one.name for one in systems_of([run_of("out/first"), run_of("out/again")])] == ["first", "again"]


def test_seeds_of_other_settings_in_one_folder_have_their_own_names():
    runs = [run_of("out/seed-0", seed=0), run_of("out/seed-1", seed=1, ema=0.5)]
    assert [one.name for one in systems_of(runs)] == ["seed-0", "seed-1"]


def test_results_of_a_system_stand_under_their_question():
    graded = measured(["nDCG@2"], relevance=np.eye(6))
    runs = [
        run_of("out/seed-0", [measured(), graded], seed=0),
        run_of("out/seed-1", [measured(seed=1)], seed=1),
    ]
    (system,) = systems_of(runs)
    found = system.results()
    assert [len(own) for own in found.values()] == [1, 1]
    first = found[ResultQuestion.of(graded)][0]
    assert {"i2t/R@1", "i2t/nDCG@2"} <= set(first)
    assert first.per_query("i2t/R@1").tolist() == measured().per_query("i2t/R@1").tolist()


def test_measures_without_degrees_join_those_of_every_source():
    plain, one = measured(), measured(["nDCG@2"], relevance=np.eye(6))
    other = measured(["nDCG@2"], relevance=np.full((6, 6), 0.5))
    found = by_question([one, plain, other])
    assert len(found) == 2
    assert all({"i2t/R@1", "i2t/nDCG@2"} <= set(each) for each in found)
    assert [each["i2t/nDCG@2"] for each in found] == [one["i2t/nDCG@2"], other["i2t/nDCG@2"]]
    assert by_question([plain]) == [plain]
