import inspect
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.jobs import JobOptions, console, function_of, say


@dataclass
class Count(JobOptions):
    """Count things.

    Attributes:
        folder: Where they are.
        names: Which ones.
        k: How many.
    """

    folder: Path | None = None
    names: tuple[str, ...] = ()
    k: int = field(default=3)


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
    assert str(refused.value).startswith("k= -1, max_count= and fold=: give more")
    assert str(refused.value).endswith("no a--b")


def test_the_function_is_documented_as_its_command():
    assert list(inspect.signature(count).parameters) == ["folder", "names", "k", "quiet"]
    assert inspect.signature(count).parameters["k"].default == 3
    assert "Args:\n    folder: Where they are." in count.__doc__
    assert count.__doc__.endswith("Returns:\n    The number.\n")
