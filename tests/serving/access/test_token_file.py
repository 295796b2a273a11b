"""Tokens in a text and in a file: what is refused and where, and what happens when the file changes."""

import asyncio
import logging
import os
import threading
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.serving import ServerSettings, background, new_app
from rungwise.serving.access import TokenFile, Visitor, cookie_of, needed_right, parse_tokens, seal_of, token_line
from tests.colour_model import ColourModel

ADA, BOB, NEW = "token-of-ada-1", "token-of-bob-1", "token-of-ada-2"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    """A file in the place of the one before, as an editor or ``mv`` puts it there."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)
    return path


def test_names_rights_and_tokens_are_read(tmp_path: Path) -> None:
    text = f"# the team\n\nada write {NEW} {ADA}   \n  {token_line('bob', 'read', BOB)}\nZoë grade token-of-zoë\n"
    text = text.replace("token-of-zoë", "token-of-zoe")
    tokens = TokenFile(written(tmp_path / "tokens", text))
    assert tokens.bearer_of(ADA) == tokens.bearer_of(NEW) == Visitor("ada", "write")
    assert tokens.bearer_of(BOB) == tokens.owner_of(cookie_of(BOB)) == Visitor("bob", "read")
    assert [one.name for one in tokens.visitors] == ["ada", "bob", "Zoë"]
    assert tokens.bearer_of("token-of-eve") is None


def test_what_lies_in_the_file_opens_nothing() -> None:
    tokens = parse_tokens(token_line("bob", "read", BOB), "here")
    for stolen in (seal_of(BOB), f"sha256:{seal_of(BOB)}"):
        assert tokens.bearer_of(stolen) is None
        assert tokens.owner_of(stolen) is None


def test_a_semicolon_stands_for_a_new_line() -> None:
    tokens = parse_tokens(f"ada write {ADA}; bob read {BOB}", "RUNGWISE_TOKENS")
    assert [one.name for one in tokens.visitors] == ["ada", "bob"]
    with pytest.raises(UserError, match="RUNGWISE_TOKENS, entry 2: has 1 word;"):
        parse_tokens("ada write long-enough;semicolon", "RUNGWISE_TOKENS")


def test_a_note_goes_to_the_end_of_its_line() -> None:
    """Else a line that was put out of use would let in everybody behind its first semicolon."""
    tokens = parse_tokens(f"  # before: ada write {ADA}; bob read {BOB}\nada write {NEW}", "RUNGWISE_TOKENS")
    assert (tokens.bearer_of(ADA), tokens.bearer_of(BOB)) == (None, None)
    assert tokens.visitors == (Visitor("ada", "write"),)
    # A note may also stand behind a semicolon.
    tokens = parse_tokens(f"ada write {ADA}; # gone; bob read {BOB}", "RUNGWISE_TOKENS")
    assert tokens.visitors == (Visitor("ada", "write"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no token; write NAME RIGHT TOKEN"),
        ("# nobody\n", "holds no token"),
        (f"ada {ADA}", "line 1: has 2 words; write NAME RIGHT TOKEN"),
        (f"ada write {ADA} {NEW} {BOB}", "line 1: has 5 words"),
        (f"\nada {ADA} write", "line 2: the second word is no right; write watch, read, grade or write"),
        (f"ada Write {ADA}", "line 1: the second word is no right"),
        ("ada write short", "line 1: a token has at least 8 characters"),
        ("ada write Schlüsselwort", "line 1: a token has at least 8 characters, all printable ASCII"),
        ("ada write sha256:abc", "line 1: the seal is not whole"),
        (f"ada write sha256:{'A' * 64}", "line 1: the seal is not whole"),
        (
            f"ada write {ADA}\nada read {NEW}",
            "line 2: ada stands in line 1 too; write both tokens",
        ),
        (f"ada write {ADA}\nbob read {ADA}", "line 2: its token stands in line 1 too"),
        (f"ada write {ADA}\nbob read sha256:{seal_of(ADA)}", "line 2: its token stands in line 1 too"),
        (f"ada write {ADA} {ADA}", "line 1: its token stands in line 1 too"),
        (f"\u200b write {ADA}", "line 1: this is no name for a token"),
        (f"Jose\u0301 write {ADA}", "line 1: this is no name for a token"),
    ],
)
def test_mistakes_name_the_line_and_repeat_no_token(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "tokens", text)
    with pytest.raises(UserError) as refused:
        TokenFile(path)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert not [token for token in (ADA, BOB, NEW) if token in str(refused.value)]


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are those of POSIX")
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    plain, sealed = f"ada write {ADA}", token_line("ada", "write", ADA)
    for text, mode, message in (
        (plain, 0o604, "everybody on this machine may read the tokens in it; run: chmod o="),
        (plain, 0o602, "everybody on this machine may change it"),
        (sealed, 0o602, "everybody on this machine may change it"),
    ):
        with pytest.raises(UserError, match=message):
            TokenFile(written(path, text, mode))
    assert TokenFile(written(path, plain, 0o640)).bearer_of(ADA)
    assert TokenFile(written(path, sealed, 0o644)).bearer_of(ADA)


def test_a_place_that_holds_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        TokenFile(tmp_path / "none")
    with pytest.raises(UserError, match="is a folder"):
        TokenFile(tmp_path)


def test_a_changed_file_counts_and_a_damaged_one_does_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path / "tokens", f"ada write {ADA}\nbob read {BOB}\n")
    tokens = TokenFile(path)
    tokens.look()
    assert not caplog.records
    written(path, f"ada write {NEW} {ADA}\n")
    tokens.look()
    assert (tokens.bearer_of(NEW), tokens.bearer_of(BOB)) == (Visitor("ada", "write"), None)
    assert tokens.owner_of(cookie_of(BOB)) is None
    assert caplog.messages == ["the tokens were read anew: ada (write)"]
    for damage in ("", "ada write", f"ada rule {ADA}"):
        caplog.clear()
        written(path, damage)
        for _ in range(3):
            tokens.look()
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("the tokens of before stay in force: ")
        assert tokens.bearer_of(ADA) == tokens.bearer_of(NEW) == Visitor("ada", "write")
    caplog.clear()
    path.unlink()
    tokens.look()
    tokens.look()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert tokens.bearer_of(ADA)
    written(path, f"bob read {BOB}\n")
    tokens.look()
    assert (tokens.bearer_of(ADA), tokens.bearer_of(BOB)) == (None, Visitor("bob", "read"))


@pytest.mark.parametrize("fault", [UserError("tokens: cannot be read (input/output error)"), MemoryError()])
def test_a_file_that_cannot_be_read_just_once_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Without another change of the file: a token that was removed from it must not stay in force."""
    path = written(tmp_path / "tokens", f"ada write {ADA}\nbob read {BOB}\n")
    tokens = TokenFile(path)
    written(path, f"ada write {ADA}\n")

    def failing(*_: object) -> str:
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr("rungwise.serving.access._token_file.read_text", failing)
        tokens.look()
        tokens.look()
    assert tokens.bearer_of(BOB)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("the tokens of before stay in force: ")
    tokens.look()
    assert tokens.bearer_of(BOB) is None
    caplog.clear()
    tokens.look()
    assert not caplog.messages


def test_the_file_is_looked_at_again_after_a_look_for_which_there_was_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenFile(written(tmp_path / "tokens", f"ada write {ADA}"))
    monkeypatch.setattr("rungwise.serving.access._token_file._SECONDS_BETWEEN", 0.0)

    async def followed() -> int:
        looks, seen = 0, asyncio.Event()

        async def to_thread(_: object) -> None:
            nonlocal looks
            looks += 1
            if looks == 1:
                raise RuntimeError("can't start new thread")
            seen.set()

        monkeypatch.setattr(asyncio, "to_thread", to_thread)
        async with tokens.followed():
            await seen.wait()
        return looks

    assert asyncio.run(followed()) > 1


def test_the_file_is_looked_at_while_an_application_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "tokens", f"ada write {ADA}")
    looked = threading.Event()

    def look(self: TokenFile) -> None:
        assert threading.current_thread() is not threading.main_thread()
        looked.set()

    monkeypatch.setattr(TokenFile, "look", look)
    with TestClient(new_app("pictures", ServerSettings(tokens=TokenFile(path)), needed=needed_right)):
        looked.wait()
    looked.clear()

    async def nothing_to_follow() -> None:
        async with parse_tokens(f"ada write {ADA}", "here").followed():
            pass

    asyncio.run(nothing_to_follow())
    assert not looked.is_set()


class Asking:
    """A client that asks again and again on one connection, and notes when each status came."""

    def __init__(self, address: str, token: str) -> None:
        self.statuses: list[int] = []
        self._answered = threading.Condition()
        self._ended = threading.Event()
        self._place, self._token = urlsplit(address), token
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        connection = HTTPConnection(str(self._place.hostname), self._place.port or 0)
        while not self._ended.is_set():
            connection.request("GET", "/search?q=red&k=1", headers={"Authorization": f"Bearer {self._token}"})
            reply = connection.getresponse()
            reply.read()
            with self._answered:
                self.statuses.append(reply.status)
                self._answered.notify_all()
        connection.close()

    def wait_for(self, status: int) -> None:
        """Wait until this status is the newest."""
        with self._answered:
            self._answered.wait_for(lambda: self.statuses[-1:] == [status])

    def end(self) -> list[int]:
        self._ended.set()
        self._thread.join()
        return self.statuses


@pytest.mark.slow  # a server, eight clients and some seconds
def test_a_token_is_replaced_under_load(shared_index: Index, tmp_path: Path) -> None:
    path = written(tmp_path / "tokens", f"ada write {ADA}\nbob read {BOB}\n")
    with background(shared_index, ColourModel(), settings=ServerSettings(tokens=TokenFile(path))) as address:
        old, new = [Asking(address, ADA) for _ in range(3)], [Asking(address, NEW) for _ in range(2)]
        others = [Asking(address, BOB) for _ in range(3)]
        for one in (*old, *others):
            one.wait_for(200)
        for one in new:
            one.wait_for(401)
        written(path, f"ada write {NEW} {ADA}\nbob read {BOB}\n")
        for one in new:
            one.wait_for(200)
        before = [len(one.statuses) for one in old]
        written(path, f"ada write {NEW}\nbob read {BOB}\n")
        for one in old:
            one.wait_for(401)
        ends = [one.end() for one in old]
        assert all(set(statuses[:count]) == {200} for statuses, count in zip(ends, before, strict=True))
        assert all(statuses == sorted(statuses) for statuses in ends), "an old token came back"
        assert all(statuses == sorted(statuses, reverse=True) for statuses in (one.end() for one in new))
        assert {status for one in others for status in one.end()} == {200}
