"""The rule for what nobody foresaw: one line with the kind of error, the file, and how to see more."""

import ast
import errno
import importlib
import os
import types

import pytest

import rungwise.cli as cli
from rungwise.core import UserError
from rungwise.core.compute import _memory as memory
from tests.house import modules, tree_of


class PanicException(BaseException):
    """As libraries that are written in Rust raise it."""


@pytest.fixture
def failing(monkeypatch):
    """Lets the command ``inspect`` end with an error."""

    def fail_with(error):
        def command(arguments):
            raise error

        monkeypatch.setattr(importlib, "import_module", lambda name: types.SimpleNamespace(main=command))

    return fail_with


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyError("x"), 70, "unforeseen KeyError: 'x' (rungwise/cli/__init__.py, line "),
        (PanicException("called `Option::unwrap()`"), 70, "unforeseen PanicException: called `Option::unwrap()` ("),
        (RuntimeError(), 70, "unforeseen RuntimeError: no reason given ("),
        (OSError(errno.EIO, os.strerror(errno.EIO), "a\x1b[31m.jpg"), 70, "unforeseen OSError: [Errno 5] Input/output"),
        (ValueError("first\nsecond"), 70, "unforeseen ValueError: first (rungwise/cli"),
        (MemoryError("Unable to allocate 3 GiB"), 2, "out of memory (Unable to allocate 3 GiB); free some"),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory"),
            2,
            "out of memory",
        ),
        (UserError("a.csv, line 3: wrong\nin two lines"), 2, "a.csv, line 3: wrong in two lines"),
    ],
)
def test_every_error_is_one_line(failing, capsys, error, code, line):
    failing(error)
    assert cli.main(["inspect", "x"]) == code
    said = capsys.readouterr().err
    assert said.startswith(f"rungwise inspect: {line}")
    assert len(said.splitlines()) == 1
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert ("--traceback" in said) == (code == 70)


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        (
            RuntimeError("can't start new thread"),
            "out of memory (can't start new thread); allow more threads (ulimit -u)",
        ),
        (
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            "out of memory ([Errno 12] Cannot allocate memory); free some",
        ),
        (MemoryError(), "a.npy: cannot be read"),  # as the parser says of deep nesting
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "a.npy: cannot be read"),
        (ValueError("cut off"), "a.npy: cannot be read"),
    ],
)
def test_a_refusal_for_want_of_memory_blames_no_file(failing, capsys, cause, line):
    error = UserError("a.npy: cannot be read; correct it")
    error.__context__ = cause
    failing(error)
    assert cli.main(["inspect", "x"]) == 2
    assert capsys.readouterr().err.startswith(f"rungwise inspect: {line}")


def test_where_nothing_is_left_what_nobody_foresaw_is_want_of_memory(failing, capsys, monkeypatch):
    monkeypatch.setattr(memory, "nearly_out", lambda: True)
    failing(AttributeError("partially initialized module"))
    assert cli.main(["inspect", "x"]) == 2
    assert capsys.readouterr().err.startswith("rungwise inspect: out of memory (partially initialized module); ")


@pytest.mark.parametrize(
    ("cause", "nearly", "line"),
    [
        (ModuleNotFoundError("Could not import module 'BertModel'"), False, "a: cannot be loaded"),
        (
            ModuleNotFoundError("Could not import module 'BertModel'"),
            True,
            "out of memory (Could not import module 'Be",
        ),
        (ModuleNotFoundError("No module named 'lancedb'", name="lancedb"), True, "a: cannot be loaded"),
    ],
)
def test_a_library_that_cannot_load_a_part_of_its_own_may_lack_memory(
    failing, capsys, monkeypatch, cause, nearly, line
):
    monkeypatch.setattr(memory, "nearly_out", lambda: nearly)
    error = UserError("a: cannot be loaded; check the name")
    error.__cause__ = cause
    failing(error)
    assert cli.main(["inspect", "x"]) == 2
    assert capsys.readouterr().err.startswith(f"rungwise inspect: {line}")


@pytest.mark.parametrize("arguments", [["--traceback", "inspect"], ["inspect", "x", "--traceback"]])
def test_more_is_shown_on_request(failing, capsys, arguments):
    failing(KeyError("x"))
    assert cli.main(arguments) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):")
    assert said.splitlines()[-1].startswith("rungwise inspect: unforeseen KeyError: 'x'")


def test_what_stands_after_two_dashes_is_no_flag(monkeypatch):
    seen = []
    command = types.SimpleNamespace(main=lambda arguments: seen.append(arguments) or 0)
    monkeypatch.setattr(importlib, "import_module", lambda name: command)
    assert cli.main(["search", "index", "--traceback", "--", "--traceback"]) == 0
    assert seen == [["index", "--", "--traceback"]]


def test_an_end_that_a_command_asks_for_passes(failing):
    failing(SystemExit(3))
    with pytest.raises(SystemExit):
        cli.main(["inspect"])


def test_interruption(failing, capsys):
    failing(KeyboardInterrupt())
    assert cli.main(["inspect"]) == 130
    assert capsys.readouterr().err == "\nrungwise inspect: interrupted\n"


def test_what_is_typed_as_an_option_is_named_as_one(failing, capsys):
    inner = UserError("is there; replace it with overwrite=True", parameters={"overwrite=True": "overwrite"})
    outer = UserError(f"overwrite=True.index: {inner}")
    outer.__cause__ = inner
    failing(outer)
    assert cli.main(["index"]) == 2
    assert capsys.readouterr().err == "rungwise index: overwrite=True.index: is there; replace it with --overwrite\n"
    assert str(outer).endswith("overwrite=True")


def test_parameters_that_messages_name_are_options_of_a_command():
    """Nobody is told of an option that no command has."""
    named = set()
    for module in modules():
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.keyword) and node.arg == "parameters" and isinstance(node.value, ast.Dict):
                named |= {one.value for one in node.value.values if isinstance(one, ast.Constant)}
    fields = {
        (module.startswith(("rungwise.cli.", "rungwise.jobs.")), node.target.id)
        for module in modules()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    options, settings = {name for is_cli, name in fields if is_cli}, {name for _, name in fields}
    assert named
    # What has a dot is a setting of a run, each of which is an option of rungwise train.
    assert {one for one in named if "." not in one} <= options
    assert {part for one in named if "." in one for part in one.split(".")} <= settings
