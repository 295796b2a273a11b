"""Command lines of the documents: those of rungwise run in this process, others in one bash."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from tests.ports import free_port
from tests.rooms import ROOT

SERVERS = {"serve": 8000, "grade": 8000, "demo": 8000, "serve-model": 3003}
"""Commands that end when they are stopped, with their ports."""

CHECKED = ("pip", "source", "deactivate", "py", "python3", "cd")
"""First words of lines that set up a machine: they are checked, and not run."""

_SHELL = re.compile(r"[|<>;&`$*~{}()]")
_ASSIGNED = re.compile(r"[A-Z_][A-Z0-9_]*=\S*")
_BLOCK_OF_SHELL = re.compile(r"^(?:for|if|while|case|export|[A-Za-z_]+=\S*$)\b|<<", re.MULTILINE)
_EXTRAS = re.compile(r"(?:\.|rungwise)\[([\w,-]+)\]")


@dataclass(frozen=True)
class Line:
    """A command of a block, its continued lines joined.

    Attributes:
        text: The command without its comment.
        words: Its words, if it is plain rungwise; else empty.
        set: Variables that are set before it.
    """

    text: str
    words: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()


def lines_of(text: str) -> list[Line]:
    """The commands of a block; what bash has to read as a whole is one of them.

    >>> [one.words or one.text for one in lines_of("rungwise search INDEX 'a dog'  # words\\nls | wc")]
    [('search', 'INDEX', 'a dog'), 'ls | wc']
    """
    if re.search(r"^\$ ", text, re.MULTILINE):  # with what it printed below
        text = "\n".join(_with_continued(text))
    joined = text.replace("\\\n", " ")
    bare = [stripped for line in joined.splitlines() if (stripped := re.sub(r"(?:^|\s+)#(?:\s.*)?$", "", line).strip())]
    if _BLOCK_OF_SHELL.search("\n".join(bare)):
        return [Line(text)]
    return [_line(one) for one in bare]


def _with_continued(text: str) -> Iterator[str]:
    """The lines of a session that somebody typed."""
    going = False
    for line in text.splitlines():
        if going or line.startswith("$ "):
            yield line.removeprefix("$ ")
            going = line.endswith("\\")


def _line(text: str) -> Line:
    outside = re.sub(r"'[^']*'", "", text)
    if _SHELL.search(re.sub(r'"[^"$`]*"', "", outside)):
        return Line(text)
    words = shlex.split(text)
    variables = []
    while words and _ASSIGNED.fullmatch(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables.append((name, value))
    if words and words[0].rpartition("/")[2] == "rungwise":
        return Line(text, tuple(words[1:]), tuple(variables))
    return Line(text)


def set_up_fault(text: str) -> str | None:
    """What a line names that there is not; None where it is well, or no line that is only checked."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [name for extras in _EXTRAS.findall(text) for name in extras.split(",")]
    if unknown := [name for name in named if name not in project["optional-dependencies"]]:
        return f"there is no extra {', '.join(unknown)}"
    files = [word for word in shlex.split(text) if word.endswith((".txt", ".py"))]
    if missing := [name for name in files if not (ROOT / name).is_file()]:
        return f"there is no {', '.join(missing)}"
    return None


@dataclass
class Shell:
    """What the commands of a page share: ports of servers, and servers that answer until the page ends."""

    say: Callable[[str], None]
    variables: dict[str, str]
    ports: dict[int, int] = field(default_factory=dict)
    servers: list[Server] = field(default_factory=list)

    def run(self, line: Line) -> tuple[int, str]:
        """Run a command; gives its exit status, and how it was shortened."""
        os.write(1, f"  {line.text}\n".encode())
        first = (line.text.split() or [""])[0]
        if first in CHECKED:
            fault = set_up_fault(line.text)
            self.say(fault or "")
            return int(fault is not None), "a line that sets up a machine is checked only"
        if not line.words:
            return self._bash(self.moved(line.text)), ""
        words = [self.moved(word) for word in line.words]
        with patch.dict(os.environ, dict(line.set)):
            if words[0] in SERVERS and not {"--help", "--help-all", "--agreement", "--export"} & {*words}:
                return self._serve(words), "asked once on a port of its own; stopped at the end of the page"
            return called(words), ""

    def moved(self, text: str) -> str:
        """A text with the ports of this page's servers in place of those that it names."""
        for port, ours in self.ports.items():
            text = re.sub(rf"(127\.0\.0\.1|localhost):{port}\b", rf"\1:{ours}", text)
        return text

    def close(self) -> None:
        """Stop all servers."""
        for server in self.servers:
            server.stop()
        self.servers.clear()

    def _bash(self, text: str) -> int:
        done = subprocess.run(
            ["bash", "-e", "-c", text],
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.say(done.stdout)
        return done.returncode

    def _serve(self, words: list[str]) -> int:
        asked = SERVERS[words[0]]
        if "--port" in words:
            at = words.index("--port")
            asked = int(words[at + 1])
            words = [*words[:at], *words[at + 2 :]]
        ours = free_port()
        page = [] if words[0] == "serve-model" else ["--no-browser"]
        server = Server([*words, "--port", str(ours), *page], ours)
        if server.start():
            self.ports[asked] = ours
            self.servers.append(server)
            self.say(server.ask())
        return server.status


class Server:
    """A command that serves, in a thread of this process.

    Attributes:
        status: Exit status; 0 while it serves.
    """

    def __init__(self, words: list[str], port: int) -> None:
        self.words, self.port, self.status = words, port, 0
        self._uvicorn: Any = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.status = called(self.words)
        finally:
            self._begun.set()

    def start(self) -> bool:
        """Whether it serves."""
        import uvicorn

        startup = uvicorn.Server.startup

        async def noted(server: Any, sockets: Any = None) -> None:
            await startup(server, sockets)
            self._uvicorn = server
            self._begun.set()

        uvicorn.Server.startup = noted  # type: ignore[method-assign]
        try:
            self._thread.start()
            self._begun.wait()
        finally:
            uvicorn.Server.startup = startup  # type: ignore[method-assign]
        return self._uvicorn is not None

    def ask(self) -> str:
        """Ask for its page once."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/") as answer:
                return f"GET /: {answer.status}"
        except urllib.error.HTTPError as refused:  # it wants a token
            return f"GET /: {refused.code}"

    def stop(self) -> None:
        """Stop it, and wait for its end."""
        self._uvicorn.should_exit = True
        self._thread.join()


def called(words: list[str]) -> int:
    """Exit status of a command of rungwise in this process."""
    from rungwise.cli import main

    try:
        return main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def programs(folder: str) -> dict[str, str]:
    """Variables with which bash finds rungwise, Python and torchrun of this environment."""
    return {"PATH": f"{folder}{os.pathsep}{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"}  # noqa: PTH120
