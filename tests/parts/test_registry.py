"""Parts of a person's own: all six, by file, by YAML, and by an installed package, and what is said once they are gone.

Also tests rungwise.parts._origins and rungwise.data._own_readers.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from rungwise.cli import main
from rungwise.core import UserError, checked, from_plain
from rungwise.data import CollectionReader, ImageCaptions, read
from rungwise.encoders import ImageSide, ImageSideConfig, SavedFiles
from rungwise.index import Index
from rungwise.losses import BlockLoss
from rungwise.models import VSEConfig, load
from rungwise.parts import Origins, origins_of, recorded, recorded_in
from rungwise.scenes import SceneConfig, generate
from rungwise.training.config import TrainConfig
from tests.pages import pages_below
from tests.rooms import ROOT

PAGE = pages_below("guide/python")
EXAMPLES = {match[1]: match[0] for match in re.finditer(r"(?<=```python\n)# (\w+)\.py\n.*?(?=```)", PAGE, re.DOTALL)}
PARTS = {
    "losses": ("softest_hinge", "SoftestHinge", "softest_hinge"),
    "measures": ("root_rank", "RootRank", "RootRank"),
    "relevance": ("lengths", "LengthsConfig", "lengths"),
    "encoders": ("colour_grid", "ColourGridConfig", "colour_grid"),
    "readers": ("listed", "Listed", "listed"),
    "stores": ("rounded", "RoundedStore", "rounded"),
}
SHORT = ("--epochs", "1", "--learning-rates", "1e-3", "--schedule", "phases")
SPRUNG = "sprung"


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated scenes as the example's reader has them: pictures, and a list of names and captions."""
    folder = tmp_path_factory.mktemp("listed")
    generate(folder / "scenes", SceneConfig(pictures=40, captions_per_picture=2, side=32, seed=1))
    data = read(folder / "scenes")
    notes = folder / "notes"
    (folder / "scenes" / "pictures").rename(folder / "moved")
    notes.mkdir()
    (folder / "moved").rename(notes / "pictures")
    names = [Path(one).name for one in data.image_ids]
    lines = [f"{names[image]}|{text}" for image, text in zip(data.image_of_caption, data.captions, strict=True)]
    (notes / "list.txt").write_text("\n".join(lines), encoding="utf-8")
    return notes


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples of the page as files."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in EXAMPLES.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def separate(words: Sequence[str], *places: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which has imported nothing; ``places`` are on its import path."""
    path = ":".join(map(str, [ROOT / "src", *places]))
    code = "import sys; from rungwise.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "HOME": str(cwd), "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )


def test_each_example_is_about_twenty_lines() -> None:
    assert {file for file, _, _ in PARTS.values()} == set(EXAMPLES)
    assert all(len(text.splitlines()) < 45 for text in EXAMPLES.values())


def played(way: str, listed: Path, files: Path, home: Path) -> tuple[dict[str, str], tuple[Path, ...]]:
    """What six parts print: a run with them, resumed, evaluated, in a table, indexed and searched; and what they need.

    ``way`` names the parts by ``file``, by the ``yaml`` of the run and ``--module`` of what lies on the import path, or
    not at all, as those of a ``package``.
    """
    places: tuple[Path, ...] = ()
    named = {group: ["--module", str(files / f"{file}.py")] for group, (file, _, _) in PARTS.items()}
    if way == "yaml":
        places = (files,)
        named = {group: ["--module", file] for group, (file, _, _) in PARTS.items()}
    if way == "package":
        site = home / "site"
        (site / "six_parts").mkdir(parents=True)
        (site / "six_parts" / "__init__.py").write_text("")
        for name, text in EXAMPLES.items():
            (site / "six_parts" / f"{name}.py").write_text(text, encoding="utf-8")
        info = site / "six_parts-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: six-parts\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "".join(
                f"[rungwise.{group}]\n{name} = six_parts.{file}:{called}\n"
                for group, (file, called, name) in PARTS.items()
            )
        )
        places, named = (site,), {group: [] for group in PARTS}
    of = [*named["losses"], *named["encoders"], *named["readers"], *named["relevance"]]
    config = home / "mine.yaml"
    modules = "modules: [softest_hinge, colour_grid, listed, lengths, root_rank]\n" if way == "yaml" else ""
    config.write_text(
        f"{modules}loss: softest_hinge\nmodel:\n  image: {{kind: colour_grid, cells: 8}}\n  dimension: 16\n"
        f"data: {{path: {listed}, layout: listed, relevance: lengths}}\nsampler: {{kind: relevance_aware}}\n"
        "epochs: [1]\nlearning_rates: [0.001]\nbatch_size: 8\n"
    )
    run, index = home / "run", home / "index"
    lines: dict[str, list[str]] = {
        "train": ["train", str(config), "--out", str(run), *([] if way == "yaml" else of)],
        "resume": ["train", str(run / "config.yaml"), "--out", str(run), "--resume", "--epochs", "2", *of],
        "evaluate": [
            "evaluate", str(run), str(listed), "--layout", "listed", "--split", "val", "--measures", "R@1", "RootRank",
            "--out", str(home / "result.json"), *named["encoders"], *named["readers"], *named["measures"],
        ],
        "relevance": [
            "relevance", "lengths", str(listed), "--layout", "listed", "--out", str(home / "degrees"),
            *named["relevance"], *named["readers"],
        ],
        "table": ["table", "vsepp:1", "--runs", str(run), *of],
        "index": [
            "index", str(listed), "--layout", "listed", "--model", str(run / "model"), "--store", "rounded",
            "--out", str(index), *named["encoders"], *named["readers"], *named["stores"],
        ],
        "search": ["search", str(index), "a circle", "--k", "3", *named["encoders"], *named["stores"]],
        "verify": ["verify", str(index), *named["encoders"], *named["stores"]],
        "backup": ["index", "backup", str(index), "--out", str(home / "copy"), *named["stores"]],
        "doctor": ["doctor", str(run), *of],
    }  # fmt: skip
    said = {}
    for name, words in lines.items():
        ended = separate(words, *places, cwd=home)
        # Of so few pictures a doctor finds something to say.
        assert ended.returncode in ((0, 1) if name == "doctor" else (0,)), (way, name, ended.stderr[-2000:])
        said[name] = ended.stdout + ended.stderr
    return said, places


@pytest.mark.slow
@pytest.mark.parametrize("way", ["file", "yaml", "package"])
def test_six_parts_are_trained_resumed_evaluated_tabled_indexed_and_then_gone(
    way: str, listed: Path, files: Path, tmp_path: Path
) -> None:
    said, _ = played(way, listed, files, tmp_path)
    assert "RootRank" in said["evaluate"]
    run, index = tmp_path / "run", tmp_path / "index"
    facts = json.loads((run / "model" / "config.json").read_text())
    manifest = json.loads((index / "index.json").read_text())
    if way == "package":
        assert facts["packages"] == manifest["packages"] == ["six-parts"]
        needed = "install it: pip install six-parts"
    else:
        assert facts["modules"] == ["colour_grid"]
        assert set(manifest["modules"]) == {"rounded", "colour_grid", "listed"}
        needed = "colour_grid"
    stored = "rounded" if way != "package" else needed
    plain = tmp_path / "plain"
    shutil.copytree(listed / "pictures", plain)
    names = sorted(one.name for one in plain.iterdir())
    (plain / "captions.csv").write_text("".join(["image,caption\n", *(f"{name},A circle.\n" for name in names)]))
    gone: dict[str, tuple[list[str], int, str]] = {
        "resume": (["train", str(run / "config.yaml"), "--out", str(run), "--resume"], 2, needed),
        "evaluate": (["evaluate", str(run), str(plain), "--split", "all"], 2, needed),
        "index": (["index", str(listed), "--out", str(index)], 2, stored),
        "search": (["search", str(index), "a circle"], 2, stored),
        "serve": (["serve", str(index)], 2, stored),
        "calibrate": (["calibrate", str(run / "model"), str(plain), "--split", "all"], 2, needed),
        "verify": (["verify", str(index)], 3, stored),
        "verify the run": (["verify", str(run)], 3, needed),
        "verify the model": (["verify", str(run / "model")], 3, needed),
        "table": (["table", "vsepp:1", "--runs", str(run)], 0, "cannot be read"),
        "doctor": (["doctor", str(run)], 0, "epochs finished"),
        "export": (["export", str(run / "model"), "--out", str(tmp_path / "exported")], 2, needed),
        "backup": (["index", "backup", str(index), "--out", str(tmp_path / "copy2")], 2, stored),
        "restore": (["index", "restore", str(tmp_path / "copy"), "--out", str(tmp_path / "new")], 2, stored),
        "check": (["check", str(index)], 2, stored),
    }
    for name, (words, status, line) in gone.items():
        ended = separate(words, cwd=tmp_path)
        text = " ".join((ended.stdout + ended.stderr).split())
        assert ended.returncode == status, (way, name, text[-1500:])
        assert line in text, (way, name, text[-1500:])
        assert not name.startswith("verify") or "wrong: " not in text, (way, name, text[-1500:])
        if status == 2:
            assert len(ended.stderr.strip().splitlines()) == 1, (way, name, ended.stderr)
    # What needs no part is read as ever.
    kept = str(tmp_path / "result.json")
    assert "RootRank" in Path(kept).read_text()
    for words in (
        ["verify", kept],
        ["evaluate", kept],
        *(["evaluate", kept, "--format", form] for form in ("markdown", "latex", "csv", "json")),
        ["evaluate", kept, "--measures", "RootRank"],
        ["compare", kept, kept, "--draws", "20"],
        ["verify", str(tmp_path / "degrees")],
        ["verify", str(tmp_path / "copy")],
    ):
        ended = separate(words, cwd=tmp_path)
        assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
        if words[0] == "compare":
            assert "not known here, not compared; name its module (--module): i2t/RootRank" in ended.stdout


@dataclass(frozen=True)
class FadedConfig(ImageSideConfig):
    kind: Literal["faded_for_a_test"] = "faded_for_a_test"
    cells: int = 2

    def build(self) -> ImageSide:
        raise AssertionError("a configuration is read without its encoder")

    def restore(self, files: SavedFiles) -> ImageSide:
        raise AssertionError("a configuration is read without its encoder")


class NotesReader(CollectionReader):
    layout = "notes_for_a_test"

    def recognises(self, path: Path) -> bool:
        return path.name in ("odd.notes", "notes")

    def read(self, path: Path) -> object:  # type: ignore[override]
        return [path]


def test_an_encoder_is_a_configuration_by_its_kind() -> None:
    config = from_plain(TrainConfig, {"model": {"image": {"kind": "faded_for_a_test", "cells": 3}}}, "x")
    assert isinstance(config.model, VSEConfig)
    assert config.model.image == FadedConfig(cells=3)
    with pytest.raises(UserError, match="model.image.faded_for_a_test.cell: unexpected, .* did you mean cells"):
        from_plain(TrainConfig, {"model": {"image": {"kind": "faded_for_a_test", "cell": 3}}}, "x")
    assert origins_of(config) == Origins((__name__,))


class NoMethodForATest(BlockLoss):
    pass


@dataclass(frozen=True)
class NoWayBackConfig(ImageSideConfig):
    kind: Literal["no_way_back_for_a_test"] = "no_way_back_for_a_test"

    def build(self) -> ImageSide:
        raise AssertionError("a class that lacks a method is not made")


def test_a_class_that_is_not_finished_is_named_with_what_it_lacks() -> None:
    with pytest.raises(UserError) as refused:
        from_plain(TrainConfig, {"loss": "no_method_for_a_test"}, "my.yaml")
    said = (
        f"the class NoMethodForATest of the module {__name__} is no loss yet: it lacks per_query; write what is missing"
    )
    assert said in str(refused.value)
    with pytest.raises(UserError, match="NoWayBackConfig of the module .* is no image encoder yet: it lacks restore;"):
        from_plain(TrainConfig, {"model": {"image": {"kind": "no_way_back_for_a_test"}}}, "my.yaml")
    with pytest.raises(UserError, match="there is no loss 'no_method_for_a_tes'; there are"):
        from_plain(TrainConfig, {"loss": "no_method_for_a_tes"}, "my.yaml")


def test_a_reader_is_asked_where_ours_know_nothing_and_gives_a_collection(tmp_path: Path) -> None:
    (tmp_path / "odd.notes").write_text("x")
    with pytest.raises(UserError, match="the reader of the layout 'notes_for_a_test' gives list, not ImageCaptions"):
        read(tmp_path / "odd.notes")
    known = tmp_path / "notes"
    known.mkdir()
    (known / "a.png").touch()
    (known / "captions.csv").write_text("image,caption\na.png,A dog.\n")
    assert read(known).layout == "table"
    with pytest.raises(UserError, match="no such layout; there are precomputed, .*folder, notes_for_a_test"):
        read(known, layout="nobody's")


class BrokenReader(CollectionReader):
    layout = "broken_for_a_test"

    def read(self, path: Path) -> ImageCaptions:
        return [][len(path.parts)]


def test_what_fails_in_a_reader_is_one_line_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        read(tmp_path, layout="broken_for_a_test")
    said = str(refused.value)
    assert said.startswith(
        f"{tmp_path}: the reader of the layout 'broken_for_a_test': its code fails ({__file__}, line "
    )
    assert said.endswith(") with IndexError: list index out of range; mend it")


@pytest.mark.parametrize(
    ("plain", "found"),
    [
        ({"modules": ["a.b", "x; rm", 3, "a\x1b[31m", "/home/me/my.py"]}, Origins(("a.b", "/home/me/my.py"))),
        ({"modules": "a", "packages": ["good", "-r x", "two words"]}, Origins((), ("good",))),
        (None, Origins()),
    ],
)
def test_a_record_that_is_no_name_is_left_out(plain: object, found: Origins) -> None:
    assert recorded_in(plain) == found


def test_what_is_missing_is_said_with_what_was_recorded() -> None:
    with recorded(Origins(("their losses.py",))), pytest.raises(UserError) as refused:
        from_plain(TrainConfig, {"loss": "theirs_alone"}, "run/config.yaml")
    assert "give --module 'their losses.py', or import it in Python" in str(refused.value)
    assert (Origins(("/x/my.py",)) | Origins(("my", "other"))).modules == ("/x/my.py", "other")


def test_of_a_module_that_was_a_file_its_file_is_to_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lies_on_the_path.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Origins(("was_a_file",)).missing.endswith(
        "give its file, such as --module was_a_file.py, or import it in Python"
    )
    assert Origins(("lies_on_the_path",)).missing.endswith("give --module lies_on_the_path, or import it in Python")
    assert "lies_on_the_path" not in sys.modules
    several = Origins(("lies_on_the_path", "my_package.losses", "a_file", "another")).missing
    assert several.endswith(
        "if you trust them, give --module lies_on_the_path --module my_package.losses and their files, such as"
        " --module a_file.py --module another.py, or import them in Python"
    )
    assert "my_package" not in sys.modules


def test_what_lacks_a_part_was_not_checked_and_other_faults_are_faults() -> None:
    gone = Origins(("was_a_file",))
    found = checked("config.yaml", lambda: lacking(gone, {"loss": "theirs_alone"}))
    assert found.wrong == ""
    assert "--module was_a_file.py" in found.unchecked
    assert checked("config.yaml", lambda: lacking(gone, {"batch_size": 0})).wrong
    assert checked("config.yaml", lambda: lacking(Origins(), {"loss": "theirs_alone"})).wrong


def lacking(origins: Origins, settings: dict[str, object]) -> str:
    with recorded(origins):
        return str(from_plain(TrainConfig, settings, "run/config.yaml"))


@pytest.mark.parametrize("kind", ["run", "model", "result", "index", "degrees", "data"])
def test_no_folder_makes_anything_be_imported(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each folder names a module that lies beside its files, in the current folder and on no import path."""
    place = tmp_path / kind
    (place / "model").mkdir(parents=True)
    sprung = tmp_path / SPRUNG
    for folder in (place, place / "model", tmp_path):
        (folder / "trap.py").write_text(f"open({str(sprung)!r}, 'w')\n")
    record = {"modules": ["trap", "trap.py", str(place / "trap.py")], "packages": ["trap"]}
    plain = json.dumps({"format": 1, "kind": "trap", "model": {"image": {"kind": "trap"}}, "store": "trap", **record})
    for name in ("config.json", "model/config.json", "index.json", "relevance.json", "result.json"):
        (place / name).write_text(plain)
    (place / "config.yaml").write_text(f"modules: {record['modules']}\nloss: trap\nmodel: {{image: {{kind: trap}}}}\n")
    (place / "captions.csv").write_text("image,caption\na.png,A dog.\n")
    monkeypatch.chdir(place)
    lines = {
        "run": [
            ["train", "config.yaml", "--out", ".", "--resume"], ["train", str(place / "config.yaml"), str(place)],
            ["evaluate", ".", "."], ["doctor", "."], ["table", "vsepp:1", "--runs", "."], ["doctor", ".", "--config",
            "config.yaml"],
        ],
        "model": [["evaluate", "model", "."], ["index", ".", "--model", "model"], ["export", "model"]],
        "result": [["compare", "result.json", "result.json"], ["verify", "result.json"]],
        "index": [["search", ".", "dog"], ["check", "."], ["serve", "."], ["index", "compact", "."]],
        "degrees": [["evaluate", "model", ".", "--relevance", "."], ["relevance", "combine", ".", "--of", "."]],
        "data": [["inspect", "."], ["relevance", "trap", "."], ["inspect", ".", "--layout", "trap"], ["doctor", "."]],
    }[kind]  # fmt: skip
    for words in (*lines, ["verify", "."]):
        with suppress(SystemExit):
            main(words)
        assert not sprung.exists(), words
        assert "trap" not in sys.modules, words
    said = capsys.readouterr()
    assert "Traceback" not in said.err


def test_a_store_of_ones_own_is_kept_in_the_folder_of_an_index(files: Path, tmp_path: Path) -> None:
    generate(tmp_path / "scenes", SceneConfig(pictures=12, captions_per_picture=1, side=32, seed=1))
    named = ["--module", str(files / "colour_grid.py"), "--module", str(files / "rounded.py")]
    run = tmp_path / "run"
    encoder = ["--model.image.kind", "colour_grid", "--model.image.cells", "2", "--model.dimension", "8"]
    assert main(["train", "scenes", str(tmp_path / "scenes"), "--out", str(run), *named, *encoder, *SHORT]) == 0
    assert load(run / "model").config.image.kind == "colour_grid"
    words = ["index", str(tmp_path / "scenes"), "--model", str(run / "model"), "--out", str(tmp_path / "index"), *named]
    assert main([*words, "--store", "rounded"]) == 0
    assert main(words) == 0
    index = Index.open(tmp_path / "index")
    assert index.picture_store.about().kind == "rounded"
    assert main([*words, "--store", "punched_cards"]) == 2
