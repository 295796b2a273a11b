"""The live example: its answers and pictures are kept in ``docs/live/demo``, and its page is that of the program."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from rungwise.demo import write_exported_page

COMMAND = "rungwise demo --export docs/live/demo"
"""What made the answers and pictures, which ``html_extra_path`` copies."""


def _write_page(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html" and (folder := Path(app.outdir, "demo")).is_dir():
        write_exported_page(folder, COMMAND)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page when the site is built."""
    app.connect("build-finished", _write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
