"""What commands print, into outputs that are hard to print to, and under Ctrl-C at any moment.

Each command of the program is called as its own process would be: its output in an encoding without the letters of the
captions, closed, full or a pipe without a reader, and interrupted at a share of the moments at which it opens a file or
imports a module. Most are forked children of the warmed-up parent; what an interpreter does on its way in and out is
played with real processes.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from rungwise.cli import COMMANDS
from rungwise.jobs import _terminal as terminal
from tests.hostile import world as good
from tests.hostile.choice import Choice
from tests.hostile.commands import _READY, _SERVERS
from tests.hostile.counting import Case, Verdict
from tests.hostile.files import _last, _remove
from tests.hostile.forked import Outcome, end_with_the_parent, outcomes

FAMILY = "words"

CAPTIONS = (
    "一隻狗在雪地裡奔跑 😀",
    "ein Bär über der Mauer – schön",
    "كلب في الثلج",
    "a red picture",
    "собака, café ×2",
)
NAMES = ("犬 😀.png", "Käse.png", "\udcff odd.png", "plain.png", "снег.png")
"""The third is no UTF-8, as file systems may hold it."""

LINES: Mapping[str, tuple[str, ...]] = {
    "demo": ("demo", "--folder", "{}/odd/plain.png", "--no-browser", "--port", "0"),
    "inspect": ("inspect", "{}/odd"),
    "presets": ("presets", "--json"),
    "train": ("train", "{}/run/config.yaml", "{}/odd", "--out", "{}/new", "--cache", "{}/cache"),
    "evaluate": ("evaluate", "{}/run/model", "{}/odd", "--split", "all", "--cache", "{}/cache"),
    "table": ("table", "vsepp:1", "--runs", "{}/run"),
    "plot": ("plot", "{}/run", "--out", "{}/new.svg"),
    "study": ("study", "{}/study/study.yaml", "--data", "{}/odd", "--out", "{}/new", "--cache", "{}/cache"),
    "compare": ("compare", "{}/evaluation/first.json", "{}/evaluation/second.json", "--draws", "20"),
    "calibrate": ("calibrate", "{}/run/model", "{}/odd", "--split", "all", "--out", "{}/new.json"),
    "relevance": ("relevance", "cider-d", "{}/odd", "--split", "all", "--out", "{}/new"),
    "grade": ("grade", "{}/evaluation/grades.csv", "--data", "{}/csv", "--port", "0", "--no-browser"),
    "plan": ("plan", "1M"),
    "index": ("index", "{}/odd", "--model", "{}/run/model", "--out", "{}/new"),
    "search": ("search", "{}/found", "一隻狗 😀 café", "--model", "{}/run/model"),
    "check": ("check", "{}/found", "--number", "4"),
    "serve": ("serve", "{}/found", "--model", "{}/run/model", "--port", "0", "--no-browser"),
    "serve-model": ("serve-model", "{}/run/model", "--port", "0", "--name", "犬 😀"),
    "mcp": ("mcp", "{}/found", "--model", "{}/run/model", "--http", "--port", "0"),
    "token": ("token", "犬 😀", "read"),
    "export": ("export", "{}/run/model", "--out", "{}/new"),
    "import": ("import", "{}/vsepp/model_best.pth.tar", "{}/vsepp/vocab.pkl", "--out", "{}/new"),
    "push": ("push", "{}/saved_words", "someone/犬"),
    "doctor": ("doctor", "{}/odd"),
    "verify": ("verify", "{}/found"),
}  # fmt: skip
"""One that does its work, or is refused for something of these names, for each command."""

FURTHER: Mapping[str, tuple[str, ...]] = {
    "search --json": (*LINES["search"], "--json"),
    "search, no such column": ("search", "{}/found", "--where", "犬 > 3"),
    "inspect, no such folder": ("inspect", "{}/犬 \udcff 😀"),
    "check --json": (*LINES["check"], "--json"),
    "doctor --json": (*LINES["doctor"], "--json"),
    "index, a broken graph": ("index", "{}/odd", "--model", "{}/broken", "--out", "{}/new"),
    "index, a panicking vocabulary": ("index", "{}/odd", "--model", "{}/panicking", "--out", "{}/new"),
    "evaluate, huge numbers": ("evaluate", "--captions-per-image", "1", "--image-embeddings", "{}/huge.npy",
                               "--text-embeddings", "{}/huge.npy"),
    **{f"{name} --help": (name, "--help") for name in COMMANDS},
}  # fmt: skip

_LIBRARY = re.compile(
    r"Warning: |\[[EWF]:|\[[WE]\d{3} |panicked at|^WARNING|site-packages|Exception ignored", re.MULTILINE
)
"""What lines of libraries have in them."""
_ENCODINGS = ("ascii", "cp1252", "latin-1", "cp932", "utf-16", "utf-8")
_MOMENTS = 8
"""At which a command is interrupted, among all at which it opens a file or imports a module."""
_IMPORTS = (*range(1, 60, 2), *range(60, 4000, 97))
"""Of a process of its own, those at which it is interrupted, counted from the first line of rungwise."""
_MEMORY = 4 << 30


@dataclass(frozen=True)
class _Output:
    """The two outputs of a process.

    Attributes:
        name: For the table.
        encoding: Of both.
        kinds: What each is: a file, closed, full, or a pipe that nobody reads.
    """

    name: str
    encoding: str = "utf-8"
    kinds: tuple[str, str] = ("file", "file")


_WELL = _Output("as usual")
_OUTPUTS = (
    *(_Output(f"in {one}", one) for one in _ENCODINGS),
    *(_Output(f"output {kind}", kinds=(kind, "file")) for kind in ("closed", "full", "unread")),
    *(_Output(f"errors {kind}", kinds=("file", kind)) for kind in ("closed", "full", "unread")),
    _Output("both unread", kinds=("unread", "unread")),
)


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Every line with every output, and interrupted."""
    place = scratch / "words"
    made = next(outcomes([partial(_prepare, world, place)], memory=None))
    assert made.ending == "returned", f"the collection of odd names cannot be made: {made}"
    yield from (Case(FAMILY, name, "is in no line here", "wrong") for name in COMMANDS.keys() - LINES.keys())
    for name, line in {**LINES, **FURTHER}.items():
        outputs = [one for one in _OUTPUTS if choice.takes(f"{name}: {one.name}")]
        moments = [at for at in range(_MOMENTS) if name in LINES and choice.takes(f"{name}: moment {at}")]
        if not outputs and not moments:
            continue
        usual = next(outcomes([partial(_played, line, place, _WELL)], memory=_MEMORY))
        ended = outcomes([partial(_played, line, place, one) for one in outputs], memory=_MEMORY)
        for output, outcome in zip(outputs, ended, strict=True):
            yield Case(FAMILY, name, output.name, *_judged(line, output, outcome, usual))
        if usual.ending == "returned":
            for at in moments:  # each in a child that has imported as little as the first
                job = partial(_played, line, place, _WELL, 1 + usual.value[-1] * at // _MOMENTS)
                attack = f"interrupted, moment {at} of {_MOMENTS}"
                yield Case(FAMILY, name, attack, *_judged_interrupt(next(outcomes([job], memory=_MEMORY)), usual))
    yield from _real(place, choice)
    _remove(place)


def _prepare(world: Path, place: Path) -> None:
    """A collection of odd names and captions, its index, and models that break."""
    from rungwise.cli import main

    place.mkdir()
    for folder in ("run", "evaluation", "csv", "vsepp", "saved_words"):
        shutil.copytree(world / folder, place / folder)
    good.draw_pictures(place / "odd")
    lines = ["image,caption,split"]
    for file, name, caption, split in zip(good.NAMES, NAMES, CAPTIONS, ("train", "train", "val", "val", "test"),
                                          strict=False):  # fmt: skip
        (place / "odd" / file).rename(place / "odd" / os.fsdecode(os.fsencode(name)))
        if name.isprintable():
            lines.append(f'{name},"{caption}",{split}')
    (place / "odd/captions.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["index", f"{place}/odd", "--model", f"{place}/run/model", "--out", f"{place}/found"]) == 0
    _break_graph(world / "exported", place / "broken")
    _break_vocabulary(world / "run/model", place / "panicking")
    import numpy as np

    np.save(place / "huge.npy", np.array([[3e38, 3e38], [1e-45, -3e38], [3e38, 0.0]], np.float32))


def _break_graph(model: Path, folder: Path) -> None:
    """Operators that are known, and a graph that no engine can open."""
    import onnx

    from rungwise.core.disk import write_seal

    shutil.copytree(model, folder)
    graph = onnx.load(folder / "image.onnx")
    graph.graph.node[0].input[0] = "nothing"
    onnx.save(graph, folder / "image.onnx")
    write_seal(folder)


def _break_vocabulary(model: Path, folder: Path) -> None:
    """A frame of a word that there is not, which makes the library panic."""
    from rungwise.core.disk import write_seal

    shutil.copytree(model, folder)
    path = folder / "tokenizer.json"
    said = json.loads(path.read_text())
    frame = [{"SpecialToken": {"id": "[X]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    said["post_processor"] = {"type": "TemplateProcessing", "single": frame, "pair": [], "special_tokens": {}}
    path.write_text(json.dumps(said))
    write_seal(folder)


def _played(line: Sequence[str], place: Path, output: _Output, moment: int | None = None) -> Any:
    """Status, both outputs in bytes of Latin-1, and how many moments there were."""
    new = place.with_name("played")
    _remove(new)  # of a case that ended in the middle
    shutil.copytree(place, new, symlinks=True)
    os.chdir(new)
    try:
        return _called([one.replace("{}", str(new)) for one in line], new, output, moment)
    finally:
        os.chdir("/")
        _remove(new)


@cache
def _moments() -> list[int]:
    """How many there were, and at which an interrupt comes; the hook that counts stays."""
    state = [0, -1]

    def count(event: str, _: object) -> None:
        if event in ("open", "import"):
            state[0] += 1
            if state[0] == state[1]:
                signal.raise_signal(signal.SIGINT)

    sys.addaudithook(count)
    return state


def _called(arguments: Sequence[str], place: Path, output: _Output, moment: int | None) -> Any:
    """Run a command as the interpreter would, with these outputs."""
    from rungwise.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    streams, kept = (sys.stdout, sys.stderr), [os.dup(stream) for stream in (1, 2)]
    files = [place / name for name in (".stdout", ".stderr")]
    code: Any = 0
    left = ""
    state = _moments()
    try:
        with ExitStack() as patched:
            for name in _SERVERS:
                patched.enter_context(mock.patch(name, _say))
            patched.enter_context(mock.patch.object(sys, "argv", ["rungwise", *arguments]))
            # Threads of the lines before would be missing in the copy of this process that watching makes.
            patched.enter_context(mock.patch("rungwise.cli._watched", return_value=None))
            sys.stdout, sys.stderr = (_opened(at, file, output) for at, file in zip((1, 2), files, strict=True))
            state[:] = [0, -1 if moment is None else moment]
            try:
                code = main()
            except SystemExit as stop:
                code = stop.code
            many, state[1] = state[0], -1
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError as error:
                    left = f"\nException ignored: {error!r}"  # which the interpreter says at its end
    finally:
        sys.stdout, sys.stderr = streams
        for at, old in zip((1, 2), kept, strict=True):
            os.dup2(old, at)
            os.close(old)
    out, error = (file.read_bytes().decode("latin-1") if file.exists() else "" for file in files)
    return [code, out, error + left, many]


def _say(text: str) -> None:
    """End a server once it says that it is ready."""
    try:
        terminal.say(text)
    finally:
        if _READY in text:
            signal.raise_signal(signal.SIGINT)


def _opened(at: int, file: Path, output: _Output) -> Any:
    """One of the outputs as the interpreter opens it."""
    kind = output.kinds[at - 1]
    if kind == "closed":
        os.close(at)
        return None
    reader = None
    if kind == "unread":
        reader, handle = os.pipe()
    else:
        handle = os.open("/dev/full" if kind == "full" else file, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(handle, at)
    os.close(handle)
    if reader is not None:
        os.close(reader)
    raw = io.BufferedWriter(io.FileIO(at, "w", closefd=False))
    errors = "strict" if at == 1 else "backslashreplace"
    return io.TextIOWrapper(raw, output.encoding, errors, line_buffering=at == 2)


def _judged(line: Sequence[str], output: _Output, outcome: Outcome, usual: Outcome) -> tuple[Verdict, str]:
    if outcome.ending != "returned" or usual.ending != "returned":
        bad = outcome if outcome.ending != "returned" else usual
        return "traceback", f"{bad.ending} {bad.value} " + "\n    ".join(_last(bad.text))
    code, out, error, _ = outcome.value
    error = error.encode("latin-1").decode(output.encoding, "replace")
    if fault := _fault(code, error):
        return "traceback", fault
    before = usual.value[0]
    shown, said = "file" in output.kinds[0], f"status {code}, usually {before}"
    # A server says its one line in a thread, whose failure the end of the command may or may not see.
    if output.kinds[0] == "full" and line[0] in ("serve", "serve-model", "mcp", "grade") and code in (2, before):
        return "accepted", said
    if output.kinds[0] == "full" and usual.value[1] and before != 2:
        return ("clean", error.strip()) if code == 2 and "disk is full" in error else ("wrong", said + error[-300:])
    if code != before and not (output.kinds[0] == "unread" and code == 0):  # it had seen enough of what was found
        return "wrong", f"{said}: {error[-300:]}"
    if shown:
        try:
            text = out.encode("latin-1").decode(output.encoding)
            if "--json" in line and code == 0:
                json.loads(text)
        except ValueError as wrong:
            return "wrong", f"{wrong}: {out[:200]!r}"
    return ("accepted", said) if code == 0 else ("clean", error.strip())


def _judged_interrupt(outcome: Outcome, usual: Outcome) -> tuple[Verdict, str]:
    if outcome.ending == "died" and outcome.value == 130 and not outcome.text.strip():
        return "clean", "ended while it was being loaded"
    if outcome.ending != "returned":
        return "traceback", f"{outcome.ending} {outcome.value} " + "\n    ".join(_last(outcome.text))
    code, _, error, _ = outcome.value
    if fault := _fault(code, error):
        return "traceback", fault
    if code not in (130, usual.value[0]):
        return "wrong", f"status {code}: {error[-300:]}"
    return ("clean", error.strip()) if code == 130 else ("accepted", "it was done by then")


def _fault(code: Any, error: str) -> str:
    """What must not stand in the standard error, or "" where all is well."""
    lines = error.strip().splitlines()
    if code == 70 or "Traceback" in error or _LIBRARY.search(error):
        return error.strip()[-600:]
    if code not in (0, 130) and len(lines) > 1:
        return f"{len(lines)} lines: {error[-600:]}"
    return ""


_SITE = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored where the tests run in the background
_left = [int(os.environ["INTERRUPT_AT"]), False]


def _count(event, arguments):
    if event == "import":
        if _left[1]:
            _left[0] -= 1
            if _left[0] == 0:
                signal.raise_signal(signal.SIGINT)
        _left[1] = _left[1] or arguments[0] == "rungwise.cli"


sys.addaudithook(_count)
"""


def _real(place: Path, choice: Choice) -> Iterator[Case]:
    """As processes: locales without letters, outputs that a shell closes, and Ctrl-C while the program is loaded."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for name in COMMANDS:
        if not {"{}/odd", "{}/found"} & {*LINES[name]} or name in ("serve", "mcp", "demo", "train"):
            continue
        if choice.takes(f"{name}: a process in the locale C"):
            taken = (0, 1) if name == "doctor" else (0, 2, 3)  # 1 says that it has found something in the data
            yield _ended(name, "a process in the locale C", _process(LINES[name], place, plain), taken)
    for shell in ("1>&-", "2>&-", "1>&- 2>&-", "1>/dev/full", "2>/dev/full", "| head -c 1"):
        for line in ("--help", "presets", "plan 1M", "inspect --help", "nothing"):
            if choice.takes(f"rungwise {line} {shell}"):
                yield _ended(line, f"a process, {shell}", _process(line.split(), place, {}, shell))
    for name in ("--version", "search"):
        for at in _IMPORTS:
            if choice.takes(f"{name}: interrupted at import {at}"):
                (place / "sitecustomize.py").write_text(_SITE)
                path = f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
                environment = {"PYTHONPATH": path, "INTERRUPT_AT": str(at)}
                ended = _process(LINES.get(name, (name,)), place, environment)
                yield _ended(name, f"interrupted at import {at}", ended, (0, 130, -signal.SIGINT))


def _process(line: Sequence[str], place: Path, environment: Mapping[str, str], shell: str = "") -> tuple[int, str, str]:
    """Status, output and errors of a line as a shell runs it; new files go with it."""
    new = place.with_name("process")
    shutil.copytree(place, new, symlinks=True)
    words = [sys.executable, "-m", "rungwise", *(one.replace("{}", str(new)) for one in line)]
    command = ["bash", "-c", f'set -o pipefail; "$@" {shell}', "bash", *words] if shell else words
    run = subprocess.run(
        command,
        cwd=new,
        env={name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"} | dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        preexec_fn=end_with_the_parent,
    )
    _remove(new)
    return run.returncode, run.stdout.decode("latin-1"), run.stderr.decode("latin-1")


def _ended(name: str, attack: str, ended: tuple[int, str, str], taken: Sequence[int] = (0, 2, 3)) -> Case:
    code, _, error = ended
    fault = _fault(code, error) or ("" if code in taken else f"status {code}: {error[-300:]}")
    verdict: Verdict = "traceback" if fault else "accepted" if code == 0 else "clean"
    return Case(FAMILY, name, attack, verdict, fault or error.strip()[-300:])
