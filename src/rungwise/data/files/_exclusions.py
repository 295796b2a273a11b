"""Files and folders that a person wants left out, by patterns as in ``.gitignore``.

The library pathspec reads each pattern. The regular expression is rewritten here, so that no pattern of a stranger
takes long: the time for a path is in proportion to its length. Of several ``*`` each takes as little as it can and
never gives it back. That loses no match, since whatever comes first leaves most to the rest.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from rungwise.core import UserError, read_text
from rungwise.core.text import normalised

IGNORE_FILE = ".rungwiseignore"
"""Name of the file whose lines are patterns for its folder and all below."""

_MOST = 1000
_LONGEST = 1000
_ANY_IN_NAME, _ANY_ONE, _FOLDERS_BEFORE, _FOLDERS_BETWEEN = "[^/]*", "[^/]", "^(?:.+/)?", "(?:/.+)?"
_SLASH = "(?P<ps_d>/)"
_NEGATED = re.compile(r"\[\^(\]?)(?!/\])")
"""The beginning of ``[!...]``, which is to stand for a character of a name, and so for no slash."""
_WHOLE = {".": ".+", "/": "[^/]+/.+", _SLASH: ".*/"}
"""Expressions that pathspec searches for anywhere in a path, as ones that match the whole of it."""


class Exclusions:
    """The patterns of one folder, in their order; of several that match, the last decides.

    Args:
        lines: Patterns as in ``.gitignore``: blank lines and those that begin with ``#`` say nothing, ``!`` takes back.
        where: Name of the file or argument that gives them, for messages.

    Raises:
        UserError: If a line is no pattern, or if there are too many or one is too long.

    >>> drafts = Exclusions(["*.png", "drafts/", "!keep.png"], "exclude")
    >>> [drafts.verdict(path) for path in ("a/b.png", "drafts/", "keep.png", "a.jpg")]
    [True, True, False, None]
    """

    def __init__(self, lines: Iterable[str], where: str) -> None:
        self._patterns: list[tuple[re.Pattern[str], bool]] = []
        for number, line in enumerate(lines, start=1):
            place = f"{where}, line {number}" if where.endswith(IGNORE_FILE) else f"{where} {line[:80]!r}"
            found = _compiled(line, place)
            if found is not None:
                self._patterns.append(found)
            if len(self._patterns) > _MOST:
                raise UserError(f"{place}: more than {_MOST} patterns; give fewer, such as the names of folders")

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._patterns)

    def leaves_out(self, path: str) -> bool:
        """Whether a file or one of the folders around it is left out."""
        parts = path.split("/")
        folders = ("/".join(parts[:depth]) + "/" for depth in range(1, len(parts)))
        return any(self.verdict(one) for one in (*folders, path))

    def verdict(self, path: str) -> bool | None:
        """Whether a path is left out; None where no pattern says anything.

        Args:
            path: Path relative to the folder of the patterns, with ``/`` between its parts, and at the end of a folder.
        """
        if not path.isascii():
            path = normalised(path, "NFC")
        return next((leaves for pattern, leaves in reversed(self._patterns) if pattern.fullmatch(path)), None)


def read_exclusions(path: Path) -> Exclusions:
    """The patterns of an :data:`IGNORE_FILE`; a UserError if it cannot be read or a line is no pattern."""
    return Exclusions(read_text(path, "settings_bytes").split("\n"), str(path))


def _compiled(line: str, place: str) -> tuple[re.Pattern[str], bool] | None:
    if len(line) > _LONGEST:
        raise UserError(f"{place}: a pattern of more than {_LONGEST} characters; shorten it")
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # of an extra; most folders have no patterns

    try:
        said, leaves = GitIgnoreSpecPattern.pattern_to_regex(normalised(line, "NFC"))
        if said is None or leaves is None:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd brackets, which mean here what they mean to git
            return re.compile(_NEGATED.sub(r"[^\1/", _linear(said)), re.DOTALL), leaves
    except (ValueError, re.error) as error:
        raise UserError(f"{place}: no pattern as .gitignore has them; correct it or put \\ before odd marks") from error


def _linear(said: str) -> str:
    """An expression of pathspec as one that matches a whole path in linear time."""
    if said in _WHOLE:
        return _WHOLE[said]
    if said.endswith("/") and not said.endswith(_SLASH):
        said += ".+"  # all that is below a folder
    starts_anywhere = said.startswith(_FOLDERS_BEFORE)
    first, *others = said.removeprefix(_FOLDERS_BEFORE).removeprefix("^").split(_FOLDERS_BETWEEN)
    chunks = [("(?:[^/]+/)*?" if starts_anywhere else "") + _linear_names(first)]
    chunks += ["(?:/[^/]+)*?" + _linear_names(one) for one in others]
    return "".join([*(f"(?>{one}(?=/))" for one in chunks[:-1]), chunks[-1]])


def _linear_names(said: str) -> str:
    first, *others = said.split(_ANY_IN_NAME)
    found = [first]
    for rest in others:
        ends_in_name = "/" not in rest.replace(_ANY_ONE, "")
        found.append(f"(?>{_ANY_IN_NAME}?{rest})" if ends_in_name else _ANY_IN_NAME + rest)
    return "".join(found)
