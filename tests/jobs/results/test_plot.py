import json

import pytest

import rungwise
from rungwise.core import UserError, dump_yaml
from rungwise.jobs import Plot, plotted
from tests.runs.curves.worlds import config, result, row


def run_folder(folder, rows, **changes):
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text("{}")
    (folder / "config.yaml").write_text(dump_yaml(config(**changes)))
    (folder / "history.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder


@pytest.fixture
def runs(tmp_path):
    for seed in (0, 1):
        run_folder(tmp_path / "runs" / "vsepp" / f"seed-{seed}", [row(1, rsum=seed), row(2, rsum=4)], seed=seed)
    run_folder(tmp_path / "runs" / "sam", [row(1), row(2)], ema=0.5)
    return tmp_path / "runs"


def names_of(plot, part=0):
    return [one.name for one in plot.parts[part].panels[0].curves]


def test_folders_of_runs_are_drawn_and_written(runs, tmp_path, capsys):
    found = plotted(Plot((str(runs),), out=(tmp_path / "a.svg", tmp_path / "a.png"), csv=tmp_path / "a.csv"))
    assert names_of(found) == ["sam", "vsepp"]
    assert found.kinds == ("epochs",)
    assert {path.name for path in tmp_path.glob("a.*")} == {"a.svg", "a.png", "a.csv"}
    out = capsys.readouterr().out
    assert "left out: recall: sam: has no results yet; rungwise evaluate" in out
    assert out.count("written: ") == 3


def test_one_unreadable_run_is_a_line(runs, capsys):
    (runs / "sam" / "config.yaml").write_text("loss: theirs\n")
    broken = runs / "broken.json"
    broken.write_text("{")
    found = rungwise.plot([runs, broken, result()], kind=["epochs", "recall"])
    assert found.kinds == ("epochs", "recall")
    assert names_of(found) == ["vsepp"]
    assert names_of(found, 1) == ["result 3", "chance"]
    assert any("broken.json" in one for one in found.left_out)
    assert any("sam: cannot be read" in one for one in found.left_out)


def test_curves_get_names(runs):
    assert names_of(rungwise.plot(runs, names=["SAM", "VSE++"], quiet=True)) == ["SAM", "VSE++"]
    with pytest.raises(UserError, match="names= has 1 for 2 systems: sam, vsepp; give one for each"):
        rungwise.plot(runs, names=["SAM"])
    with pytest.raises(UserError, match="two are equal"):
        rungwise.plot(runs, names=["SAM", "SAM"])


def test_results_of_one_file_name_keep_apart(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        result().to_json(tmp_path / name / "r.json")
    found = rungwise.plot([tmp_path / "a" / "r.json", tmp_path / "b" / "r.json"], quiet=True)
    assert names_of(found) == ["r", str(tmp_path / "b" / "r.json"), "chance"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([],), "no run is named"),
        (([5],), "runs=5: give folders of runs, results, or their files"),
        (("nowhere",), "nowhere: is no folder"),
    ],
)
def test_what_is_no_run_is_refused(given, said):
    with pytest.raises(UserError, match=said):
        rungwise.plot(*given)


def test_a_wrong_file_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(UserError, match=r"config\.yaml: a picture ends with"):
        rungwise.plot("nowhere", out=tmp_path / "config.yaml")


def test_a_plot_without_anything_to_draw_says_why(runs):
    with pytest.raises(UserError, match="nothing can be drawn: recall: sam: has no results yet; rungwise evaluate"):
        rungwise.plot(runs, kind=["recall"])
