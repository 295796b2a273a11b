"""How commands are asked, and what they load before they know what for.

Also tests rungwise.cli.frame._options.
"""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro

from rungwise.cli import COMMANDS, main
from rungwise.cli.frame import parse
from rungwise.cli.relevance._command import TASKS
from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER
from rungwise.jobs import ADVANCED
from rungwise.relevance.config import KINDS

HEAVY = ("torch", "lancedb", "pyarrow", "numba", "fastapi", "transformers")


@dataclass
class Limits:
    """What others may hold.

    Attributes:
        seconds: How long. Not for ever.
    """

    seconds: float = 2.5


@dataclass
class Asked:
    """Look at things.

    At length.

    Attributes:
        place: Where they are. Any folder.
        out: Where to write; it is made.
        kind: How.
        many: How many there may be at the very most, in all of the places that are looked at; none.
        fast: Be quick.
        device: Where it computes.
        limits: For others.
    """

    place: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PLACE")]
    out: Path
    kind: Literal["a", "b"] = "a"
    many: int = 3
    fast: bool = True
    device: str | None = field(default=None, metadata=ADVANCED)
    limits: Limits = field(default_factory=Limits, metadata=ADVANCED)


def parsed(*words: str) -> Asked:
    return parse(Asked, words, "look", examples=["look here --out there"])


def test_the_short_help_has_the_usual_options_on_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("--help")
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "usage: look PLACE [OPTIONS]",
        "",
        "Look at things.",
        "",
        "  PLACE          Where they are.",
        "  --out PATH     Where to write; it is made. (required)",
        "  --kind {a,b}   How. (a)",
        "  --many NUMBER  How many there may be at the very most. (3)",
        "  --[no-]fast    Be quick. (on)",
        "",
        "example:",
        "  look here --out there",
        "",
        "--help-all shows 2 more options, and all in full.",
        "--module NAME, with any command, imports a module of your own first.",
    ]


def test_the_long_help_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("--help-all")
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(name in shown for name in ("--device", "--limits.seconds", "Not for ever", "in all of the places"))


def test_options_of_groups_are_known() -> None:
    asked = parsed("here", "--out", "there", "--limits.seconds", "3", "--no-fast", "--device=cpu")
    assert (asked.limits.seconds, asked.fast, asked.device) == (3, False, "cpu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["here", "--out", "a", "--mani", "3"], "there is no option --mani; did you mean --many? look --help-all"),
        (["here", "--out", "a", "--limit.seconds", "3"], "--limit.seconds; did you mean --limits.seconds?"),
        (["here", "--out", "a", "--seconds", "3"], "there is no option --seconds; did you mean --limits.seconds?"),
        (["here", "--out", "a", "--helpp"], "there is no option --helpp; did you mean --help?"),
        (["here", "--out", "a", "--tracebak"], "there is no option --tracebak; did you mean --traceback?"),
        (["--out", "a", "--nothing-like-it"], "there is no option --nothing-like-it; look --help-all lists"),
        (["here", "--out", "a", "--many", "few"], "--many: 'few' is no whole number; look --help-all lists"),
        (["here", "--out", "a", "--limits.seconds", "x"], "'x' is no number"),
        (["here", "--out", "a", "--kind", "c"], "--kind"),
        (["here"], "--out"),
        (["--out", "a"], "PLACE"),
        (["here", "there", "--out", "a"], "there"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError) as refused:
        parsed(*words)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not set("│╭╰─") & set(str(refused.value))
    assert capsys.readouterr() == ("", "")


def test_what_follows_two_dashes_is_no_option() -> None:
    with pytest.raises(UserError, match="--help-all lists"):
        parsed("--", "--out")


@pytest.mark.parametrize("command", [*COMMANDS, *(f"relevance {word}" for word in (*KINDS, *TASKS))])
def test_the_short_help_of_every_command_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 34
    cut = [line for line in lines if line.startswith("  -") and (line.endswith("...") or "... (" in line)]
    assert not cut, "their first sentences are too long for a line"


@pytest.mark.smoke
def test_no_command_loads_what_is_heavy_before_it_knows_what_for() -> None:
    """The help and a refusal of each command, and what needs no model, in one process that nothing else has run in."""
    lines = [f"{command} {word}" for command in (*COMMANDS, "relevance cascade") for word in ("--help", "--no-such")]
    lines += ["relevance", "presets", "presets sam", "table vsepp:1", "search http://127.0.0.1:9/ red"]
    lines += ["serach", "train nowhere", "train vsepp nowhere", "train vsepp . --losses.margin 0.1", "plot nowhere"]
    lines += ["study nowhere.yaml", "index nowhere", "search nowhere red", "evaluate nowhere nowhere"]
    code = (
        "import sys\n"
        "from rungwise.cli import main\n"
        f"for line in {lines!r}:\n"
        "    try: main(line.split())\n"
        "    except SystemExit: pass\n"
        f"    loaded = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "    if loaded: sys.exit(f'{line}: {loaded}')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr.splitlines()[-1]


def test_the_settings_that_train_knows_by_name_are_those_of_its_configuration() -> None:
    from dataclasses import fields

    from rungwise.cli.train._command import SETTINGS
    from rungwise.training.config import TrainConfig

    assert set(SETTINGS) == {one.name.replace("_", "-") for one in fields(TrainConfig)} - {
        "preset",
        "modules",
        "packages",
    }


@dataclass
class Write:
    """Write something.

    Attributes:
        out: A file.
        index: A folder.
    """

    out: Path | None = field(default=None, metadata=WRITTEN_FILE)
    index: Path | None = field(default=None, metadata=WRITTEN_FOLDER)


def test_what_is_to_be_written_is_tried_before_the_command_begins(tmp_path: Path) -> None:
    for words in (["--out", str(tmp_path)], ["--index", str(tmp_path / ("x" * 300))], ["--out", "/proc/x"]):
        with pytest.raises(UserError, match="name a file|choose"):
            parse(Write, words, "write")
    parse(Write, ["--out", str(tmp_path / "a/b"), "--index", str(tmp_path / "c")], "write")
    parse(Write, ["--index", "s3://bucket/index"], "write")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--out", ""], ["--out="], ["--index", "", "--out", "a"]])
def test_an_empty_name_is_not_the_folder_that_one_works_in(words: list[str]) -> None:
    with pytest.raises(UserError, match="--(out|index): an empty name"):
        parse(Write, words, "write")


def test_of_the_processes_of_a_run_the_first_one_alone_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    parse(Write, ["--out", "/proc/x"], "write")


def test_too_few_open_files_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(given: list[str], loaded: object, modules: object) -> int:
        raise RuntimeError("lance: Too many open files (os error 24)")

    monkeypatch.setattr("rungwise.cli._run", run)
    assert main(["index"]) == 2
    assert capsys.readouterr().err == (
        "rungwise index: too many files are open at once; raise the limit with ulimit -n, then run again\n"
    )
