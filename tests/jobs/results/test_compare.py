"""Also tests rungwise.jobs.results._systems."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rungwise
from rungwise.core import UserError
from rungwise.evaluation import Provenance, System, evaluate
from rungwise.runs import RunWithResults
from rungwise.training.config import TrainConfig


def result(noise=1.0, draw=0, seed=None, split="test", measures=("R@1", "rsum"), data="d", **more):
    scores = np.eye(30) + noise * np.random.default_rng(draw).random((30, 30))
    provenance = Provenance(data_hash=data, split=split, seed=seed)
    return evaluate(similarity=scores, image_of_caption=range(30), measures=measures, provenance=provenance, **more)


def compare(*systems, **more):
    return rungwise.compare(*systems, draws=99, quiet=True, **more)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of runs: two systems of three seeds, one of them with results of two splits; nothing is trained."""

    def find_runs(folders):
        found = []
        for number, name in enumerate(("plain", "ladder")):
            config = replace(TrainConfig(), ema=0.5 * number)
            for seed in range(3):
                results = [result(2 - number, 10 * number + seed, seed)]
                if name == "ladder":
                    results.append(result(2, seed, seed, split="val"))
                place = tmp_path / name / f"seed-{seed}"
                if any(place.is_relative_to(one.absolute()) for one in folders):
                    found.append(RunWithResults(place, replace(config, seed=seed), tuple(results)))
        return tuple(found), ("runs/broken: cannot be read: damaged",)

    monkeypatch.setattr("rungwise.runs._systems.find_runs", find_runs)
    monkeypatch.chdir(tmp_path)
    for name in ("plain", "ladder"):
        (tmp_path / name / "seed-0").mkdir(parents=True)
    return tmp_path


def test_folders_of_seeds_are_systems(folder):
    found = compare("plain", folder / "ladder")
    assert [(one.name, one.seeds) for one in found.systems] == [("plain", (0, 1, 2)), ("ladder", (0, 1, 2))]
    assert found["rsum"].seeds.count == 3
    assert "runs/broken: cannot be read: damaged" in found.remarks


def test_a_folder_of_several_systems_is_all_of_them(folder):
    assert [one.name for one in compare(".").systems] == ["./plain", "./ladder"]


def test_the_test_split_is_taken_of_several_and_this_is_said(folder):
    found = compare("ladder", System("given", tuple(result(2, 50 + seed, seed) for seed in range(3))))
    assert any(said.startswith("compared by split test, protocol full") for said in found.remarks) is False
    both = compare("ladder", "ladder", names=["one", "other"])
    assert any("they have split val, protocol full, data d as well" in said for said in both.remarks)
    assert compare("ladder", "ladder", split="val", names=["one", "other"]).systems[0].means["rsum"] == pytest.approx(
        np.mean([result(2, seed, seed, split="val")["rsum"] for seed in range(3)])
    )


def test_what_is_named_twice_gets_its_place(folder):
    assert [one.name for one in compare("plain", "plain").systems] == ["plain (1)", "plain (2)"]


def test_results_of_trainings_are_one_system(tmp_path):
    files = []
    for seed in range(2):
        files.append(tmp_path / f"{seed}.json")
        result(2, seed, seed).to_json(files[-1])
    found = compare(files, [result(1, 5 + seed, seed) for seed in range(2)], tmp_path)
    assert [(one.name, one.seeds) for one in found.systems][:2] == [("A", (0, 1)), ("B", (0, 1))]
    assert found.systems[2].seeds == (0, 1)
    assert found["rsum", "B"].seeds.count == 2


def test_degrees_of_one_system_do_not_keep_the_rest_from_being_compared(tmp_path):
    graded = result(1, 3, relevance=np.eye(30), measures=("R@1", "nDCG@5"))
    found = compare(graded, [result(2, 4)])
    assert [one.name for one in found.differences] == ["i2t/R@1", "t2i/R@1"]
    assert "i2t/nDCG@5" in found.only_in_some


def test_of_several_ways_one_must_be_named(tmp_path):
    for number, protocol in enumerate(("full", "one-caption-per-image")):
        result(2, number, protocol=protocol).to_json(tmp_path / f"{number}.json")
    with pytest.raises(UserError, match=r"evaluated in 2 ways: .*; name one of them by protocol="):
        compare(tmp_path, [result(1), result(1, protocol="one-caption-per-image")])
    assert compare(tmp_path, tmp_path, protocol="full").protocol == "full"
    with pytest.raises(UserError, match="has no such result; it has split test, protocol full"):
        compare(tmp_path, tmp_path, protocol="labels")


def test_degrees_are_named_by_the_beginning_of_their_name_in_any_letters():
    graded = [result(seed, seed, seed, relevance=np.eye(30), measures=("R@1", "nDCG@5")) for seed in (1, 2)]
    beginning = graded[0].relevance[:5]
    for given in (beginning.upper(), beginning.lower()):
        assert compare(*graded, relevance=given)["t2i/nDCG@5"]
    with pytest.raises(UserError, match="has no such result"):
        compare(*graded, relevance=f"no {beginning}")


def test_a_training_without_a_result_is_counted():
    found = compare(
        [result(2, 0, 0), result(2, 1, 1), result(2, 2, 2, split="val")],
        [result(1, 3, 0), result(1, 4, 1), result(1, 5, 2)],
    )
    assert "A: 1 of 3 trainings have no result of split test, protocol full, data d" in found.remarks


@pytest.mark.parametrize(
    ("systems", "more", "line"),
    [
        ([result()], {}, "there is one system, A; name two or more to compare"),
        ([], {}, "no system is named; name two or more to compare"),
        ([result(), result(2)], {"names": ["a"]}, "names= has 1 for 2 systems: A, B; give one for each"),
        ([result(), result(2)], {"names": ["a", "a"]}, "names= a a: two are equal"),
        ([result(), [5]], {}, "systems[1]=5: give a list of results or of their files"),
        ([result(), "nowhere.json"], {}, "nowhere.json: no such file"),
        ([result(), result(2, data="other")], {}, "B cannot be compared with A: data hash other against d"),
        ([result(), result(2, split="val")], {"split": "test"}, "B: has no such result; it has split val"),
        ([result(measures=["R@1"])] * 2, {"primary": "rsum"}, "primary= rsum is not compared"),
    ],
)
def test_a_mistake_is_one_line(systems, more, line):
    with pytest.raises(UserError) as caught:
        compare(*systems, **more)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_written_is_what_is_returned(tmp_path):
    found = compare(result(2), result(1), out=tmp_path / "c.json")
    assert rungwise.Comparison.from_json(tmp_path / "c.json") == found
    assert json.loads(Path(tmp_path / "c.json").read_text())["primary"] == "rsum"


def test_a_result_that_is_read_is_not_written_over(tmp_path):
    result().to_json(tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    for call in (
        lambda: compare(tmp_path / "a.json", result(2), out=tmp_path / "a.json"),
        lambda: rungwise.table(runs=[tmp_path / "a.json"], out=tmp_path / "a.json", quiet=True),
        lambda: rungwise.plot([tmp_path / "a.json"], csv=tmp_path / "a.json", quiet=True),
    ):
        with pytest.raises(UserError, match=r"a\.json: is one of the results that are read; name another file"):
            call()
    with pytest.raises(UserError, match="out= and csv= name one file twice"):
        rungwise.plot([tmp_path / "a.json"], out=tmp_path / "p.svg", csv=tmp_path / "p.svg", quiet=True)
    assert (tmp_path / "a.json").read_bytes() == before


def test_a_table_lists_what_cannot_be_read_and_what_is_not_there(tmp_path):
    result().to_json(tmp_path / "a.json")
    (tmp_path / "broken.json").write_text("{")
    found = rungwise.table(runs=[tmp_path / "a.json", tmp_path / "broken.json"], quiet=True)
    assert any("broken.json" in said for said in found.left_out)
    for more, line in (
        ({"split": "val"}, "no system has such a result; there are split test, protocol full"),
        ({"measures": ["r@1"]}, "there is no measure 'r@1'|r@1"),
        ({"level": 2.0}, "level must lie between 0 and 1"),
        ({"draws": 0}, "draws= must be at least 1, got 0"),
    ):
        with pytest.raises(UserError, match=line):
            rungwise.table(runs=[tmp_path / "a.json"], quiet=True, **more)


def test_a_folder_that_may_not_be_read_is_one_line(tmp_path, monkeypatch):
    real = os.scandir

    def forbidden(path="."):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    (tmp_path / "closed").mkdir()
    with pytest.raises(UserError, match=r"closed: cannot be read \(permission denied\)"):
        compare(tmp_path / "closed", result())
    result(measures=("R@1", "R@5", "R@10", "MedR")).to_json(tmp_path / "a.json")
    for call in (rungwise.table, rungwise.plot):
        given = [tmp_path / "a.json", tmp_path / "closed"]
        found = call(given, quiet=True) if call is rungwise.plot else call(runs=given, quiet=True)
        assert any("closed: cannot be read (permission denied)" in line for line in found.left_out)
