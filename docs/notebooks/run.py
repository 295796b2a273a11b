"""Runs the notebooks of this folder and stores what their cells show.

python docs/notebooks/run.py

A notebook is run from its first cell to its last by a new kernel, in an empty folder. The file then says which code was
run, so that a test finds code that was changed afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

HERE = Path(__file__).parent
VERSION = 4
"""Of the format of notebooks."""


def notebooks() -> list[Path]:
    """Files of this folder that are run."""
    return sorted(HERE.glob("*.ipynb"))


def digest_of(notebook: NotebookNode) -> str:
    """SHA-256 of the code of all cells."""
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """A copy of a notebook with the outputs of a new kernel.

    Args:
        notebook: A notebook; outputs that it has are left out.
        folder: Where the kernel works and writes, its temporary files among them.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell raises.
    """
    from nbclient import NotebookClient

    copy = nbformat.from_dict(json.loads(json.dumps(notebook)))
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        copy,
        timeout=None,
        startup_timeout=600,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "TMPDIR": str(folder), "IPYTHONDIR": str(folder / "ipython")})
    return copy


def stored(notebook: NotebookNode) -> str:
    """Text of the file of an executed notebook: the same for the same outputs."""
    copy = nbformat.from_dict(json.loads(json.dumps(notebook)))
    copy.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
        rungwise={"code": digest_of(copy)},
    )
    for number, cell in enumerate(copy.cells, 1):
        cell.id, cell.metadata = f"cell-{number}", NotebookNode()
    nbformat.validate(copy)
    return f"{nbformat.writes(copy, version=VERSION).rstrip()}\n"


def main() -> None:
    """Run each notebook and write it back."""
    for path in notebooks():
        with tempfile.TemporaryDirectory() as folder:
            text = stored(executed(nbformat.read(path, as_version=VERSION), Path(folder)))
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
