"""What compiled code writes before it fails stands in the traceback, and nowhere else."""

import os

import pytest

from rungwise.core.output import lines_of_failure_kept


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
