"""What compiled code writes before it fails stands in the traceback, and nowhere else."""

import os

import pytest

from rungwise.core.output import _native_lines as native_lines
from rungwise.core.output import lines_of_failure_kept, native_lines_dropped


def test_lines_before_a_failure_are_a_note(capfd):
    @lines_of_failure_kept()
    def panic():
        os.write(2, b"thread '<unnamed>' panicked at lib.rs\n")
        raise ValueError("a panic")

    with pytest.raises(ValueError, match="a panic") as caught:
        panic()
    assert caught.value.__notes__ == ["thread '<unnamed>' panicked at lib.rs"]
    assert capfd.readouterr().err == ""


def test_other_lines_go_where_they_were_meant_to(capfd):
    with lines_of_failure_kept():
        with lines_of_failure_kept():
            os.write(2, b"inner\n")
        os.write(2, b"outer\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "inner\nouter\nafter\n"


def test_lines_are_dropped_where_they_are_the_libraries_alone(capfd, monkeypatch):
    with native_lines_dropped():
        os.write(2, b"Python writes here, too\n")
    assert capfd.readouterr().err == "Python writes here, too\n"
    monkeypatch.setattr(native_lines._held, "is_theirs_alone", True)
    with native_lines_dropped():
        os.write(2, b"Corrupt JPEG data\n")
        with lines_of_failure_kept():
            os.write(2, b"and more of it\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_a_failure_keeps_its_lines_while_others_are_dropped(monkeypatch):
    monkeypatch.setattr(native_lines._held, "is_theirs_alone", True)

    @lines_of_failure_kept()
    def panic():
        os.write(2, b"a panic\n")
        raise ValueError

    with native_lines_dropped(), pytest.raises(ValueError) as caught:
        panic()
    assert caught.value.__notes__ == ["a panic"]
