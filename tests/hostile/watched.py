"""What a process must not do while it reads a configuration: seen by Python's own audit events."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROCESSES = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"} | {
    "subprocess.Popen"
}
NETWORK = {
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg",
    "urllib.Request", "http.client.connect", "ftplib.connect", "smtplib.connect",
}  # fmt: skip
CHANGES = {
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate",
    "shutil.rmtree", "shutil.move", "shutil.copyfile",
}  # fmt: skip
WORDS = ("evil", "touch ", "os.system", "__import__")
"""In every hostile text; none stands in code that the libraries make while they load."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Collects forbidden events while it is on.

    Attributes:
        home: The folder in which files may be written.
        seen: What happened, as lines.
    """

    def __init__(self, home: Path) -> None:
        self.home = str(home.resolve())
        self.seen: list[str] = []
        self._on = False
        sys.addaudithook(self._hook)

    @contextmanager
    def on(self) -> Iterator[list[str]]:
        """Within it, what is forbidden is collected; a process or a connection is not made either."""
        self.seen = []
        self._on = True
        try:
            yield self.seen
        finally:
            self._on = False

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        self._on = False  # what the hook itself does is not looked at
        try:
            forbidden = self._forbidden(event, args)
            if forbidden:
                self.seen.append(f"{event} {args!r}"[:300])
        finally:
            self._on = True
        if forbidden and event in PROCESSES | NETWORK:
            raise PermissionError(f"{event} is not allowed here")

    def _forbidden(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "pickle.find_class" or event in PROCESSES or event in NETWORK:
            return True
        if event == "import":
            return str(args[0]).split(".")[0] == "evil"
        if event == "exec":
            return str(args[0].co_filename).startswith(self.home)
        if event == "compile":
            source = args[0].decode("utf-8", "replace") if isinstance(args[0], bytes) else str(args[0])
            return any(word in source for word in WORDS) or str(args[1]).startswith(self.home)
        if event == "ctypes.dlopen":
            return any(word in str(args[0]) for word in (*WORDS, self.home))
        if event == "open":
            path, _, flags = args
            return bool(flags & _WRITES) and self._outside(path) and path != os.devnull
        return event in CHANGES and any(self._outside(one) for one in args)

    def _outside(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return not os.path.realpath(os.fsdecode(path)).startswith(self.home)
