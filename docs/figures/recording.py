"""Makes the recording of README.md: one search in a terminal and on the page, and where its list ends.

python docs/figures/recording.py FOLDER, where FOLDER is what ``rungwise demo`` made. Needs Chromium.
"""

from __future__ import annotations

import html
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import rungwise
from rungwise.models import DualEncoder
from rungwise.serving import background

OUT = Path(__file__).parent.parent / "images" / "recording.gif"
SIZE = {"width": 960, "height": 600}
QUERY = "two squares"
NOTHING = "a bank statement"
_TYPED, _READ, _LOOKED_AT = 80, 3500, 2500
"""Milliseconds for which a typed letter, what is to be read, and what is to be looked at stand."""

_LOOK = "margin:0;background:#16201d;color:#e6efe9"

Frame = tuple[Image.Image, int]


def printed(index: Path, query: str) -> str:
    """What the command line prints for a search, as in a terminal of 80 columns."""
    command = [sys.executable, "-m", "rungwise", "search", str(index), query, "--k", "6"]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.rstrip()


def shot(page: Page, milliseconds: int) -> Frame:
    """What the page shows now."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB"), milliseconds


def terminal(page: Page, index: Path) -> Iterator[Frame]:
    """Two searches, typed and answered."""
    lines: list[str] = []
    for query in (QUERY, NOTHING):
        command = f'rungwise search {index.name} "{query}"'
        for end in range(0, len(command) + 1, 4):
            yield _drawn(page, [*lines, f"$ {command[:end]}█"], _TYPED)
        lines += [f"$ {command}", *printed(index, query).splitlines(), ""]
        yield _drawn(page, lines, _READ)


def _drawn(page: Page, lines: list[str], milliseconds: int) -> Frame:
    text = html.escape("\n".join(lines[-34:]))
    page.set_content(f"<body style='{_LOOK}'><pre style='margin:20px;font:14px/1.2 monospace'>{text}")
    return shot(page, milliseconds)


def searched(page: Page, address: str) -> Iterator[Frame]:
    """The same searches on the page."""
    page.goto(address)
    field = page.locator("input[type=search], #query").first
    for query in (QUERY, NOTHING):
        field.fill("")
        for end in range(0, len(query) + 1, 3):
            field.fill(query[:end])
            yield shot(page, _TYPED)
        field.fill(query)
        field.press("Enter")
        page.wait_for_load_state("networkidle")
        yield shot(page, _LOOKED_AT)
        if query == QUERY:
            page.get_by_text("Relevance ends here").scroll_into_view_if_needed()
            yield shot(page, _LOOKED_AT)
            page.evaluate("window.scrollTo(0, 0)")


def main(folder: Path) -> None:
    """Record, and write the picture."""
    index, model = folder / "degrees" / "index", rungwise.load(folder / "degrees" / "run")
    if not isinstance(model, DualEncoder):
        raise SystemExit(f"{folder}: its model has no vectors")
    with sync_playwright() as engine, background(rungwise.open_index(index), model) as address:
        browser = engine.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]  # a plain dictionary
        frames = [*terminal(page, index), *searched(page, address)]
        browser.close()
    pictures = [picture.quantize(64, dither=Image.Dither.NONE) for picture, _ in frames]
    pictures[0].save(
        OUT, save_all=True, append_images=pictures[1:], duration=[stands for _, stands in frames], loop=0, optimize=True
    )
    print(f"{OUT}: {len(frames)} frames, {OUT.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
