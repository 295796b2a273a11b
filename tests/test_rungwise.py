"""The package's own names. Also tests rungwise.__main__."""

import runpy
import subprocess
import sys

import pytest

import rungwise
from rungwise import data, evaluation, index
from rungwise.core.version import __version__


def test_the_values_of_the_package_are_those_of_its_rooms():
    assert rungwise.Result is evaluation.Result
    assert rungwise.Collection is data.ImageCaptions
    assert rungwise.Index is index.Index


def test_a_name_that_is_not_there_is_said():
    with pytest.raises(AttributeError, match="'rungwise' has no attribute 'trane'"):
        _ = rungwise.trane


def test_the_package_runs_as_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rungwise", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("rungwise", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out == f"rungwise {__version__}\n"


@pytest.mark.slow
def test_python_runs_the_package():
    done = subprocess.run([sys.executable, "-m", "rungwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rungwise {__version__}\n"
