"""Run the blocks of the documents and keep what they printed: ``python -m tests.documents.run [PAGE ...]``.

Without a page, all are run. A page is named by its path, such as ``README.md`` or ``docs/start/tutorial.md``. What a
block may rely on stands in :mod:`tests.documents._world`; what is shortened is said in its record.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tests.documents import _page, _world
from tests.documents._blocks import Document, documents
from tests.documents._records import COMMAND, OUTPUTS, not_run, read, record_path, write
from tests.rooms import ROOT

LOADED = ["tests.documents._page", "rungwise.training.config", "timm", "transformers.models.siglip.modeling_siglip"]
"""What is imported once for all pages; a library that has threads of its own is not among it."""


def main(words: list[str] | None = None) -> int:
    """Run pages; the exit status says whether all blocks ended well."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--jobs", type=int, default=2, help="how many pages run at once")
    parser.add_argument(
        "--into", type=Path, default=OUTPUTS, help="write the outcomes below this folder, not into docs/outputs"
    )
    parser.add_argument("--not-run", action="store_true", help="only list the blocks that are not run, by reason")
    parser.add_argument("--home", type=Path, help="make the folders here, leave them, and use those that are there")
    asked = parser.parse_args(words)
    known = {one.name: one for one in documents()}
    chosen = [known[Path(name).as_posix()] for name in asked.pages] if asked.pages else list(known.values())
    if asked.not_run:
        for reason, places in not_run(chosen).items():
            print(f"{len(places):4} {reason}: {', '.join(places)}")
        return 0
    home = asked.home or Path(tempfile.mkdtemp(prefix="documents-"))
    try:
        wrong = run_all(chosen, home, asked.jobs, asked.into)
    finally:
        if asked.home is None:
            shutil.rmtree(home, ignore_errors=True)
    print(f"{len(chosen)} pages, {wrong} blocks do not end well")
    return int(wrong > 0)


def run_all(chosen: list[Document], home: Path, jobs: int, into: Path) -> int:
    """Run pages, so many at once; gives the number of blocks that did not end well."""
    os.environ.update(_world.environment(home / "0"))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    if not (home / "hf").is_dir():
        _in_process(context, _world.publish, home)
    waiting: queue.SimpleQueue[Document] = queue.SimpleQueue()
    for one in chosen:
        waiting.put(one)
    wrong: list[str] = []

    def work(slot: Path) -> None:
        if not (slot / "kept").is_dir() and _in_process(context, _made, slot):
            wrong.append(f"the folder of the pages could not be made: see {slot / 'log'}")
            print(wrong[-1], flush=True)
            return
        while True:
            try:
                document = waiting.get_nowait()
            except queue.Empty:
                return
            _in_process(context, _run_page, document, slot, slot / "outcomes.json")
            record = _record(document, slot / "outcomes.json")
            write(record_path(document, into), record)
            bad = [
                f"{block.place}: exit {outcome['exit']}: {' | '.join(outcome['output'][-3:])}"
                for block, outcome in zip(document.blocks, record["blocks"], strict=True)
                if outcome.get("exit")
            ]
            wrong.extend(bad)
            print("\n".join([f"{document.name}: {len(record['blocks'])} blocks", *bad]), flush=True)

    slots = [home / str(number) for number in range(min(jobs, len(chosen)))]
    lanes = [threading.Thread(target=work, args=(slot,)) for slot in slots]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    return len(wrong)


def _record(document: Document, file: Path) -> dict[str, Any]:
    """The outcomes of a page; one that ended its process has none."""
    if not file.is_file():
        ended = {"exit": 70, "output": ["the page ended its process"]}
        return {"page": document.name, "blocks": [{"digest": one.digest, **ended} for one in document.blocks]}
    return {"page": document.name, "blocks": read(file)}


def _in_process(context: Any, function: Any, *given: Any) -> int:
    process = context.Process(target=function, args=given)
    process.start()
    process.join()
    return int(process.exitcode)


def _made(slot: Path) -> None:
    slot.mkdir(parents=True, exist_ok=True)
    _into_log(slot)
    os.environ.update(_world.environment(slot))
    _world.make(slot)
    folder = slot / "bin"
    folder.mkdir()
    program = folder / "rungwise"
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m tests.documents.command "$@"\n')
    program.chmod(0o755)
    for name in ("work", "cache"):
        shutil.move(slot / name, slot / "kept" / name)


def _run_page(document: Document, slot: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    _page.fresh(slot)
    _into_log(slot)
    os.environ.update(_world.environment(slot))
    write(target, {"blocks": _page.run(document, slot)})


def _into_log(slot: Path) -> None:
    """Write what libraries print past Python's own streams, and how far the page is, into a file of the slot."""
    log = os.open(slot / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)


if __name__ == "__main__":
    sys.exit(main())
