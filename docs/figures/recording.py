"""Makes the pictures of README.md: the search page, and a recording of two searches in a terminal and on the page.

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
from playwright.sync_api import Page, ViewportSize, sync_playwright

import rungwise
from rungwise.models import DualEncoder
from rungwise.serving import background

IMAGES = Path(__file__).parent.parent / "images"
SIZE: ViewportSize = {"width": 960, "height": 600}
QUERY = "a blue heart and a red star"
NOTHING = "a bank statement"
_SAID = {QUERY: "Relevance ends here", NOTHING: "Nothing relevant"}
"""What the page says when it has answered."""
_TYPED, _READ = 80, 3500
"""Milliseconds for which typed letters and what is to be read stand."""

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
    field = page.locator("#query")
    for query in (QUERY, NOTHING):
        for end in range(0, len(query) + 1, 3):
            field.fill(query[:end])
            yield shot(page, _TYPED)
        _answered(page, query)
        yield shot(page, _READ)
        if query == QUERY:
            page.get_by_text(_SAID[query]).first.scroll_into_view_if_needed()
            yield shot(page, _READ)


def _answered(page: Page, query: str) -> None:
    page.locator("#query").fill(query)
    page.locator("#query").press("Enter")
    page.get_by_text(_SAID[query]).first.wait_for()
    page.wait_for_load_state("networkidle")


def main(folder: Path) -> None:
    """Record, and write the picture."""
    index, model = folder / "degrees" / "index", rungwise.load(folder / "degrees" / "run")
    if not isinstance(model, DualEncoder):
        raise SystemExit(f"{folder}: its model has no vectors")
    with sync_playwright() as engine, background(rungwise.open_index(index), model) as address:
        browser = engine.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        frames = [*terminal(page, index), *searched(page, address)]
        page.set_viewport_size({"width": 800, "height": 600})
        page.goto(address)
        _answered(page, QUERY)
        page.add_style_tag(content="footer { display: none }")
        page.screenshot(path=IMAGES / "search.png", full_page=True)
        browser.close()
    # One palette for all frames: a palette for each makes colours jump.
    most = max((frame for frame, _ in frames), key=lambda one: len(one.getcolors(1 << 20) or ()))
    both = Image.new("RGB", (SIZE["width"], 2 * SIZE["height"]))
    for number, one in enumerate((frames[0][0], most)):
        both.paste(one, (0, number * SIZE["height"]))
    palette = both.quantize(128, dither=Image.Dither.NONE)
    pictures = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture, _ in frames]
    out = IMAGES / "recording.gif"
    pictures[0].save(out, save_all=True, append_images=pictures[1:], duration=[stands for _, stands in frames], loop=0)
    print(f"{out}: {len(frames)} frames, {out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
