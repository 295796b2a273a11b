"""Also tests rungwise.jobs._python_values."""

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.jobs import JobOptions, console, function_of, say
from rungwise.jobs._options import PathOrNone, Texts, given


@dataclass
class Count(JobOptions):
    """Count things.

    Attributes:
        folder: Where they are.
        names: Which ones.
        k: How many.
        how: How often.
        loud: Whether they are called out.
        share: Of all.
    """

    folder: PathOrNone = given(None)
    names: Texts = given(())
    k: int = field(default=3)
    how: Literal["seldom", "often"] = "often"
    loud: bool = False
    share: float | None = None


def counted(asked: Count) -> int:
    if asked.k < 0:
        raise UserError("--k -1, --max-count and --no-fold: give more; not a --flag_of another form, and no a--b")
    say(f"counting {asked.folder!r} {asked.names!r}")
    return asked.k


count = function_of("count", Count, counted, "Returns:\n    The number.")


def test_paths_and_lists_take_the_form_of_their_field(capsys):
    assert count("photos", names=["a"]) == 3
    assert capsys.readouterr().out == f"counting {Path('photos')!r} ('a',)\n"
    count(Path("photos"), "one")
    assert "('one',)" in capsys.readouterr().out


def test_quiet_prints_nothing_and_the_console_speaks_again_afterwards(capsys):
    count(quiet=True)
    assert capsys.readouterr().out == ""
    assert not console.quiet
    with pytest.raises(UserError):
        count(k=-1, quiet=True)
    assert not console.quiet


def test_errors_name_parameters():
    with pytest.raises(UserError) as refused:
        count(k=-1)
    assert str(refused.value).startswith("k=-1, --max-count and --no-fold: give more")  # which count does not have
    assert str(refused.value).endswith("no a--b")


def test_the_function_is_documented_as_its_command():
    assert list(inspect.signature(count).parameters) == ["folder", "names", "k", "how", "loud", "share", "quiet"]
    assert inspect.signature(count).parameters["k"].default == 3
    assert "Args:\n    folder: Where they are." in count.__doc__
    assert count.__doc__.endswith("Returns:\n    The number.\n")


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: count(5), "folder=5: give a path"),
        (lambda: count(names=3), "names=3: give a list of texts"),
        (lambda: count(names=["a", 3]), "names=['a', 3]: give a list of texts"),
        (lambda: count(k="three"), "k='three': give a whole number"),
        (lambda: count(k=True), "k=True: give a whole number"),
        (lambda: count(k=1.5), "k=1.5: give a whole number"),
        (lambda: count(how="rarely"), "how='rarely': give 'seldom', 'often'"),
        (lambda: count(how=True), "how=True: give 'seldom', 'often'"),
        (lambda: count(loud="yes"), "loud='yes': give True or False"),
        (lambda: count(share="a"), "share='a': give a number"),
        (lambda: count(nmes=["a"]), "count() has no parameter nmes=; did you mean names=?"),
        (lambda: count(1, 2, 3, 4, 5, 6, 7, 8), "count(): too many positional arguments"),
    ],
)
def test_a_value_of_another_type_is_one_line(call, line):
    with pytest.raises(UserError) as refused:
        call()
    assert str(refused.value) == line


def test_numbers_of_numpy_are_numbers():
    assert count(k=np.int64(4), share=np.float32(0.5)) == 4
    assert count(k=2, share=1) == 2


def test_help_shows_plain_types():
    said = str(inspect.signature(count))
    assert "k: int = 3" in said
    assert "tyro" not in said
