"""What goes out: every command and each server under strace, which no call of any library escapes, in any language.

A case is wrong where a process asks for a name or an address beyond this machine, or writes to a place that the table
of docs/operate/keeping.md does not name. The home is a new one, and the environment says nothing of being tested: some
libraries are silent where they see a build machine.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from urllib.request import urlopen

from tests.hostile import world as good
from tests.hostile.choice import Choice
from tests.hostile.commands import _READY, Command, commands
from tests.hostile.counting import Case
from tests.hostile.files import _remove
from tests.hostile.forked import end_with_the_parent

FAMILY = "sent"

ROOT = Path(__file__).parents[2]
KEEPING = ROOT / "docs/operate/keeping.md"
_PLACE = re.compile(r"^\| `([^`]+)`", re.MULTILINE)
_CALLS = "connect,sendto,sendmsg,sendmmsg,openat,creat,mkdir,mkdirat,rename,renameat,renameat2"
_OPENED = re.compile(r'(?:openat|creat)\(.*?"(?:[^"\\]|\\.)*", ([A-Z_|]+).*\) = \d+<(.*?)(?: \(deleted\))?>$')
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")')
_PEER = re.compile(r"<(?:UDP|UDPv6):\[.*->(.*):(\d+)\]>")
_WRITES = re.compile("O_CREAT|O_WRONLY|O_RDWR")
_DNS = 53
_PROBE = "8.8.8.8:53"
"""Ray connects a datagram socket there to learn which address of this machine would be used; nothing is sent by it."""
_FOUND_FAULTS = 1
"""Status of doctor where the data have faults."""


def missing() -> str | None:
    """Why nothing can be traced here; None where it can."""
    return None if shutil.which("strace") else "what is sent is seen by strace alone, which is not installed"


def lines() -> list[Command]:
    """Every command with good files, those that only read, those that write, and those that load other libraries."""
    picture = f"{{}}/csv/{good.NAMES[0]}"
    index, run = ("index", "run"), ("run", "csv")
    more = [
        ("presets", ("presets",), ()),
        ("plan", ("plan", "1M"), ()),
        ("token", ("token", "ada", "read"), ()),
        ("doctor", ("doctor", "{}/csv"), ("csv",)),
        ("doctor, a run", ("doctor", "{}/run"), run),
        ("demo", ("demo", "--check", "--small"), ()),
        ("calibrate", ("calibrate", "{}/saved_words", "{}/precomputed", "--split", "all", "--out", "{}/new.json"),
         ("saved_words", "precomputed")),
        ("check", ("check", "{}/index/index"), index),
        ("search, exported", ("search", "{}/index/index", "--image", picture, "--model", "{}/exported"),
         (*index, "csv", "exported")),
        ("serve, exported", ("serve", "{}/index/index", "--model", "{}/exported", "--port", "0", "--no-browser"),
         (*index, "exported")),
        ("export", ("export", "{}/run/model", "--out", "{}/new"), run),
        *((f"index, {prefix}:{folder}", ("index", "{}/csv", "--model", f"{prefix}:{{}}/{folder}", "--out", "{}/new"),
           ("csv", folder)) for prefix, folder in (("hf", "clip"), ("open_clip", "open_clip"), ("st", "sentence"))),
        ("index --ray", ("index", "{}/csv", "--model", "{}/run/model", "--out", "{}/new", "--ray"), run),
        *((f"train, {service}", ("train", "{}/run/config.yaml", "{}/csv", "--out", "{}/new", "--cache", "{}/cache",
                                 "--logs", service), run) for service in ("tensorboard", "wandb", "mlflow")),
        ("relevance bi-encoder", ("relevance", "bi-encoder", "{}/csv", "--model", "{}/sentences", "--out", "{}/new"),
         ("csv", "sentences")),
    ]  # fmt: skip
    asked = [one for one in commands() if one.name != "push"]  # which is an order to send
    whole = ("verify", "{}/index/index", "--model", "{}/run/model")
    asked = [Command(one.name, whole, index, ()) if one.arguments == whole[:2] else one for one in asked]
    return [*asked, *(Command(name, arguments, folders, ()) for name, arguments, folders in more)]


def places() -> list[str]:
    """What docs/operate/keeping.md names, ``~`` for the home."""
    return _PLACE.findall(KEEPING.read_text())


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """One case for each command line."""
    for command in lines():
        name = " ".join(command.arguments)
        if choice.takes(name):
            found = _traced(command, world, scratch / "case")
            yield Case(FAMILY, command.name, name, "wrong" if found.faults else "accepted", found.text())


@dataclass(frozen=True)
class _Seen:
    """What a command did.

    Attributes:
        code: That it ended with.
        last: The last line that it printed.
        faults: What went out, and what was written where nothing is said of it.
    """

    code: int
    last: str
    faults: Sequence[str]

    def text(self) -> str:
        if self.faults:
            return "; ".join(self.faults[:5]) + (f"; and {len(self.faults) - 5} more" if len(self.faults) > 5 else "")
        return f"exit {self.code}: {self.last}"


def _traced(command: Command, world: Path, case: Path) -> _Seen:
    place, home, trace = (case / name for name in ("place", "home", "trace"))
    temporary = Path(tempfile.mkdtemp())  # a short name: names of sockets, which Ray makes there, have a limit
    for folder in (place, home):
        folder.mkdir(parents=True)
    for folder in command.folders:
        shutil.copytree(world / folder, place / folder, symlinks=True)
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS") if name in os.environ}
    environment = kept | {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(str(path) for path in (ROOT / "src", ROOT)),
    }
    arguments = [one.replace("{}", str(place)) for one in command.arguments]
    try:
        tracer = ["strace", "-f", "-qq", "--seccomp-bpf", "-yy", "-s", "512", "-o", str(trace), "-e", f"trace={_CALLS}"]
        code, said = _run([*tracer, sys.executable, "-m", "rungwise", *arguments], place, environment)
        allowed = [str(place), str(temporary), "/dev", "/proc"]
        allowed += [one.replace("~", str(home), 1) for one in places()]
        faults = list(dict.fromkeys(_faults(trace, allowed, place)))
        if code not in (0, _FOUND_FAULTS if command.arguments[0] == "doctor" else 0):
            faults.append(f"ended with status {code}: {said}")
        return _Seen(code, (said.strip().splitlines() or [""])[-1], faults)
    finally:
        _remove(case)
        _remove(temporary)


def _run(command: Sequence[str], place: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and what was printed; a server is asked for its page and told to end once it is ready."""
    said = ""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=place,
        env=environment, preexec_fn=end_with_the_parent, errors="backslashreplace",
    ) as run:  # fmt: skip
        assert run.stdout is not None
        for line in run.stdout:
            said += line
            if address := re.search(r"http://\S+", line) if _READY in line else None:
                for path in ("", "search?q=a%20red%20picture", "health"):
                    _asked(address[0] + path)
                for child in _children(run.pid):  # strace itself ignores the signal while it has something to trace
                    os.kill(child, signal.SIGINT)
    return run.returncode, said


def _asked(address: str) -> None:
    try:
        with urlopen(address) as answer:
            answer.read()
    except OSError:  # the page for grading has no search
        pass


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _faults(trace: Path, allowed: Sequence[str], place: Path) -> Iterator[str]:
    for line in trace.read_text(errors="backslashreplace").splitlines():
        call = line.partition(" ")[2].lstrip()
        if call.startswith(("connect(", "send")):
            if (address := _outside(call)) is not None:
                yield f"asks {address}"
        elif (path := _written(call, place)) and not any(_is_named(path, one) for one in allowed):
            yield f"writes {path}"


def _outside(call: str) -> str | None:
    """Where something goes beyond this machine. A name of the network is looked up at port 53, wherever that is."""
    kind, found, peer = call.partition("(")[0], _ADDRESS.search(call), _PEER.search(call)
    probes = kind == "connect" and "<UDP" in call
    if found:
        port, host = int(found[1]), found[2] or found[3]
    elif peer and kind != "connect":
        port, host = int(peer[2]), peer[1].strip("[]")
    else:
        return None
    if probes and (port != _DNS or f"{host}:{port}" == _PROBE):
        return None  # a lookup of names connects as well, and where no network is, that is all one sees of it
    host = host.removeprefix("::ffff:")
    local = ip_address(host).is_loopback or host in (*_own_addresses(), "0.0.0.0", "::")
    return f"{host}:{port}" if not local or port == _DNS else None


@cache
def _own_addresses() -> frozenset[str]:
    """Of the interfaces of this machine, which processes of Ray find each other by."""
    routes = Path("/proc/net/fib_trie").read_text()
    return frozenset(re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", routes))


def _written(call: str, place: Path) -> str:
    """The path that a call made or opened to write; empty where it did not."""
    if call.startswith(("openat", "creat")):
        found = _OPENED.match(call)
        return found[2] if found and (call.startswith("creat") or _WRITES.search(found[1])) else ""
    if " = 0" not in call:
        return ""
    names = _NAMED.findall(call)
    return os.path.normpath(place / names[-1]) if names else ""


def _is_named(path: str, place: str) -> bool:
    """Whether a path lies in a place, or the place in it: a folder is made with those above it."""
    if not place.startswith("/"):  # a folder of that name, wherever it is
        return place in path.split("/")
    return f"{path}/".startswith(f"{place}/") or f"{place}/".startswith(f"{path}/")
