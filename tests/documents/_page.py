"""A page's blocks, run in order in a folder that has the places of the documents."""

from __future__ import annotations

import doctest
import io
import json
import os
import re
import shutil
import sys
import sysconfig
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.documents._blocks import COMMANDS, Block, Document
from tests.documents._commands import Shell, lines_of, programs
from tests.rooms import ROOT

LINES, COLUMNS = 40, 120
"""How much of an output is kept."""

SHORTENED = "a training ends after its first epoch"

_NEUTRAL = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b\d[\d,.]*( ?)(ms|s|seconds?|min|minutes?|hours?|h)\b"), r"N\1\2"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?"), "DATE"),
    (re.compile(r"\b(127\.0\.0\.1|localhost|0\.0\.0\.0):\d+"), r"\1:PORT"),
    (re.compile(r"(token=)[\w-]+"), r"\1TOKEN"),
)


def run(document: Document, slot: Path) -> list[dict[str, Any]]:
    """Outcomes of a page's blocks, in order; the folder ``work`` of the slot is as it was made."""
    said = _Said()
    sys.stdout = sys.stderr = said
    os.chdir(slot / "work")
    sys.path.insert(0, "")
    _shorten()
    runner = _Runner(Shell(said.write, programs(str(slot / "bin"))))
    outcomes = []
    for block in document.blocks:
        outcome: dict[str, Any] = {"digest": block.digest, "kind": block.language or "commands"}
        if block.not_run is not None:
            outcome["not run"] = block.not_run
        else:
            os.write(1, f"{block.place}\n".encode())  # for who wonders what takes so long
            said.seek(0)
            said.truncate()
            exit_code, shortened = runner.run(block)
            outcome |= {"exit": exit_code, "output": kept(said.getvalue(), slot)}
            if shortened:
                outcome["shortened"] = shortened
        outcomes.append(outcome)
    runner.shell.close()
    return outcomes


class _Said(io.TextIOWrapper):
    """What is printed, as text or as bytes."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)

    def getvalue(self) -> str:
        """All of it so far."""
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("utf-8", "replace")


def kept(text: str, slot: Path) -> list[str]:
    """The lines of an output that are kept: the first ones, without what differs from run to run."""
    text = (
        text.replace(f"{slot}/work/", "")
        .replace(f"{slot}/work", ".")
        .replace(str(slot), "SLOT")
        .replace(str(ROOT), "ROOT")
        .replace(f"{Path(sys.executable).parent}/", "")
        .replace(sysconfig.get_path("purelib"), "PACKAGES")
    )
    for pattern, neutral in _NEUTRAL:
        text = pattern.sub(neutral, text)
    lines = [line.rpartition("\r")[2].rstrip() for line in text.splitlines()]
    lines = [line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in lines if line]
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], f"… and {len(lines) - LINES + 1} further lines"]


def _shorten() -> None:
    """Let every training end as if one epoch was enough."""
    from rungwise.training.config import TrainConfig

    TrainConfig.is_over = lambda self, epoch, best_epoch: epoch >= 1  # type: ignore[method-assign]


class _Runner:
    """Runs blocks one after the other."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.names: dict[str, Any] = {"__name__": "program"}

    def run(self, block: Block) -> tuple[int, str]:
        """Run or read a block; gives its exit status, and how it was shortened."""
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        how: dict[str, Callable[[Block], None]] = {
            "python": self._python,
            "yaml": lambda one: read_settings(one.text, one.place),
            "json": lambda one: read_json(one.text),
            "toml": lambda one: _nothing(tomllib.loads(one.text)),
        }
        if block.language in COMMANDS:
            return self._commands(block)
        try:
            how[block.language](block)
        except SystemExit as end:
            return int(bool(end.code)), ""
        except BaseException as error:
            print(_where(error, block))
            return 1, ""
        return 0, ""

    def _commands(self, block: Block) -> tuple[int, str]:
        worst, shortened = 0, []
        lines = lines_of(block.text)
        for line in lines:
            if len(lines) > 1:
                print(f"$ {line.text}")
            status, short = self.shell.run(line)
            found = status == 1 and line.text.startswith("rungwise doctor ")  # a fault, of a run of two epochs
            worst = worst or (0 if found else status)
            shortened += [short] if short else []
            if any(word in line.text for word in ("rungwise train ", "rungwise study ")):
                shortened.append(SHORTENED)
        return worst, "; ".join(dict.fromkeys(shortened))

    def _python(self, block: Block) -> None:
        text = self.shell.moved(block.text)
        if re.search(r"^>>> ", text, re.MULTILINE):
            examples = doctest.DocTestParser().get_doctest(text, self.names, block.place, block.page, block.line)
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            failed = doctest.DocTestRunner(optionflags=flags).run(examples, out=sys.stdout.write, clear_globs=False)
            self.names.update(examples.globs)
            if failed.failed:
                raise AssertionError(f"{failed.failed} of {failed.attempted} examples print something else")
            return
        code = compile("\n" * block.line + text, block.page, "exec")
        if block.file:  # a module: it is run where a later block names it
            return
        for name in code.co_names:
            if name in SUPPLIED and name not in self.names:
                self.names[name] = SUPPLIED[name]()
        exec(code, self.names)


def _where(error: BaseException, block: Block) -> str:
    """The error in a line, with the line of the page at which it came up."""
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == block.page]
    said = traceback.format_exception_only(error)[-1].strip()
    return f"{block.page}:{lines[-1]}: {said}" if lines else said


def _nothing(_: object) -> None:
    """Reading it was all."""


def read_json(text: str) -> None:
    """Read JSON, or lines of it."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.splitlines():
            json.loads(line)


def read_settings(text: str, place: str) -> None:
    """Read YAML as what it is: the configuration of a training or a fit, a study, or of another program.

    Raises:
        UserError: If a setting does not exist or does not fit.
    """
    from rungwise.core import from_plain
    from rungwise.runs.study import study_of
    from rungwise.training.config._fit import config_type

    settings = yaml.safe_load(text)
    if {"services", "scrape_configs", "repos", "jobs", "groups"} & settings.keys():
        return  # of containers, of what watches them, or of checks before a commit
    if {"runs", "arms", "base", "search", "results"} & settings.keys():
        study_of(settings)
    else:
        from_plain(config_type(settings), settings, place)


def _embeddings(name: str) -> Callable[[], Any]:
    return lambda: np.load(f"{name}.npy")


SUPPLIED: dict[str, Callable[[], Any]] = {
    "images": _embeddings("images"),
    "captions": _embeddings("captions"),
    "texts": _embeddings("captions"),
    "owners": _embeddings("owners"),
}
"""Names that a block of Python may take for given, with what makes them."""


def fresh(slot: Path) -> None:
    """Put the folder and the cache of a slot back as they were made."""
    for name in ("work", "cache"):
        shutil.rmtree(slot / name, ignore_errors=True)
        shutil.copytree(slot / "kept" / name, slot / name, symlinks=True)
