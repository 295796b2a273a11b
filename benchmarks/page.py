"""What a visit to the search page costs, and what it looks like.

    python benchmarks/page.py INDEX                               # of `rungwise index`, served for the time
    python benchmarks/page.py INDEX --query "a dog in snow" --visits 9
    python benchmarks/page.py INDEX --screenshots FOLDER          # desktop and phone, light and dark
    python benchmarks/page.py INDEX --screenshots FOLDER --rerank runs/scan/model    # and why a picture was found

Chromium of the system opens the page as a visitor who was never there before, then once more, and then searches. Bytes
are those on the wire, heads of answers included; what the browser has kept is no request. Medians of several visits;
each is a fresh profile.

* to box: the scripts have run, and what is typed is answered
* to pictures: the first picture that is found is drawn
* to rest: nothing more is on its way
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.table import Table

PATIENCE = 60_000
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
LOOKS: dict[str, dict[str, Any]] = {"desktop": {"viewport": {"width": 1440, "height": 900}}, "phone": PHONE}
DRAWN = "() => [...document.querySelectorAll('.frame img')].some((img) => img.complete && img.naturalWidth)"
ALL_DRAWN = """() => [...document.querySelectorAll('img')].every((img) => {
  const place = img.getBoundingClientRect();
  const seen = place.width && place.bottom > 0 && place.top < innerHeight && place.right > 0 && place.left < innerWidth;
  return !seen || (img.complete && img.naturalWidth);
})"""
FOUND = "query => document.title.startsWith(query) && document.querySelector('#results .frame img.here')"


@dataclass
class Visit:
    """What one visit, or one search, took."""

    requests: int = 0
    bytes: int = 0
    box: float = float("nan")
    pictures: float = float("nan")
    rest: float = float("nan")


@dataclass
class Wire:
    """Counts what a page asks for."""

    page: Page
    requests: int = 0
    bytes: int = 0
    of: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        devtools = self.page.context.new_cdp_session(self.page)
        devtools.send("Network.enable")
        kinds: dict[str, str] = {}

        def asked(event: dict[str, Any]) -> None:
            kinds[event["requestId"]] = event.get("type", "Other")
            self.requests += 1

        def answered(event: dict[str, Any]) -> None:
            size = int(event["encodedDataLength"])
            kind = kinds.get(event["requestId"], "Other")
            self.bytes += size
            self.of[kind] = self.of.get(kind, 0) + size

        def at_hand(event: dict[str, Any]) -> None:
            self.requests -= 1

        def arrived(event: dict[str, Any]) -> None:
            self.requests -= bool(event["response"].get("fromDiskCache"))

        devtools.on("Network.requestWillBeSent", asked)
        devtools.on("Network.requestServedFromCache", at_hand)
        devtools.on("Network.responseReceived", arrived)
        devtools.on("Network.loadingFinished", answered)

    def since(self, requests: int, size: int) -> tuple[int, int]:
        """How many more requests and bytes there are than these."""
        return self.requests - requests, self.bytes - size


@contextmanager
def served(folder: Path, place: str | None, rerank: str | None) -> Iterator[str]:
    from rungwise.index import Index
    from rungwise.models import load, load_dual_encoder
    from rungwise.serving import Reranker, background

    index = Index.open(folder)
    model = load_dual_encoder(place or index.manifest.model_location)
    print(f"{len(index)} pictures of {index.manifest.name}")
    reranker = None if rerank is None else Reranker(load(rerank))
    with background(index, model, reranker=reranker) as address:
        yield address


def visit(page: Page, wire: Wire, address: str) -> Visit:
    before = (wire.requests, wire.bytes)
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_function(DRAWN)
    drawn = page.evaluate("performance.now()")
    page.wait_for_load_state("networkidle")
    rest = page.evaluate("performance.now()") - 500  # networkidle is half a second without requests
    box = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    return Visit(*wire.since(*before), box, drawn, rest)


def search(page: Page, wire: Wire, query: str) -> Visit:
    before = (wire.requests, wire.bytes)
    page.locator("#query").fill(query)
    start = time.perf_counter()
    page.locator("#query").press("Enter")
    page.wait_for_function(FOUND, arg=query)
    drawn = 1000 * (time.perf_counter() - start)
    page.wait_for_timeout(1000)
    page.wait_for_function(ALL_DRAWN)
    return Visit(*wire.since(*before), pictures=drawn)


def median(visits: list[Visit]) -> Visit:
    return Visit(*(statistics.median(getattr(one, name) for one in visits) for name in vars(visits[0])))


def costs(browser: Browser, address: str, query: str, visits: int) -> Table:
    table = Table(title=f"medians of {visits} visits")
    for column in ("", "requests", "KB", "ms to box", "ms to pictures", "ms to rest"):
        table.add_column(column, justify="left" if not column else "right")
    split: dict[str, int] = {}
    for look, settings in LOOKS.items():
        found: dict[str, list[Visit]] = {"first visit": [], "second visit": [], "search": []}
        for _ in range(visits):
            context = browser.new_context(**settings)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            wire = Wire(page)
            found["first visit"].append(visit(page, wire, address))
            split = dict(wire.of) if look == "desktop" else split
            found["second visit"].append(visit(page, wire, address))
            found["search"].append(search(page, wire, query))
            context.close()
        for what, many in found.items():
            one = median(many)
            times = [one.box, one.pictures, one.rest]
            shown = ["" if value != value else f"{value:.0f}" for value in times]
            table.add_row(f"{look}, {what}", f"{one.requests:.0f}", f"{one.bytes / 1000:.1f}", *shown)
    table.caption = "first visit, KB: " + ", ".join(
        f"{kind.lower()} {size / 1000:.1f}" for kind, size in sorted(split.items(), key=lambda item: -item[1])
    )
    return table


def screenshots(browser: Browser, address: str, query: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for look, settings in LOOKS.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(**settings, color_scheme=scheme, reduced_motion="reduce")
            context.set_default_timeout(PATIENCE)
            page = context.new_page()

            def keep(what: str, page: Page = page, name: str = f"{look}-{scheme}") -> None:
                page.wait_for_timeout(1500)  # captions and neighbours are asked for after the pictures
                page.wait_for_function(ALL_DRAWN)
                page.screenshot(path=folder / f"{name}-{what}.png")

            page.goto(address)
            page.wait_for_function(DRAWN)
            keep("start")
            page.locator("#query").fill(query)
            page.locator("#query").press("Enter")
            page.wait_for_function(FOUND, arg=query)
            page.evaluate("document.activeElement.blur()")
            keep("results")
            page.locator("#results a.open").first.click()
            keep("detail")
            if page.locator("#why-ask").is_visible():
                page.locator("#why-ask").click()
                keep("why")
            page.locator("#detail-like").click()
            keep("like")
            context.close()
    print(f"screenshots in {folder}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("index", type=Path, help="folder of an index")
    parser.add_argument("--model", help="the model that built it, if it has moved")
    parser.add_argument("--rerank", help="a model that ranks the first hits anew, and may say why they were found")
    parser.add_argument("--query", default="two dogs running through snow")
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--screenshots", type=Path, help="folder for them")
    asked = parser.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        sys.exit("there is no Chromium here; install it, for example with: apt-get install chromium")
    with served(asked.index, asked.model, asked.rerank) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        if asked.screenshots:
            screenshots(browser, address, asked.query, asked.screenshots)
        if asked.visits:
            Console().print(costs(browser, address, asked.query, asked.visits))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
