import pytest

from rungwise.cli import main
from tests.runs.curves.worlds import result


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        result(seed).to_json(tmp_path / f"r{seed}.json")
    return ["r0.json", "r1.json"]


def test_a_picture_is_written_where_none_is_named(files, tmp_path, capsys):
    assert main(["plot", *files, "--kind", "recall"]) == 0
    assert capsys.readouterr().out == "written: plot.svg\n"
    before = (tmp_path / "plot.svg").read_bytes()
    assert main(["plot", files[0], "--kind", "recall"]) == 0  # an earlier picture gives way
    assert (tmp_path / "plot.svg").read_bytes() != before


@pytest.mark.parametrize("content", [b"<svg>mine</svg>", b""])
def test_another_file_of_that_name_is_left_alone(content, files, tmp_path, capsys):
    (tmp_path / "plot.svg").write_bytes(content)
    assert main(["plot", *files]) == 2
    assert "plot.svg: is no picture of rungwise plot, and would be replaced; name a file with --out" in (
        capsys.readouterr().err
    )
    assert (tmp_path / "plot.svg").read_bytes() == content
    assert main(["plot", *files, "--out", "plot.svg"]) == 0  # what a person names is an order


def test_points_alone_need_no_picture(files, tmp_path):
    assert main(["plot", *files, "--csv", "points.csv"]) == 0
    assert {one.name for one in tmp_path.iterdir()} == {"r0.json", "r1.json", "points.csv"}


def test_what_cannot_be_drawn_is_one_line(files, capsys):
    assert main(["plot", *files, "--by", "ema"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("rungwise plot: --by ema: no run has this setting")
    assert main(["plot", *files, "--out", "a.txt"]) == 2
    assert "a picture ends with .svg, .png or .pdf" in capsys.readouterr().err
