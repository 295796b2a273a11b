import json
import re
import shutil
from pathlib import Path
from uuid import uuid4

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


@pytest.fixture
def pets_in_milvus(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an index on a double of a Milvus server."""
    pytest.importorskip("pymilvus")
    from tests.index.milvus_in_memory import Kept, client_of

    monkeypatch.setattr("pymilvus.MilvusClient", client_of(Kept()))
    return f"milvus://memory-{uuid4().hex}:19530/pets"


def test_compacting_frees_what_is_gone(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    index.remove(["1-green"])
    assert main(["index", "compact", "index"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 pictures: index\n0.0 MiB before, 0.0 MiB now\nof these, 0.0 MiB are rows\n")
    assert "store: exact, exact: " in said
    assert len(list(Path("index/thumbnails").rglob("*.thumbnail"))) == 2


def test_rows_leave_as_numbers_and_lines(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "export", "index", "--out", "rows.npy"]) == 0
    assert "3 pictures, vectors of dimension 3: rows.npy" in capsys.readouterr().out
    lines = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["0-red", "1-green", "2-blue"]
    vectors = np.load("rows.npy")
    np.testing.assert_array_equal(vectors[1], index.picture_store.get(["1-green"])["1-green"].vector)


def test_compacting_says_what_is_kept_for_readers(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    data = colour_pictures(Path("more"), ["red"] * 5)
    Index.build(data, ColourModel(), Path("table"), store="lance").remove(data.image_ids[:2])
    assert main(["index", "compact", "table"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\d MiB are versions that readers may still have open: compact after \d\d:\d\d\n", said)
    assert "indexes of words" in said


def test_an_address_has_its_slashes_and_what_is_unknown_is_not_said(
    pets_in_milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    where, data = pets_in_milvus, colour_pictures(tmp_path / "photos", ["red", "blue"])
    Index.build(data, ColourModel(), Path(where), store="milvus")
    assert main(["index", "compact", where]) == 0
    assert main(["index", "export", where, "--out", "rows.parquet"]) == 0
    assert main(["index", "backup", where, "--out", "kept"]) == 0
    assert main(["index", "restore", "kept", "--out", where]) == 2
    printed = capsys.readouterr()
    assert f"2 pictures: {where}\n" in printed.out
    assert f"{where}: an index stands here already" in printed.err
    assert "MiB before" not in printed.out
    assert not re.search("milvus:/[^/]", printed.out + printed.err)


def test_a_backup_and_the_way_back(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "backup", "index", "--out", "backup"]) == 0
    assert main(["index", "restore", "backup", "--check"]) == 0
    assert "all is well: 5 checks" in capsys.readouterr().out
    assert main(["verify", "backup"]) == 0
    assert "backup: a backup of an index" in capsys.readouterr().out
    shutil.rmtree("index")
    assert main(["index", "restore", "backup", "--out", "index"]) == 0
    assert "3 pictures, 3 captions restored to a store exact: index" in capsys.readouterr().out
    assert len(Index.open(Path("index"))) == 3
    Path("backup/captions.parquet").write_bytes(b"")
    assert main(["index", "restore", "backup", "--check"]) == 2
    assert main(["verify", "backup"]) == 2
    assert "captions.parquet: altered or damaged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["restore", "index"], "name the place of the index: --out; or --check"),
        (["restore", "index", "--out", "new"], "index: no backup here"),
        (["backup", "index", "--out", "photos"], "is no part of a backup"),
        (["backup", "nowhere", "--out", "new"], "nowhere: no index here"),
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
