from pathlib import Path

import pytest
import torch
from rich.table import Table

from rungwise.data import Issue
from rungwise.data.pictures import NEEDS_EXTRA
from rungwise.jobs import _terminal as terminal
from rungwise.jobs import chosen_device, console, program, say, say_issues


def test_a_gpu_that_nobody_asked_for_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert chosen_device(None) == "cuda"
    assert capsys.readouterr().out == "computing on cuda; --device cpu computes on the processor instead\n"
    assert chosen_device("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen_device(None) == "cpu"
    assert capsys.readouterr().out == ""


def test_pictures_that_lack_one_decoder_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    said = [Issue(NEEDS_EXTRA, f"{at}.heic", "pip install") for at in range(30)]
    say_issues([*said, Issue("unreadable picture", "a.png", "damaged")])
    assert (
        capsys.readouterr().out
        == f"{NEEDS_EXTRA}: 0.heic and 29 more: pip install\nunreadable picture: a.png: damaged\n"
    )
    say_issues(said[:1])
    assert capsys.readouterr().out == f"{NEEDS_EXTRA}: 0.heic: pip install\n"


def test_codes_in_names_and_captions_never_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J \u202egpj.exe \udcff \x9b31m"
    say(evil)
    say_issues([Issue("unreadable picture", evil, evil)])
    table = Table(title=evil)
    table.add_column(evil)
    table.add_row(evil)
    console.print(table, width=400)
    said = capsys.readouterr().out
    assert r"\x1b]0;owned\x07\x1b[2J \u202egpj.exe \udcff \x9b31m" in said
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\udcff"} & set(said)


def test_colours_of_ours_still_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from rungwise.jobs._terminal import _Terminal

    coloured = _Terminal(force_terminal=True, color_system="standard")
    with coloured.capture() as captured:
        coloured.print("[bold red]\x1b[31mred[/]", highlight=False)
    assert captured.get() == "\x1b[1;31m\\x1b[31mred\x1b[0m\n"


def test_printed_commands_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "my work" / ".venv" / "bin" / "rungwise"
    installed.parent.mkdir(parents=True)
    monkeypatch.setattr("sys.executable", str(installed.with_name("python")))
    assert program(tmp_path) == f"'{installed.with_name('python')}' -m rungwise"
    installed.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program(installed.parents[2]) == ".venv/bin/rungwise"
    assert program(tmp_path) == "'my work/.venv/bin/rungwise'"
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program(tmp_path) == "rungwise"


def test_progress_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    seldom = terminal.Seldom(clock=lambda: now)
    for now in (1.0, 5.5, 6.0, 10.4, 10.6):
        seldom(f"at {now}")
    assert capsys.readouterr().out == "at 5.5\nat 10.6\n"
