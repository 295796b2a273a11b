import json
import shutil
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.cli.index import beside
from tests.published import CAPTIONS, Published, photos


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of pictures without captions, from where the commands are given."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, file in enumerate(photos()):
        (folder / f"{number}.jpg").write_bytes(file)
    monkeypatch.chdir(tmp_path)
    return folder


def test_without_a_model_and_without_a_network_it_says_what_to_fetch(
    pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert main(["index", "photos"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "no --model given: taking hf:google/siglip2-base-patch32-256"
    assert "Apache-2.0" in said.out
    assert "1.5 GB" in said.out
    assert len(said.err.strip().splitlines()) == 1
    assert "hf download google/siglip2-base-patch32-256" in said.err
    assert "give it as hf:siglip2-base-patch32-256" in said.err


def test_without_the_library_it_says_what_to_install_and_fetches_nothing(
    pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    assert main(["index", "photos"]) == 2
    said = capsys.readouterr().err
    assert "pip install 'rungwise[hf]'; or name a model: --model" in said


def test_a_folder_without_pictures_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    assert main(["index", str(tmp_path / "notes")]) == 2
    assert "no --model" not in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "prefix"), [("siglip2", "hf:"), ("open_clip", "open_clip:"), ("sentence", "st:")])
def test_with_a_folder_of_a_published_model_search_takes_two_commands(
    kind: str, prefix: str, pictures: Path, published: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shutil.copytree(getattr(published, kind), tmp_path / "model")
    assert main(["index", "photos", "--model", f"{prefix}model"]) == 0
    said = capsys.readouterr().out
    assert "5 pictures, 0 captions indexed" in said
    assert 'next: rungwise search photos.index "a text"' in said
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["search", "../photos.index", "a dog"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    stored = next(tmp_path.glob("photos.index/*.json")).read_text()
    assert json.loads(stored)["model_location"] == f"{prefix}{tmp_path / 'model'}"


def test_captions_and_queries_that_are_cut_are_counted(
    pictures: Path, published: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["image\tcaption", *(f"{number}.jpg\t{caption}" for number, caption in enumerate(CAPTIONS))]
    (pictures / "captions.tsv").write_text("\n".join(lines), encoding="utf-8")
    model = f"hf:{published.clip}"
    assert main(["index", "photos", "--model", model]) == 0
    assert "2 of 5 captions are longer than the 16 tokens that the model reads: cut" in capsys.readouterr().out
    assert main(["evaluate", model, "photos", "--split", "all", "--measures", "R@1"]) == 0
    assert "2 of 5 captions are longer than the 16 tokens" in capsys.readouterr().out
    assert main(["search", "photos.index", CAPTIONS[2]]) == 0
    assert "the text is longer than the 16 tokens that the model reads: cut" in capsys.readouterr().out


def test_the_index_stands_beside_the_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert beside(Path("photos/")) == Path("photos.index")
    assert beside(Path()) == tmp_path.with_name(f"{tmp_path.name}.index")
