"""``rungwise demo``."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import tyro

from rungwise import demo
from rungwise.cli.terminal import chosen_device, console, say
from rungwise.core.errors import UserError
from rungwise.evaluation import render_table
from rungwise.index import Index
from rungwise.models import JointEmbedding
from rungwise.serving import background, serve
from rungwise.training.reports import TerminalWatcher


@dataclass
class Demo:
    """Make pictures, train for about a minute, print the numbers beside chance, and open the search page.

    Attributes:
        folder: Where everything is kept; a second run finds it and only serves.
        check: Do everything in a temporary folder, ask the page for its answers, and end.
        browser: Open the page.
        port: 0 takes any that is free.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
    """

    folder: Path = Path("rungwise-demo")
    check: bool = False
    browser: bool = True
    port: int = 8000
    device: str | None = None


def main(arguments: list[str]) -> int:
    """Run the demo."""
    asked = tyro.cli(Demo, args=arguments, prog="rungwise demo")
    if asked.check:
        with tempfile.TemporaryDirectory() as folder:
            index, model, query = _prepare(Path(folder), chosen_device(asked.device))
            with background(index, model) as address:
                _ask(address, len(index), query)
            say("the page, its search and its pictures answered")
        return 0
    index, model, query = _prepare(asked.folder, chosen_device(asked.device))
    serve(
        index,
        model,
        port=asked.port,
        open_browser=asked.browser,
        ready=lambda address: say(f"search page: {address}   (Ctrl-C ends)   try: {query}"),
    )
    return 0


def _prepare(folder: Path, device: str) -> tuple[Index, JointEmbedding, str]:
    """Everything up to the page; gives a held-out search to try on it, too."""
    started = time.perf_counter()
    scenes = folder / "scenes"
    watcher = TerminalWatcher(console)
    data = demo.make_scenes(scenes, watcher)
    say(f"{len(data)} scenes, {len(data.captions)} captions: {scenes}")
    model = demo.train_on(data, scenes, folder / "run", watcher, device=device)
    console.print(render_table(demo.evaluate_on_test(data, scenes, model)))
    index = Index.build(
        data.split("test"),
        model,
        folder / "index",
        model_location=str((folder / "run" / "model").resolve()),
        overwrite=True,
    )
    held_out = demo.search_held_out(scenes, index, model)
    say(
        f"{held_out.queries} searches for combinations absent from training, among {held_out.gallery} pictures:\n"
        f"a right picture in the first five for {held_out.found:.0f} %; by chance {held_out.chance:.1f} %"
    )
    say(f"ready after {time.perf_counter() - started:.0f} s")
    return index, model, held_out.example


def _ask(address: str, pictures: int, query: str) -> None:
    """Ask the running server what a browser would ask.

    Raises:
        UserError: Naming the first answer that is not as it should be.
    """
    for path, needed in (
        ("", b"<title>"),
        (f"api/search?q={quote(query)}&k=5", b'"results"'),
        ("api/similar/0?k=5", b'"results"'),
        (f"pictures/{pictures - 1}?thumb=128", b"\xff\xd8\xff"),
    ):
        with urlopen(f"{address.rstrip('/')}/{path}", timeout=30) as answer:
            body = answer.read()
        if answer.status != 200 or needed not in body:
            raise UserError(f"{address}/{path}: answered {answer.status} without {needed!r}; the page does not work")
