import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rungwise.cli import main
from tests.benchmark_folders import FOLDERS
from tests.odd_files import on_posix, put


def test_features_are_counted_and_sampled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3, 8)).astype(np.float32)
    rows[2, 1] = 0
    np.save(tmp_path / "dev_ims.npy", rows)
    (tmp_path / "dev_caps.txt").write_text("".join(f"caption {number}\n" for number in range(12)))
    assert main(["inspect", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "(precomputed)" in printed
    assert "features in place of pictures 3 regions of 8 numbers, float32" in printed
    assert "captions per picture 3 to 3, median 3" in printed
    assert "1 odd things; 4 of 4 rows of features were looked at" in printed
    assert "val/2: 1 of 3 regions" in printed
    assert main(["inspect", str(tmp_path), "--contact-sheet", str(tmp_path / "sheet.png")]) == 2
    refused = capsys.readouterr().err.strip().splitlines()
    assert len(refused) == 1
    assert "has no picture files to show; a contact sheet needs a collection with pictures" in refused[0]


def test_counts_that_do_not_fit_end_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "dev_ims.npy", np.zeros((2, 4)))
    (tmp_path / "dev_caps.txt").write_text("a\nb\nc\n")
    assert main(["inspect", str(tmp_path)]) == 2
    said = capsys.readouterr().err.strip()
    assert "dev_ims.npy: 2 rows, but dev_caps.txt has 3 captions" in said
    assert "\n" not in said


def test_a_sheet_says_how_many_characters_no_font_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.new("RGB", (32, 32), "teal").save(tmp_path / "a.png")
    (tmp_path / "captions.csv").write_text("image,caption\na.png,A dog\U0010ffff\n", encoding="utf-8")
    assert main(["inspect", str(tmp_path), "--contact-sheet", str(tmp_path / "out" / "sheet.png")]) == 0
    assert "no font here has 1 of its characters; for them, install a font such as Noto Sans" in capsys.readouterr().out


def test_next_lines_carry_the_options_by_which_the_collection_was_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("rome/a.png", "rome/b.gif", "my oslo/c.png", "my oslo/private/d.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), "teal").save(tmp_path / name)
    rome, oslo, words = tmp_path / "rome", tmp_path / "my oslo", tmp_path / "words.csv"
    words.write_text("image,caption\na.png,a wall\n")
    assert main(["inspect", str(rome), str(oslo), "--exclude", "private/", "*.gif"]) == 0
    said = capsys.readouterr().out
    assert "rome+my oslo" in said
    assert f"  rungwise index {rome} '{oslo}' --exclude private/ '*.gif' --out index\n" in said
    assert main(["inspect", str(rome), "--captions", str(words)]) == 0
    said = capsys.readouterr().out
    assert f"  rungwise index {rome} --captions {words}\n" in said
    assert "rungwise train reads one folder, or one file of captions, without these options" in said
    assert main(["inspect", str(rome), "--key", "stem"]) == 0
    assert "key stem: is of tar shards, and there are none" in " ".join(capsys.readouterr().out.split())
    assert main(["inspect", str(rome), "--layout", "folder"]) == 0
    assert f"  rungwise index {rome} --layout folder\n" in capsys.readouterr().out
    assert main(["inspect"]) == 2
    assert "name a folder or a file of captions" in capsys.readouterr().err


def test_names_with_several_dots_are_read_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (32, 32), "teal").save(picture, "PNG")
    archive = tmp_path / "plans.tar"
    with tarfile.open(archive, "w") as file:
        for number in range(10):
            for ending, content in (("png", picture.getvalue()), ("txt", b"the north side")):
                member = tarfile.TarInfo(f"Plan 1.{number} north.{ending}")
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
    assert main(["inspect", str(archive)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert '--key stem (of train --data.key stem, in Python key="stem") takes names to their last dot' in said
    assert "nothing of it can be read as it is" in said
    assert main(["inspect", str(archive), "--key", "stem"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "left out" not in said
    assert f"train {archive} --data.key stem --out run" in said
    assert f"index {archive} --key stem" in said


@pytest.mark.slow
def test_no_matplotlib_is_needed(tmp_path: Path) -> None:
    Image.new("RGB", (32, 32), "teal").save(tmp_path / "a.png")
    code = (
        "import sys; sys.modules['matplotlib'] = None; from rungwise.cli import main;"
        " sys.exit(main(['inspect', sys.argv[1], '--contact-sheet', sys.argv[2]]))"
    )
    sheet = tmp_path / "sheet.out"
    command = [sys.executable, "-c", code, str(tmp_path), str(sheet)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Image.open(sheet).format == "PNG"


@on_posix
def test_odd_files_and_names_are_listed_and_nothing_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "[b]x \x1b[31m"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a\x1b]0;x\x07.png")
    put(folder / "pipe.jpg", "pipe")
    put(folder / "endless.json", "endless")
    put(folder / "dangling.csv", "dangling")
    (folder / "captions.jsonl").write_text('{"image": "a\\u001b]0;x\\u0007.png", "caption": "\\u009b2J A dog."}\n')
    assert main(["inspect", str(folder), "--contact-sheet", str(tmp_path / "sheet.png")]) == 0
    printed = capsys.readouterr()
    assert not set("\x1b\x07\x9b") & set(printed.out + printed.err)
    said = " ".join(printed.out.split())
    assert "[b]x \\x1b[31m (table)" in said
    assert "not a regular file 3" in said
    assert "pipe.jpg: a pipe" in said
    assert "malformed text 1" in said


def inspected(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["inspect", str(folder)]) == 0
    return capsys.readouterr().out


def test_columns_and_what_was_ignored_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.new("RGB", (32, 32), "teal").save(tmp_path / "a.png")
    (tmp_path / "products.csv").write_text("image;caption;year;tags\na.png;A dog.;2020;\n")
    (tmp_path / "captions.json").write_text('[{"picture": "a.png", "words": "A dog."}]')
    said = " ".join(inspected(tmp_path, capsys).split())
    assert "columns to filter a search by" in said
    assert "year numbers" in said
    assert "captions not read 1 captions.json: no key says the caption" in said


TRAINED = ["train 'FOLDER' --out run", "index 'FOLDER' --model run/model --out index"]
NUMBERED = [f"{number}.png" for number in range(20)]


@pytest.mark.parametrize(
    ("files", "splits", "commands"),
    [
        (NUMBERED, "", ["index 'FOLDER'"]),
        ([*NUMBERED, "captions.csv"], "", [*TRAINED, "index 'FOLDER'"]),
        (
            [*NUMBERED, "captions.csv"],
            "test",
            ["train 'FOLDER' --data.train test --out run", TRAINED[1], "index 'FOLDER'"],
        ),
        ([*NUMBERED, "captions.csv"], "val", ["index 'FOLDER'"]),
        (["0.png", "captions.csv"], "", ["index 'FOLDER'"]),
        (["captions.csv", "features.npy"], "train", TRAINED),
        (["train_ims.npy", "train_caps.txt", "dev_ims.npy", "dev_caps.txt"], "", TRAINED),
        (["dev_ims.npy", "dev_caps.txt"], "", []),
    ],
)
def test_it_ends_with_the_commands_to_run_next(
    files: list[str], splits: str, commands: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my photos"
    folder.mkdir()
    for name in files:
        if name.endswith(".png"):
            Image.new("RGB", (32, 32), (int(name[:-4]), 9, 9)).save(folder / name)
        elif name.endswith(".npy"):
            np.save(folder / name, np.eye(20, dtype=np.float32))
        elif name.endswith(".txt"):
            (folder / name).write_text("a dog\n" * 20)
        else:
            named = NUMBERED if NUMBERED[1] in files or "features.npy" in files else NUMBERED[:1]
            rows = "".join(f"{one},A dog.,{splits}\n" for one in named)
            (folder / name).write_text(f"image,caption,split\n{rows}")
    said = inspected(folder, capsys)
    shown = [
        line.partition("rungwise ")[2] for line in said.splitlines() if line.startswith("  ") and "rungwise" in line
    ]
    assert shown == [command.replace("FOLDER", str(folder)) for command in commands]
    untrained = ("captions.csv" in files and splits != "test" and TRAINED[0] not in commands) or not commands
    assert ("too little to train a model on: " in said) == untrained


@pytest.mark.parametrize("layout", FOLDERS)
def test_a_benchmark_is_named_and_counted(layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = FOLDERS[layout](tmp_path)
    next(folder.rglob("*img_0.png" if layout == "winoground" else "*.*g")).unlink()
    assert main(["inspect", str(folder)]) == 0
    told = capsys.readouterr().out
    assert f"{folder}: a benchmark" in told.replace("\n", " ")
    assert "missing picture" in told
    assert "evaluate MODEL" in told
    assert main(["inspect", str(folder), "--layout", layout]) == 0
    assert f"--layout {layout}" in capsys.readouterr().out
