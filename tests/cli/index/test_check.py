import json
from dataclasses import replace
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from rungwise.cli import main
from rungwise.data import read
from rungwise.encoders.images import ImageConfig
from rungwise.index import Index
from rungwise.index.stores.lance import store as lance
from rungwise.models import JointEmbedding, VSEConfig, load_dual_encoder
from rungwise.quality import Latency, Trial, Tuning
from rungwise.quality import _tuning as tuning
from rungwise.scenes import SceneConfig, generate


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    data = generate(folder / "scenes", SceneConfig(pictures=40, side=32))
    image = ImageConfig("test_resnet", weights="random", size=32)
    model = JointEmbedding.create(VSEConfig(image=image, dimension=16), data.captions)
    model.save_pretrained(folder / "model")
    Index.build(data, model, folder / "index", model_location=str(folder / "model"), store="exact")
    (folder / "queries.txt").write_text("a red circle\n\na blue square\n")
    (folder / "blank.txt").write_text("\n \n")
    return folder


def said(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str, str]:
    code = main(["check", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_an_exact_index_says_so_and_is_measured_all_the_same(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, [str(made / "index"), "--number", "9"])
    assert code == 0
    captions = Index.open(made / "index").caption_store.count()
    assert f"queries: 9 captions of the index, drawn at random from {captions}, k 10" in out
    _, out, _ = said(capsys, [str(made / "index"), "--number", "9999"])
    assert f"queries: {captions} captions of the index, k 10" in out
    assert "every picture is compared, so that none is missed" in out
    assert "nDCG@10, %" in out


@pytest.mark.parametrize("queries", ["captions", "pictures", "queries.txt"])
def test_everything_comes_as_json(made: Path, capsys: pytest.CaptureFixture[str], queries: str) -> None:
    asked = str(made / queries) if queries.endswith("txt") else queries
    where = "format == 'PNG' or not format == 'PNG'"
    code, out, _ = said(capsys, [str(made / "index"), "--queries", asked, "--where", where, "--k", "3", "--json"])
    found = json.loads(out)
    assert code == 0
    assert found["kind"] == ("texts" if queries.endswith("txt") else queries)
    assert [case["where"] for case in found["cases"]] == ["", where]
    assert found["cases"][0]["losses"] == found["cases"][1]["losses"]
    assert found["cases"][0]["pictures"] == found["cases"][1]["pictures"] == 40


@pytest.fixture(scope="module")
def table(made: Path) -> str:
    """A table of LanceDB that holds the vectors of the index, but of every second picture."""
    index = Index.open(made / "index")
    rows = index.picture_store.get(list(index.picture_store.ids()))
    kept = list(rows.items())[::2]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([x for _, row in kept for x in row.vector.tolist()]), 16)
    database = lancedb.connect(str(made / "database"))
    database.create_table("photos", pa.table({"file": [one for one, _ in kept], "vector": vectors}))
    return f"lancedb://{made}/database/photos?id=file"


def test_another_engine_is_asked_and_told_where_its_lists_should_end(
    made: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in (made / "database").rglob("*") if path.is_file()}
    code, out, _ = said(capsys, [str(made / "index"), "--against", table, "--number", "20"])
    assert code == 0
    assert "20 vectors; the index has 40 pictures" in out
    assert "engine - exact" in out
    assert "queries miss a picture that the exact search finds" in out
    assert "where its lists should end (no judgements" in out
    assert max(map(len, out.splitlines())) <= 80 or "lancedb" not in out
    assert {path: path.read_bytes() for path in (made / "database").rglob("*") if path.is_file()} == before
    _, out, _ = said(capsys, [str(made / "index"), "--against", table, "--number", "20", "--json"])
    found = json.loads(out)
    assert (found["rows"], found["pictures"], found["k"]) == (20, 40, 10)
    assert 0 < found["recall"]["value"] < 100
    assert 0 <= found["ends"]["after"] <= 100


def test_ends_are_left_out_where_nothing_can_judge_them(
    made: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, [str(made / "index"), "--against", table, "--queries", "pictures", "--number", "5"])
    assert code == 0
    assert "ends: not judged, since pictures are asked for" in out
    assert "where its lists" not in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--against", "weaviate://localhost/photos"], "no address of an engine; write faiss:FILE"),
        (["--against", "lancedb://{made}/database/films"], "cannot be asked"),
        (["--against", "faiss:nowhere.faiss", "--tune"], "--tune changes nothing beside --against"),
        (["--against", "faiss:nowhere.faiss", "--where", "width > 3"], "--where changes nothing beside --against"),
        (["--queries", "nowhere.txt"], "no such file; name a file with one query a line"),
        (["--queries", "{made}/blank.txt"], "blank.txt: the file is empty"),
        (["--k", "0"], "--k must be at least 1, got 0"),
        (["--number", "0"], "--number must be at least 1, got 0"),
        (["--loss", "0.1"], "--loss changes nothing without --tune"),
        (["--tune", "--loss", "2"], "--loss must be a share"),
        (["--tune"], "there is nothing to tune"),
        (["--model", "some"], "--model changes nothing without --queries FILE or --against"),
        (["--relevance", "bleu"], "bleu"),
        (["--relevance", "{made}/none.npy"], "none.npy"),
        (["--where", "year >="], "expected a value"),
        (["--where", "width > 3000"], "no picture fulfils width > 3000"),
        (["--where", "yaer > 3000"], "no picture has a column 'yaer'"),
        (["--where", "modified > '01.05.2020'"], "could be 2020-05-01 or 2020-01-05"),
    ],
)
def test_mistakes_are_said_in_one_line(
    made: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    code, _, error = said(capsys, [str(made / "index"), *(one.format(made=made) for one in arguments)])
    assert code == 2
    assert says in error
    assert error.count("\n") == 1


def test_a_place_without_an_index_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = said(capsys, [str(tmp_path / "nothing")])
    assert code == 2
    assert "no index here" in error


@pytest.fixture
def approximate(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of LanceDB with an approximate index, though it is small."""
    monkeypatch.setattr(lance, "MAPPED_FROM_ROWS", 1)
    monkeypatch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1)
    model = load_dual_encoder(str(made / "model"), "cpu")
    Index.build(read(made / "scenes"), model, tmp_path / "index", store="lance").compact()
    return tmp_path / "index"


def test_an_approximate_index_is_compared_tuned_and_keeps_what_was_chosen(
    approximate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    few = ["--number", "5", "--k", "3"]
    code, out, _ = said(capsys, [str(approximate), *few])
    assert code == 0
    assert "recall@3, %" in out
    assert "queries miss a picture that the exact search finds" in out
    code, out, error = said(
        capsys, [str(approximate), "--number", "5", "--k", "3", "--tune", "--loss", "0.9", "--json"]
    )
    assert code == 0
    chosen = json.loads(out)["tuning"]["chosen"]["settings"]
    assert "kept" in error
    index = Index.open(approximate).picture_store.approximate_index
    assert index is not None
    assert (index.settings.probes, index.settings.refine) == (chosen["probes"], chosen["refine"])


def test_a_table_of_settings_is_printed(approximate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Index.open(approximate)
    code, out, error = said(capsys, [str(approximate), "--number", "3", "--tune", "--loss-in", "ndcg", "--loss", "0.5"])
    assert code == 0
    assert "may be lost: 0.5 of nDCG" in out
    assert "as it was" in out
    assert "chosen" in out
    assert opened.is_replaced() == ("from now on" in error)


def test_the_setting_that_stays_is_marked_as_both(
    approximate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index.open(approximate).picture_store.approximate_index
    assert index is not None
    before = index.settings
    stays, slower = (
        Trial(one, 100.0, 0.0, Latency(ms, ms)) for one, ms in ((before, 1.0), (replace(before, probes=999), 2.0))
    )
    monkeypatch.setattr(tuning, "tune", lambda *_, **__: Tuning((stays, slower), before, "recall", 0.001, stays))
    code, out, error = said(capsys, [str(approximate), "--number", "3", "--tune"])
    assert code == 0
    assert "chosen" in out
    assert "as it was" in out
    assert "kept as it is" in error
    after = Index.open(approximate).picture_store.approximate_index
    assert after is not None
    assert after.settings == before
