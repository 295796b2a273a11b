"""Also tests rungwise.core._checks."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from rungwise.cli import main
from rungwise.cli.examine._verify import UNCHECKED
from rungwise.core import MissingExtraError
from rungwise.core.disk import SEAL, write_seal
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.encoders.row_cache import RowStore
from rungwise.evaluation import evaluate
from rungwise.models import ModelFacts
from rungwise.models._lazy_model import write_facts
from rungwise.relevance import CIDErD
from rungwise.relevance.human import Judgement
from rungwise.relevance.storage.pair_cache import Keys, PairCache
from rungwise.scenes import SceneConfig, generate
from tests.cli.test_commands import TINY
from tests.index.cutoff.test_cutoff import CALIBRATION


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each that rungwise makes."""
    folder = tmp_path_factory.mktemp("made")
    generate(folder / "scenes", SceneConfig(pictures=40, side=32, val_share=0.2, test_share=0.2))
    (folder / "tiny.yaml").write_text(TINY)
    cache = ["--cache", str(folder / "cache")]
    assert main(["train", str(folder / "tiny.yaml"), str(folder / "scenes"), "--out", str(folder / "run"), *cache]) == 0
    model = str(folder / "run" / "model")
    assert main(["index", str(folder / "scenes"), "--model", model, "--out", str(folder / "index"),
                 "--store", "exact"]) == 0  # fmt: skip
    CIDErD(["a dog", "a cat", "a red dog"], [0, 1, 1]).save(folder / "degrees", k=1)
    pairs = Keys(["a dog", "a cat"], "model", symmetric=False).of(np.array([0, 1]), np.array([1, 0]))
    (folder / "plain").mkdir()
    (folder / "plain" / "notes.txt").write_text("mine")
    PairCache(folder / "scores").add(pairs, np.array([0.5, 0.25], np.float32))
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


KINDS = {
    "index": "an index",
    "run": "a run",
    "run/model": "a model",
    "degrees": "degrees of relevance",
    "cache": "cached features or pictures",
    "scores": "scores of pairs",
}


def lines_of(output: str) -> list[str]:
    return output.splitlines()


@pytest.mark.parametrize("name", KINDS)
def test_what_is_sound_is_found_sound_and_nothing_is_written(
    name: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*")}
    assert main(["verify", str(made / name)]) == 0
    lines = lines_of(capsys.readouterr().out)
    assert lines[0] == f"{made / name}: {KINDS[name]}"
    assert all(line.startswith("ok: ") for line in lines[1:-1])
    assert re.fullmatch(r"all is well: \d+ checks?", lines[-1])
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*")} == before


@pytest.mark.parametrize("name", ["index", "run", "run/model"])
def test_a_missing_library_is_no_fault_of_what_is_checked(
    name: str, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object, **more: object) -> None:
        raise MissingExtraError("tokenizers", "the model")

    monkeypatch.setattr("rungwise.models._loading.load", fail)
    assert main(["verify", str(made / name)]) == 2
    said = capsys.readouterr()
    assert "wrong" not in said.out
    instead = ", or give --no-encode" if name == "index" else ""
    what = "encoding a sample anew" if name == "index" else "the model"
    assert said.err == f"rungwise verify: {what} needs tokenizers; run: pip install 'rungwise[train]'{instead}\n"


def test_a_missing_library_of_the_store_is_no_fault_of_the_index(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object, **more: object) -> None:
        raise MissingExtraError("lancedb", "an index")

    monkeypatch.setattr("rungwise.index.stores.factory.open_store", fail)
    assert main(["verify", str(made / "index"), "--no-encode"]) == 2
    said = capsys.readouterr()
    assert "wrong" not in said.out
    assert said.err == "rungwise verify: an index needs lancedb; run: pip install 'rungwise[search]'\n"


def flip(path: Path, at: float = 0.9) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 1
    path.write_bytes(data)


def nan_weights(folder: Path) -> None:
    path = folder / "run/model/model.safetensors"
    tensors = load_file(path)
    name = next(iter(sorted(tensors)))
    save_file(tensors | {name: tensors[name] * np.nan}, path)
    (folder / "run/model" / SEAL).unlink()
    write_seal(folder / "run/model")


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("index", lambda folder: flip(folder / "index/pictures/vectors-0.npy"), "vectors-0.npy: damaged"),
        ("index", lambda folder: flip(folder / "index/captions/rows-0.jsonl"), "rows-0.jsonl"),
        ("index", lambda folder: (folder / "index/mine.txt").touch(), "holds 'mine.txt'"),
        ("run", lambda folder: flip(folder / "run/config.yaml", 0.3), "run/config.yaml"),
        ("cache", lambda folder: [path.unlink() for path in folder.rglob("rows.bin")], "rows that keys.bin names"),
        ("run", lambda folder: flip(folder / "run/checkpoint.safetensors"), "checkpoint.safetensors"),
        ("run", lambda folder: flip(folder / "run/model/model.safetensors"), "model.safetensors: altered or damaged"),
        ("run/model", lambda folder: flip(folder / "run/model/README.md"), "README.md: altered or damaged"),
        ("run/model", nan_weights, "holds NaN or infinite numbers"),
        ("degrees", lambda folder: flip(folder / "degrees/values.npy"), "values.npy: altered or damaged"),
        ("cache", lambda folder: [flip(path) for path in folder.rglob("rows.bin")], "1 of 32 rows are damaged"),
        ("scores", lambda folder: flip(folder / "scores"), "1 of 2 scores are damaged"),
    ],
)
def test_what_is_wrong_is_named(
    name: str, damage: object, message: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(copy)
    assert main(["verify", str(copy / name), "--no-encode"]) == 2
    lines = lines_of(capsys.readouterr().out)
    assert [line for line in lines if line.startswith("wrong: ") and message in line]
    assert re.fullmatch(r"\d of \d+ checks? found something wrong(; 1 thing was not checked)?", lines[-1])


def test_options_of_an_index_are_refused_for_anything_else(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--model", "run/model"], ["--sample", "3"], ["--device", "cpu"]):
        assert main(["verify", str(copy / "run"), *option]) == 2
        error = capsys.readouterr().err
        assert error == f"rungwise verify: {option[0]} changes nothing for a run, and is for an index; leave it out\n"


def test_the_model_of_an_index_may_have_moved(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(copy / "run/model", copy / "elsewhere")
    assert main(["verify", str(copy / "index"), "--model", str(copy / "nowhere")]) == UNCHECKED
    assert "name the model with --model, or give --no-encode" in capsys.readouterr().out
    assert main(["verify", str(copy / "index"), "--model", str(copy / "elsewhere"), "--sample", "3"]) == 0
    assert "sample of pictures: 3 encoded anew" in capsys.readouterr().out
    assert main(["verify", str(copy / "index"), "--no-encode"]) == 0
    assert "encoded anew" not in capsys.readouterr().out


def test_any_sealed_folder_is_compared_with_its_seal(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(copy / "degrees", copy / "sealed")
    (copy / "sealed/relevance.json").unlink()
    assert main(["verify", str(copy / "sealed")]) == 2
    assert "relevance.json: missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "is not there"), ("plain", "nothing here that can be checked"), ("tiny.yaml", "nothing")],
)
def test_what_cannot_be_checked_is_one_line(
    name: str, message: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(made / name)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert main(["verify", str(made / "index"), "--sample", "0"]) == 2
    assert "--sample must be at least 1" in capsys.readouterr().err


def test_an_interrupted_cache_is_still_a_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RowStore(tmp_path / "features" / "a-2", (2,), np.float32)
    store.append([b"a" * 32, b"b" * 32], np.ones((2, 2)))
    keys = tmp_path / "features" / "a-2" / "keys.bin"
    keys.write_bytes(keys.read_bytes()[:-7])
    PairCache(tmp_path / "pair_scores")
    assert main(["verify", str(tmp_path)]) == UNCHECKED
    written = capsys.readouterr().out
    assert "1 rows of 8 bytes" in written
    assert "pair_scores: it holds no scores" in written
    (keys.parent / "rows.bin").unlink()
    assert main(["verify", str(tmp_path)]) == 2
    assert "lacks 1 rows that keys.bin names" in capsys.readouterr().out


def test_what_a_cache_holds_besides_is_named_and_not_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    RowStore(tmp_path / "features" / "a-2", (2,), np.float32).append([b"a" * 32], np.ones((1, 2)))
    (tmp_path / "degrees").mkdir()
    (tmp_path / "degrees" / "kept.json").write_text("{}")  # of a source of relevance, and its SHA256SUMS is gone
    (tmp_path / "empty").mkdir()
    (tmp_path / "pair_scores").write_bytes(b"damaged")
    (tmp_path / "pair_scores.lock").touch()
    (tmp_path / "above").symlink_to(tmp_path)
    write_facts(ModelFacts("f" * 64, 8, ""), tmp_path / "models" / "a.json")
    (tmp_path / "locked").mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: may(path, mode) and Path(path).name != "locked")
    assert main(["verify", str(tmp_path)]) == UNCHECKED
    lines = [line.replace(f"{tmp_path}/", "") for line in lines_of(capsys.readouterr().out)]
    assert lines[1:] == [
        "not checked: degrees: it holds 'kept.json', which is nothing that verify knows",
        "ok: features/a-2: 1 rows of 8 bytes, each as it was written",
        "not checked: locked: it may not be read; change its permissions",
        "ok: models: facts of models, each as it was written: 1",
        "not checked: above: it is nothing that verify knows",
        "not checked: pair_scores: it is nothing that verify knows",
        "2 checks found nothing wrong; 4 things were not checked",
    ]


def test_pictures_on_a_disk_that_is_away_are_not_checked(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (copy / "scenes").rglob("*.png"):
        path.unlink()
    assert main(["verify", str(copy / "index"), "--model", str(copy / "run/model")]) == UNCHECKED
    lines = lines_of(capsys.readouterr().out)
    assert [line for line in lines if line.startswith("not checked: sample of pictures: 32 of 32 files could not be")]
    assert re.fullmatch(r"\d+ checks found nothing wrong; 1 thing was not checked", lines[-1])


def test_degrees_without_their_seal_are_not_whole(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "degrees" / SEAL).unlink()
    assert main(["verify", str(copy / "degrees")]) == 2
    assert "SHA256SUMS: missing, so nobody knows whether the folder is whole" in capsys.readouterr().out


def test_single_files_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result, a calibration, judgements: sound, and with a bit flipped."""
    evaluate(similarity=np.eye(8), image_of_caption=np.arange(8)).to_json(tmp_path / "result.json")
    CALIBRATION.save(tmp_path / "calibration.json")
    said = Judgement("a", "a#0", 3, "Ada", "2024-05-01T12:00:00Z", hash_of_text("a dog"))
    (tmp_path / "people.jsonl").write_bytes(said.line() * 2)
    for name, what in (("result.json", "a result"), ("calibration.json", "a calibration"), ("people.jsonl", "judgem")):
        assert main(["verify", str(tmp_path / name)]) == 0
        assert what in capsys.readouterr().out
        flip(tmp_path / name)
        assert main(["verify", str(tmp_path / name)]) == 2
