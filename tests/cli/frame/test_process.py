"""What stands around a command: outputs that lack letters, are full or closed, and the words of libraries."""

import getpass
import importlib
import io
import logging
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

import rungwise.cli as cli
from rungwise.cli.frame import _process as process
from rungwise.core import RungwiseWarning
from rungwise.jobs import say
from tests.hostile.words import _SITE

CAPTION = "ein Bär 一隻狗 😀 \udcff"


@pytest.fixture
def running(monkeypatch):
    """Lets the command ``inspect`` do something else."""

    def run(command):
        monkeypatch.setattr(importlib, "import_module", lambda name: types.SimpleNamespace(main=command))
        return cli.main(["inspect"])

    return run


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", r"ein B\xe4r \u4e00\u96bb\u72d7 \U0001f600 \udcff"),
        ("cp1252", r"ein Bär \u4e00\u96bb\u72d7 \U0001f600 \udcff"),
        ("utf-16", r"ein Bär 一隻狗 😀 \udcff"),
    ],
)
def test_letters_that_an_encoding_lacks_are_written_as_escapes(running, monkeypatch, encoding, shown):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding)
    monkeypatch.setattr(sys, "stdout", stream)

    def command(_):
        say(CAPTION)
        print(CAPTION)
        return 0

    assert running(command) == 0
    assert raw.getvalue().decode(encoding).splitlines() == [shown, shown]
    assert stream.errors == "strict"


def test_a_reader_that_has_gone_is_no_error_and_another_broken_pipe_is(running, monkeypatch, capsys):
    def command(_):
        raise BrokenPipeError

    monkeypatch.setattr(process, "is_unread", lambda: True)
    assert running(command) == 0
    monkeypatch.setattr(process, "is_unread", lambda: False)
    assert running(command) == 70
    assert "BrokenPipeError" in capsys.readouterr().err


def test_an_interrupt_that_a_library_made_another_error_of_is_one(running, capsys):
    def command(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("half of a module")  # noqa: B904 - as libraries do

    assert running(command) == 130
    assert capsys.readouterr().err == "\nrungwise inspect: interrupted\n"


def test_a_message_that_cannot_be_written_ends_nothing():
    full = os.open("/dev/full", os.O_WRONLY)
    with io.TextIOWrapper(io.BufferedWriter(io.FileIO(full, "w")), "utf-8") as stream:
        messages = process._Messages(stream)
        print("so far, so good", file=messages, flush=True)
        print("and on", file=messages, flush=True)
        messages.detach()


def test_a_user_whom_the_system_knows_by_number_alone_has_that_as_a_name(monkeypatch):
    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(os, "environ", {})
    process._name_the_user()
    assert os.environ == {}, "the system knows this one"
    monkeypatch.setattr("pwd.getpwuid", unknown)
    process._name_the_user()
    assert getpass.getuser() == str(os.getuid())


def test_libraries_are_not_heard_and_we_are(monkeypatch, capsys):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(logging, "lastResort", logging._StderrHandler(logging.WARNING))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    process._silence_libraries()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)
        warnings.warn("rows are computed again", RungwiseWarning, stacklevel=1)
    for name in ("timm", "rungwise.serving.state._served_index"):
        record = logging.LogRecord(name, logging.WARNING, "", 0, f"a line of {name}", None, None)
        logging.lastResort.handle(record)
    assert capsys.readouterr().err == "rows are computed again\na line of rungwise.serving.state._served_index\n"
    assert os.environ["TRANSFORMERS_VERBOSITY"] == "critical"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["> /dev/full", "| true", ">&-", "2>&-", ">&- 2>&-", "2> /dev/full"])
@pytest.mark.parametrize(("words", "usual"), [("search --help", 0), ("inspect nowhere", 2)])
def test_an_output_that_cannot_be_written_is_one_line_at_most(shell, words, usual):
    command = f'set -o pipefail; "{sys.executable}" -m rungwise {words} {shell}'
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if shell == "> /dev/full" else usual)
    assert len(done.stderr.splitlines()) <= 1
    assert not done.stderr or done.stderr.startswith("rungwise ")


@pytest.mark.slow
def test_ctrl_c_while_the_program_is_loaded_is_no_traceback(tmp_path: Path):
    """At every seventh import from the first line of rungwise on, until one comes too late."""
    (tmp_path / "sitecustomize.py").write_text(_SITE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ends = []
    while not ends or ends[-1] != 0:
        done = subprocess.run(
            [sys.executable, "-m", "rungwise", "presets"],
            env={**os.environ, "PYTHONPATH": path, "INTERRUPT_AT": str(1 + 7 * len(ends))},
            capture_output=True,
            text=True,
            check=False,
        )
        ends.append(done.returncode)
        assert "Traceback" not in done.stderr, f"import {7 * len(ends)}: {done.stderr}"
        assert len(done.stderr.strip().splitlines()) <= 1
    assert set(ends) <= {0, 130, -2}
    assert ends.count(130) > 5
