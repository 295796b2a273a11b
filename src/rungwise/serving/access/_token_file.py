"""Tokens in a text, one name a line, and in a file that is read anew when it changes.

A line is ``NAME RIGHT TOKEN``. Behind the token may stand a second one while a name goes over from one to the other. In
place of a token its seal may stand, which opens nothing (:func:`rungwise.serving.access.seal_of`).
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from itertools import takewhile
from pathlib import Path

from rungwise.core import UserError, read_text, stamp, unreadable
from rungwise.core.output import line_of, printable
from rungwise.core.text import person_name
from rungwise.serving.access._rights import RIGHTS, Right, Visitor
from rungwise.serving.access._tokens import SHORTEST, AccessTokens, NamedToken, checked_token, seal_of
from rungwise.serving.queues import repeated

SEAL = "sha256:"
"""Beginning of a seal in a file of tokens."""

_SEAL = re.compile(f"{SEAL}[0-9a-f]{{64}}")
_SECONDS_BETWEEN = 1.0
_MOST_OF_A_NAME = 2

_log = logging.getLogger(__name__)


def token_line(name: str, right: Right, token: str) -> str:
    """Line of a file of tokens that holds a seal in place of the token.

    Raises:
        UserError: If the name cannot stand in a file of tokens, or the token is unfit.

    >>> token_line("ada", "grade", "correct-horse")[:17]
    'ada grade sha256:'
    """
    return f"{_checked_name(name)} {right} {SEAL}{seal_of(checked_token(token))}"


def parse_tokens(text: str, place: str) -> AccessTokens:
    """Tokens of a text such as ``"ada write TOKEN; bob read TOKEN"``, one name in each line or before a semicolon.

    Args:
        text: Names, rights and tokens; what follows ``#`` at the beginning of a line, or behind
            a semicolon, is left out to the end of the line.
        place: Description of where the text stands, for messages.

    Raises:
        UserError: If there is none, or one is not as it should be. No message repeats a token.
    """
    # A note goes to the end of its line, as in a file: a token behind a semicolon in it is out of use too.
    lines = (line.split(";") for line in text.splitlines())
    parts = [part for line in lines for part in takewhile(lambda one: not one.lstrip().startswith("#"), line)]
    return AccessTokens(_parsed(parts, place, "entry")[0])


class TokenFile(AccessTokens):
    """Tokens in a file, which can be changed while the server runs.

    Args:
        path: Path of the file.

    Raises:
        UserError: If the file cannot be read, others on this machine may read tokens in it or change it, or a line is
            not as it should be. No message repeats a token.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = stamp(path)
        self._failed = ""
        super().__init__(_read(path))

    def look(self) -> None:
        """Read the file if it has changed; what is wrong with it is logged, and the tokens of before stay in force."""
        now = stamp(self.path)
        changed = now != self._stamp
        if not changed and not self._failed:
            return
        self._stamp = now  # taken before reading: what changes meanwhile is seen by the next look
        try:
            self._replace(_read(self.path))
        except (UserError, OSError, MemoryError) as error:
            # Read again by the next look: a removed token must end though the disk or the system failed just once.
            reason = line_of(error)
            if changed or reason != self._failed:
                _log.warning("the tokens of before stay in force: %s", reason)
            self._failed = reason
        else:
            self._failed = ""
            names = ", ".join(f"{one.name} ({one.right})" for one in self.visitors)
            _log.warning("the tokens were read anew: %s", printable(names))

    def followed(self) -> AbstractAsyncContextManager[None]:
        """Look at the file once a second while the block runs, in a thread of its own."""
        return repeated(self.look, _SECONDS_BETWEEN)


def _read(path: Path) -> list[NamedToken]:
    found, plain = _parsed(read_text(path, "settings_bytes").splitlines(), str(path), "line")
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise unreadable(path, error) from error
    if os.name == "posix" and mode & stat.S_IWOTH:
        raise UserError(f"{path}: everybody on this machine may change it; run: chmod o= {path}")
    if os.name == "posix" and plain and mode & stat.S_IROTH:
        raise UserError(
            f"{path}: everybody on this machine may read the tokens in it; run: chmod o= {path}, or keep the lines"
            " there that rungwise token prints"
        )
    return found


def _parsed(lines: Iterable[str], place: str, unit: str) -> tuple[list[NamedToken], bool]:
    """Names with their tokens, and whether a token itself stands among them; ``unit`` is what messages call a line."""
    found: list[NamedToken] = []
    names: dict[str, int] = {}
    seals: dict[str, int] = {}
    plain = False
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{place}, {unit} {number}"
        name, right, tokens = _words(line, where)
        if before := names.get(name):
            raise UserError(f"{where}: {name} stands in {unit} {before} too; write both tokens of a name in one {unit}")
        names[name] = number
        given = tuple(_seal(one, where) for one in tokens)
        for seal in given:
            if before := seals.get(seal):
                raise UserError(f"{where}: its token stands in {unit} {before} too; give each name one of its own")
            seals[seal] = number
        plain = plain or not all(one.startswith(SEAL) for one in tokens)
        found.append(NamedToken(Visitor(name, right), given))
    if not found:
        raise UserError(f"{place}: holds no token; write NAME RIGHT TOKEN, as rungwise token prints it")
    return found, plain


def _words(line: str, where: str) -> tuple[str, Right, list[str]]:
    """Name, right and tokens of a line. A token may stand in any place by mistake, so that no word is repeated."""
    words = line.split()
    if not 3 <= len(words) <= 2 + _MOST_OF_A_NAME:
        many = f"{len(words)} word{'s' * (len(words) != 1)}"
        raise UserError(f"{where}: has {many}; write NAME RIGHT TOKEN, and a second token at most")
    name, right, *tokens = words
    if right not in RIGHTS:
        raise UserError(f"{where}: the second word is no right; write {', '.join(RIGHTS[:-1])} or {RIGHTS[-1]}")
    try:
        return _checked_name(name), right, tokens
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _checked_name(name: str) -> str:
    """The name, which must be one that can stand beside a grade and in a line of words."""
    try:
        fit = person_name(name) == name and not name.startswith("#") and not set(name) & set("; ")
    except UserError:
        fit = False
    if not fit:
        raise UserError("this is no name for a token; write letters and digits without blanks, such as ada")
    return name


def _seal(word: str, where: str) -> str:
    if word.startswith(SEAL):
        if not _SEAL.fullmatch(word):
            raise UserError(f"{where}: the seal is not whole; write {SEAL} and 64 digits, as rungwise token prints it")
        return word.removeprefix(SEAL)
    try:
        return seal_of(checked_token(word))
    except UserError:
        raise UserError(
            f"{where}: a token has at least {SHORTEST} characters, all printable ASCII without spaces"
        ) from None
