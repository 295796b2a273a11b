import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rungwise import data
from rungwise.cli import main
from rungwise.cli.index._command import WITHHELD
from rungwise.index import Index
from rungwise.jobs.index import _build as commands
from rungwise.jobs.index import beside
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
    assert "pip install 'rungwise[search,hf]'; or name a model: --model" in said


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
    assert main(["search", "../photos.index", "a dog", "--end", "off"]) == 0
    place, *hits = capsys.readouterr().out.splitlines()
    assert place == "files in ../photos"
    # A model of random numbers finds pictures alike, and these stand in one line.
    assert sum(1 + int(alike[1]) if (alike := re.search(r"\+(\d+) alike", hit)) else 1 for hit in hits) == 5
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


@pytest.fixture
def model(published: Published) -> str:
    return f"hf:{published.siglip2}"


def test_the_same_command_again_touches_only_what_changed(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "table.csv").write_text("image,title,year,tags\n0.jpg,A dog,2020,sea;sun\n1.jpg,A cat,2021,\n")
    assert main(["index", "photos", "--model", model, "--explain"]) == 0
    said = capsys.readouterr().out
    assert "columns to filter a search by: title (texts), year (numbers), tags (lists of texts)" in said
    assert "5 added, 0 changed, 0 removed, 0 unchanged (5 encoded)" in said
    assert "store: " in said
    (pictures / "new.jpg").write_bytes((pictures / "0.jpg").read_bytes())
    (pictures / "2.jpg").write_bytes(b"no picture")
    (pictures / "3.jpg").unlink()
    for changed in ("1 added, 0 changed, 2 removed, 3 unchanged", "0 added, 0 changed, 0 removed, 4 unchanged"):
        assert main(["index", "photos"]) == 0
        said = capsys.readouterr().out
        assert f"{changed} (0 encoded)" in said
        assert "1 picture could not be read, left out:" in said
        assert "2.jpg" in said


def _settle(folder: Path) -> None:
    """Let all files of a folder be old enough for their times to tell whether they are the same."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_where_no_file_was_changed_nothing_is_read(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (pictures / "broken.jpg").write_bytes(b"no picture")
    _settle(pictures)
    read, times = data.read_again, []
    monkeypatch.setattr(data, "read_again", lambda source: (times.append(source), read(source))[1])
    assert main(["index", "photos", "--model", model]) == 0
    capsys.readouterr()
    for words in ([], ["--model", model], ["--allow-removals"]):
        assert main(["index", "photos", *words]) == 0
        said = capsys.readouterr().out
        assert "no file was changed; rungwise inspect photos lists what is not read" in said
        assert "1 picture could not be read, left out:" in said
        assert "0 added, 0 changed, 0 removed, 5 unchanged (0 encoded)" in said
        assert len(times) == 1
    for number, words in enumerate((["--rehash"], ["--thumbnails"], ["--exclude", "0.jpg"]), start=2):
        assert main(["index", "photos", *words]) == 0
        assert "no file was changed" not in capsys.readouterr().out
        assert len(times) == number
    assert main(["index", "photos", "--exclude", "x"]) == 0  # which the index remembers from now on
    Index.open(Path("photos.index")).remove(["1.jpg"])
    capsys.readouterr()
    assert main(["index", "photos"]) == 0  # what was taken out otherwise comes back
    assert "1 added, 0 changed, 0 removed, 4 unchanged (1 encoded)" in capsys.readouterr().out


def test_a_file_that_comes_and_goes_while_it_reads_is_noticed(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _settle(pictures)
    read = data.read_again

    def with_a_draft(source: data.CollectionSource) -> data.ImageCaptions:
        shutil.copy2(pictures / "0.jpg", pictures / "draft.jpg")
        return read(source)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(data, "read_again", with_a_draft)
        assert main(["index", "photos", "--model", model]) == 0
    (pictures / "draft.jpg").unlink()
    capsys.readouterr()
    assert main(["index", "photos"]) == 0
    said = capsys.readouterr().out
    assert "no file was changed" not in said
    assert "0 added, 0 changed, 1 removed, 5 unchanged (0 encoded)" in said


def test_where_nothing_is_to_be_encoded_no_model_is_opened(
    pictures: Path, published: Published, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(shutil.copytree(published.clip, "model"))
    (pictures / "captions.tsv").write_text(f"image\tcaption\n0.jpg\t{CAPTIONS[2]}\n1.jpg\ta dog\n")
    opened = []
    read = commands.read_dual_encoder
    monkeypatch.setattr(commands, "read_dual_encoder", lambda *a, **how: (opened.append(a), read(*a, **how))[1])
    assert main(["index", "photos", "--model", "hf:model"]) == 0
    cut = "1 of 2 captions are longer than the 16 tokens that the model reads: cut"
    assert cut in capsys.readouterr().out
    assert len(opened) == 1
    (pictures / "4.jpg").unlink()
    for words in ([], ["--model", "hf:model"], ["--rehash"], ["--model", "model"]):
        assert main(["index", "photos", *words]) == 0
        said = capsys.readouterr().out
        assert "(0 encoded)" in said
        assert cut not in said
    assert len(opened) == 1
    for words in (["--device", "cpu"], ["--precision", "float32"], ["--altered-model"]):  # what may be refused
        assert main(["index", "photos", *words]) == 0
        assert cut in capsys.readouterr().out
    assert len(opened) == 4
    (pictures / "5.jpg").write_bytes(photos()[4])
    assert main(["index", "photos"]) == 0
    said = capsys.readouterr().out
    assert "1 added, 0 changed, 0 removed, 4 unchanged (1 encoded)" in said
    assert cut in said
    assert len(opened) == 5
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-400] ^= 1  # the lowest bit of a number
    (model / "model.safetensors").write_bytes(weights)
    assert main(["index", "photos"]) == 2
    assert "built by model" in capsys.readouterr().err
    shutil.rmtree(model)
    assert main(["index", "photos"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_another_model_is_refused_with_what_to_do(
    pictures: Path, model: str, published: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "photos", "--model", model]) == 0
    assert main(["index", "photos", "--model", f"hf:{published.clip}"]) == 2
    said = capsys.readouterr().err
    assert "was made with another model" in said
    assert "begin anew with --overwrite" in said
    assert main(["index", "photos", "--model", f"hf:{published.clip}", "--overwrite"]) == 0


def test_a_folder_that_holds_nothing_any_more_costs_nothing(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["index", "photos", "--model", model]) == 0
    pictures.rename(tmp_path / "elsewhere")
    kept = (
        "5 pictures are gone and stay in the index: photos is not there or holds no pictures now; --allow-removals"
        " removes them"
    )
    for _ in range(2):
        capsys.readouterr()
        assert main(["index", "photos"]) == WITHHELD
        said = capsys.readouterr().out
        assert kept in said.splitlines()
        assert "next:" not in said
        pictures.mkdir(exist_ok=True)
    assert main(["index", "phtoos", "--out", "photos.index"]) == 2
    assert "phtoos: no such file or folder" in capsys.readouterr().err
    assert main(["index", "photos", "--allow-removals"]) == 0
    assert "0 added, 0 changed, 5 removed, 0 unchanged" in capsys.readouterr().out


def test_an_index_keeps_the_kind_of_collection_that_it_was_made_of(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "photos", "--model", model]) == 0
    with tarfile.open(pictures / "backup.tar", "w") as archive:
        for number in range(9):
            for name, content in ((f"{number}.jpg", photos()[0]), (f"{number}.txt", b"a dog")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    (pictures / "taxes.csv").write_text("year,sum\n2020,7\n")
    (pictures / "captions.csv").write_text("image,caption\n0.jpg,a dog\n")
    capsys.readouterr()
    assert main(["index", "photos"]) == 0
    said = capsys.readouterr().out
    assert "0 added, 0 changed, 0 removed, 5 unchanged (0 encoded)" in said
    assert "not read: backup.tar (" in said
    assert "not read: captions.csv (" in said
    assert main(["index", "photos", "--layout", "webdataset"]) == 0
    assert "9 added, 0 changed, 5 removed" in capsys.readouterr().out
    assert main(["index", "photos"]) == 0
    assert "0 added, 0 changed, 0 removed, 9 unchanged" in capsys.readouterr().out, "it was an order, and is kept"
    (pictures / "backup.tar").unlink()
    assert main(["index", "photos"]) == 2
    said = capsys.readouterr().err
    assert "photos: holds nothing to be read as WebDataset shards" in said
    assert "by --layout" in said
    assert main(["index", "photos", "--layout", "auto"]) == 0
    said = capsys.readouterr().out
    assert "5 pictures, 1 captions indexed" in said


def test_an_index_is_no_folder_of_pictures(pictures: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "photos", "--model", model]) == 0
    assert main(["index", "photos.index"]) == 2
    assert "photos.index: is an index already; search it with rungwise search photos.index" in capsys.readouterr().err


def test_a_table_that_is_dropped_takes_no_captions_away(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "captions.csv").write_text("image,caption,price\n0.jpg,my dog,7\n1.jpg,my cat,8\n")
    assert main(["index", "photos", "--model", model]) == 0
    for name, content in (
        ("export.csv", "filename,text\n" + "".join(f"{number}.jpg,theirs {number}\n" for number in range(5))),
        ("a.csv", "image,caption\n0.jpg,theirs\n1.jpg,theirs\n"),
        ("squares.token.txt", "0.jpg#0\ttheirs\n"),
        ("dataset_x.json", '{"images": [{"filename": "0.jpg", "split": "train", "sentences": [{"raw": "theirs"}]}]}'),
        ("words.json", '[{"image": "0.jpg", "caption": "theirs"}, {"image": "1.jpg", "caption": "theirs"}]'),
    ):
        (pictures / name).write_text(content)
        capsys.readouterr()
        assert main(["index", "photos"]) == 0
        said = capsys.readouterr().out
        assert "0 added, 0 changed, 0 removed, 5 unchanged" in said, name
        assert f"not read: {name} (" in said
    (pictures / "captions.csv").unlink()
    assert main(["index", "photos"]) == 2
    assert "captions.csv, from which the captions came, is not there" in capsys.readouterr().err
    assert main(["index", "photos", "--layout", "auto"]) == 0
    assert "changed" in capsys.readouterr().out


def test_several_folders_make_one_index_and_none_is_forgotten(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.jpg").write_bytes(photos()[2])
    assert main(["index", "photos", "scans"]) == 2
    assert "2 folders make one index; name it: --out INDEX" in capsys.readouterr().err
    assert main(["index", "photos", "scans", "--out", "both", "--model", model]) == 0
    assert "6 added" in capsys.readouterr().out
    assert main(["index", "scans", "photos", "--out", "both"]) == 0
    assert "0 added, 0 changed, 0 removed, 6 unchanged" in capsys.readouterr().out
    assert main(["index", "photos", "--out", "both"]) == 2
    assert f"take the pictures of {tmp_path / 'scans'} out of it with --allow-removals" in capsys.readouterr().err
    shutil.move(tmp_path / "scans", tmp_path / "away")
    (pictures / "0.jpg").unlink()
    assert main(["index", "photos", "scans", "--out", "both"]) == WITHHELD
    said = capsys.readouterr().out
    assert "0 added, 0 changed, 0 removed, 6 unchanged" in said
    assert f"{tmp_path / 'scans'} is empty or gone" in said
    assert main(["index", "photos", "--out", "both", "--allow-removals"]) == 0
    assert "0 added, 0 changed, 2 removed, 4 unchanged" in capsys.readouterr().out


def test_captions_that_are_named_are_an_order_and_are_remembered(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "words.csv").write_text("image,caption\n0.jpg,a dog\n")
    assert main(["index", "photos", "--model", model, "--captions", "words.csv"]) == 0
    assert "5 pictures, 1 captions indexed" in capsys.readouterr().out
    (tmp_path / "words.csv").write_text("image,caption\n0.jpg,a dog\n1.jpg,a cat\n")
    assert main(["index", "photos"]) == 0
    assert "5 pictures, 2 captions indexed" in capsys.readouterr().out
    (tmp_path / "words.csv").unlink()
    assert main(["index", "photos"]) == 2
    assert "words.csv: no such file or folder" in capsys.readouterr().err


def test_the_key_of_shards_is_an_order_and_is_remembered(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "plans").mkdir()
    with tarfile.open(tmp_path / "plans" / "plans.tar", "w") as archive:
        for number, name in enumerate(("1.5 north", "1.5 south")):
            archive.add(pictures / f"{number}.jpg", f"Plan {name}.jpg")
    assert main(["index", "plans", "--model", model]) == 2
    said = capsys.readouterr()
    assert "picture left out: " in said.out
    assert "; --key stem (" in said.out
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "plans.index").exists()
    assert main(["index", "plans", "--model", model, "--key", "stem"]) == 0
    assert "2 added" in capsys.readouterr().out
    assert main(["index", "plans"]) == 0
    assert "0 added, 0 changed, 0 removed, 2 unchanged" in capsys.readouterr().out
    assert main(["index", "plans", "--layout", "auto"]) == 3, "it looks anew, and finds none"
    assert main(["index", "photos", "--model", model, "--key", "stem"]) == 0
    assert "option without effect: key stem: is of tar shards, and there are none" in capsys.readouterr().out


def test_what_an_index_keeps_is_said_to_whoever_asks_for_another(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ["index", "photos", "--model", model, "--store", "exact"]
    assert main(made) == 0
    capsys.readouterr()
    assert main(made) == 0, "the same command is no mistake"
    assert "changes nothing" not in capsys.readouterr().out
    assert main(["index", "photos", "--store", "lance", "--half"]) == 0
    said = capsys.readouterr().out
    assert "--store lance changes nothing for an index that is there: its store stays exact; --overwrite begins" in said
    assert "--half changes nothing for an index that is there: its vectors keep full precision" in said


def test_nothing_is_left_of_an_index_of_nothing(
    pictures: Path, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for file in pictures.iterdir():
        file.write_bytes(b"no picture")
    assert main(["index", "photos", "--model", model]) == 2
    assert "none of 5 pictures could be read" in capsys.readouterr().err
    assert not (tmp_path / "photos.index").exists()


def test_what_does_not_go_with_ray_is_one_line(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, line in (
        (["--watch", "--ray"], "--watch looks for single changes, which one process encodes; leave --ray out"),
        (["--workers", "2"], "--workers changes nothing without --ray"),
        (["--ray", "--workers", "0"], "--workers 0: is a number of Ray's workers; give at least 1"),
        (["--ray", "127.0.0.1:1"], "Ray at 127.0.0.1:1: nobody answers"),
    ):
        assert main(["index", "photos", *words]) == 2
        assert line in capsys.readouterr().err


def test_watching_goes_on_through_errors_until_it_is_ended(
    pictures: Path,
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changes(folders: tuple[Path, ...], without: Path) -> Iterator[bool]:
        assert (folders, without) == ((pictures,), Path("photos.index"))
        (pictures / "new.jpg").write_bytes((pictures / "0.jpg").read_bytes())
        yield False  # it came before the watch began
        assert "1 added, 0 changed, 0 removed, 5 unchanged (0 encoded)" in capsys.readouterr().out
        (pictures / "taxes.csv").write_text("year,sum\n2020,7\n")
        yield True
        assert "taxes.csv" in capsys.readouterr().out
        yield True
        assert capsys.readouterr().out == ""  # it was said once
        pictures.rename(tmp_path / "away")
        yield False
        assert capsys.readouterr().out == ""
        yield True
        assert "6 pictures are gone and stay in the index" in capsys.readouterr().out
        yield True
        assert capsys.readouterr().out == ""  # it was said once
        (tmp_path / "away").rename(pictures)
        (pictures / "1.jpg").unlink()
        read = data.read_again
        monkeypatch.setattr(data, "read_again", failing)
        yield True
        assert "the disk has gone" in capsys.readouterr().out
        yield False
        assert capsys.readouterr().out == ""  # it was said once
        monkeypatch.setattr(data, "read_again", read)
        yield False  # what failed is tried again
        assert "0 added, 0 changed, 1 removed, 5 unchanged" in capsys.readouterr().out
        raise KeyboardInterrupt

    def failing(source: object) -> object:
        raise OSError("the disk has gone")

    monkeypatch.setattr("rungwise.index.update._watch.changes_below", changes)
    assert main(["index", "photos", "--model", model, "--watch"]) == 0
    assert "ended; what was taken in is kept" in capsys.readouterr().out


@pytest.mark.slow
def test_watching_ends_by_ctrl_c(pictures: Path, model: str, tmp_path: Path) -> None:
    # Who runs these tests in the background has their Ctrl-C ignored, and programs that they start as well.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-u", "-c", f"{heard}\nfrom rungwise.cli import main\nraise SystemExit(main())"]
    command += ["index", "photos", "--model", model, "--watch"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None

        def wait_for(words: str) -> str:
            assert process.stdout is not None
            return next(line for line in process.stdout if words in line)

        wait_for("watching photos")
        (tmp_path / "new.jpg").write_bytes((pictures / "0.jpg").read_bytes())
        (tmp_path / "new.jpg").rename(pictures / "new.jpg")  # whole at once, so that it is never seen half written
        assert "1 added, 0 changed, 0 removed, 5 unchanged" in wait_for("added")
        os.kill(process.pid, signal.SIGINT)
        wait_for("ended; what was taken in is kept")
    assert process.returncode == 0
