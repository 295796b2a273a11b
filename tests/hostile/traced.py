"""Does the shim see everything? A writer once under strace, which no call escapes, beside the shim's own log."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.hostile import shim
from tests.hostile.choice import Choice
from tests.hostile.counting import Case
from tests.hostile.interrupted import Prepared, all_prepared, fresh

FAMILY = "traced"

_KINDS = {
    "openat": "o",
    "ftruncate": "t",
    "fsync": "s",
    "fdatasync": "s",
    "rename": "r",
    "renameat": "r",
    "renameat2": "r",
    "unlink": "u",
    "unlinkat": "u",
    "rmdir": "u",
    "mkdir": "d",
    "mkdirat": "d",
    "link": "l",
    "linkat": "l",
    "symlink": "l",
    "symlinkat": "l",
    "write": "w",
    "pwrite64": "w",
    "writev": "w",
    "fallocate": "w",
    "sendfile": "w",
    "copy_file_range": "w",
}
_CALL = re.compile(r"\d+ +(\w+)\((.*)\) = (-?\d+)")
_HANDLE = re.compile(r"\d+<([^>]*)>")


def missing() -> str | None:
    """Why there can be no tracing here; None where there can."""
    return None if shutil.which("strace") else "tracing needs strace"


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """One case for each writer; ``wrong`` where a call escaped the shim, but for renames of safetensors."""
    for one in all_prepared(world, scratch, choice.only):
        if not choice.takes(one.writer.name):
            continue
        mine, all_of_them = _both(one, scratch)
        escaped = all_of_them - mine
        # safetensors renames its own draft by asking the system itself; a disk infers it from the file's next call.
        inferred = escaped.pop("r", 0)
        detail = f"past the shim: {dict(escaped)}" if escaped else f"{mine.total()} calls seen, {inferred} inferred"
        yield Case(FAMILY, one.writer.name, "strace beside the shim", "wrong" if escaped else "accepted", detail)


def _both(one: Prepared, scratch: Path) -> tuple[Counter[str], Counter[str]]:
    """How many calls of each kind: as the shim has them, and as strace has."""
    log, trace = scratch / "log", scratch / "trace"
    fresh(one.before, one.place)
    pid = os.fork()
    if not pid:
        try:
            os.kill(os.getpid(), signal.SIGSTOP)
            shim.arm(one.place, log=log)
            one.writer.write(one.place)
            shim.disarm()
        finally:
            os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    command = ["strace", "-f", "-y", "-o", str(trace), "-e", f"trace={','.join(_KINDS)}", "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    tracer.stderr.readline()  # that it is attached: from here on the writer stands still until the tracer lets it go
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    tracer.communicate()
    mine = Counter(call.kind for call in shim.operations(log))
    return mine, Counter(_seen(trace, str(one.place), str(log)))


def _seen(trace: Path, place: str, log: str) -> Iterator[str]:
    for line in trace.read_text(errors="backslashreplace").splitlines():
        found = _CALL.match(line)
        if not found or int(found[3]) < 0 or place not in line:
            continue
        name, arguments = found[1], found[2]
        if name == "openat" and not re.search("O_CREAT|O_TRUNC", arguments):
            continue
        if _KINDS[name] in "wts":
            handle = _HANDLE.search(arguments)
            if not handle or not handle[1].startswith(place) or handle[1] == log:
                continue
        yield _KINDS[name]
