import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.index import Index
from tests.colour_model import ColourModel, colour_pictures


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    monkeypatch.chdir(tmp_path)
    data = colour_pictures(tmp_path / "photos", ["red", "green", "blue"])
    return Index.build(data, ColourModel(), tmp_path / "index", thumbnails=True)


def test_compacting_frees_what_is_gone(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    index.remove(["1-green"])
    assert main(["index", "compact", "index"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 pictures, 0.0 MiB before")
    assert "store: exact, exact: " in said
    assert len(list(Path("index/thumbnails").rglob("*.thumbnail"))) == 2


def test_rows_leave_as_numbers_and_lines(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "export", "index", "--out", "rows.npy"]) == 0
    assert "3 pictures, vectors of dimension 3: rows.npy" in capsys.readouterr().out
    lines = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["0-red", "1-green", "2-blue"]
    vectors = np.load("rows.npy")
    np.testing.assert_array_equal(vectors[1], index.picture_store.get(["1-green"])["1-green"].vector)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compact", "nowhere"], "nowhere: no index here"),
        (["export", "index", "--out", "rows.csv"], "cannot be written as '.csv'"),
        (["export", "index"], "--out"),
        (["compact", "index", "--fast"], "no option --fast"),
    ],
)
def test_mistakes_have_one_line(
    index: Index, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
