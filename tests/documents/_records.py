"""What is kept of the blocks of a page, and whether it belongs to the page as it is now."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.documents._blocks import REASONS, Document
from tests.rooms import ROOT

OUTPUTS = ROOT / "docs" / "outputs"
COMMAND = "python -m tests.documents.run"


def record_path(document: Document, below: Path = OUTPUTS) -> Path:
    """File in which the outcomes of a page's blocks are kept: at the page's own path."""
    return below / Path(document.name.removeprefix("docs/")).with_suffix(".json")


def write(path: Path, value: object) -> None:
    """Write JSON that is readable in a difference."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    """Outcomes of the blocks of a page; none where nothing is kept."""
    return json.loads(path.read_text(encoding="utf-8"))["blocks"] if path.is_file() else []


def faults(document: Document, outcomes: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the outcomes that are kept of a page: a line each, with the command that renews them."""
    renew = f"run: {COMMAND} {document.name}"
    blocks = document.blocks
    if not outcomes:
        return [f"{document.name}: its blocks have not been run; {renew}"]
    found = []
    for block, outcome in zip(blocks, outcomes, strict=False):
        if outcome["digest"] != block.digest or outcome.get("not run") != block.not_run:
            return [*found, f"{block.place}: the block, or one before it, is not the one that was run; {renew}"]
        if block.not_run is not None:
            if block.not_run not in REASONS:
                found.append(f"{block.place}: not run for {block.not_run!r}, which is none of: {', '.join(REASONS)}")
        elif outcome["exit"]:
            last = " | ".join(outcome["output"][-3:])
            found.append(f"{block.place}: ended with exit status {outcome['exit']} ({last}); mend it, then {renew}")
    if len(outcomes) != len(blocks):
        found.append(f"{document.name}: {len(blocks)} blocks, and {len(outcomes)} were run; {renew}")
    return found


def not_run(pages: Iterable[Document]) -> dict[str, list[str]]:
    """Places of the blocks that are not run, by reason."""
    found = defaultdict(list)
    for document in pages:
        for block in document.blocks:
            if block.not_run is not None:
                found[block.not_run].append(block.place)
    return dict(sorted(found.items()))
