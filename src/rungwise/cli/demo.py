"""``rungwise demo``."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote as quoted
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote
from urllib.request import urlopen

import tyro

from rungwise.cli.parsing import ADVANCED, parse
from rungwise.cli.terminal import chosen_device, console, program, say, shortest
from rungwise.core.errors import UserError

if TYPE_CHECKING:
    from rungwise.index import Index
    from rungwise.models import JointEmbedding

_EXAMPLES = ("rungwise demo", "rungwise demo --folder somewhere --no-browser")


@dataclass
class Demo:
    """Make pictures, train for about a minute, print the numbers, and open the page.

    Attributes:
        folder: Where everything is kept. A second run finds it and only serves.
        again: Make everything anew.
        browser: Open the page.
        port: Number after the colon. 0 takes any that is free.
        check: Try everything in a temporary folder. The page is asked for its answers, and that is all.
        device: Where the model computes, such as cpu or cuda. Default cuda where there is one.
    """

    folder: Path = Path("rungwise-demo")
    again: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    browser: bool = True
    port: int = 8000
    check: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    device: str | None = field(default=None, metadata=ADVANCED)


def main(arguments: list[str]) -> int:
    """Run the demo."""
    asked = parse(Demo, arguments, "rungwise demo", examples=_EXAMPLES)
    from rungwise.serving import background, serve

    device = chosen_device(asked.device)
    if asked.check:
        with tempfile.TemporaryDirectory() as folder:
            index, model, query = _made(Path(folder), device)
            with background(index, model) as address:
                _ask(address, next(item.id for item in index.items()), query)
            say("the page, its search and its pictures answered")
        return 0
    index, model, query = _made(asked.folder, device, again=asked.again)
    _say_commands(asked.folder, query)
    serve(
        index,
        model,
        port=asked.port,
        open_browser=asked.browser,
        ready=lambda address: say(f"search page: {address}   (Ctrl-C ends)   try: {query}"),
    )
    return 0


def _made(folder: Path, device: str, *, again: bool = False) -> tuple[Index, JointEmbedding, str]:
    """What an earlier demo made, or this one makes now; with a search to try on it."""
    from rungwise import demo

    scenes = folder / demo.SCENES_FOLDER
    started = time.perf_counter()
    if not again and (before := demo.made_before(folder, device)) is not None:
        index, model = before
        say(f"found in {folder}: {len(index)} pictures and their model, of an earlier demo; --again trains anew")
    else:
        index, model = _make(folder, device, again=again)
    held_out = demo.search_held_out(scenes, index, model)
    say(
        f"{held_out.queries} searches for combinations absent from training, among {held_out.gallery} pictures:\n"
        f"a right picture in the first five for {held_out.found:.0f} %; by chance {held_out.chance:.1f} %"
    )
    say(f"ready after {time.perf_counter() - started:.0f} s")
    return index, model, held_out.example


def _make(folder: Path, device: str, *, again: bool) -> tuple[Index, JointEmbedding]:
    from rungwise import demo
    from rungwise.evaluation import render_table
    from rungwise.training.reports import TerminalWatcher

    scenes, watcher = folder / demo.SCENES_FOLDER, TerminalWatcher(console)
    if again:
        demo.forget(folder)
    data = demo.make_scenes(scenes, watcher)
    say(f"{len(data)} scenes, {len(data.captions)} captions: {scenes}")
    model = demo.train_on(data, scenes, folder / demo.RUN_FOLDER, watcher, device=device)
    console.print(render_table(demo.evaluate_on_test(data, scenes, model)))
    return demo.index_test(data, folder, model), model


def _say_commands(folder: Path, query: str) -> None:
    """Commands that can be pasted into another terminal."""
    ours, index = program(), quoted(shortest(folder / "index"))
    say("to try in another terminal, in this folder:")
    say(f'  {ours} search {index} "{query}"')
    say(f"  {ours} search {index} --help")


def _ask(address: str, item_id: str, query: str) -> None:
    """Ask the running server what a browser would ask.

    Args:
        address: Of the server.
        item_id: Of a picture of its index.
        query: To search for.

    Raises:
        UserError: Naming the first answer that is not as it should be.
    """
    one = quote(item_id, safe="")
    for path, needed in (
        ("", b"<title>"),
        (f"search?q={quote(query)}&k=5", b'"hits"'),
        (f"similar?id={one}&k=5", b'"hits"'),
        (f"images/{one}?thumb=128", b"\xff\xd8\xff"),
    ):
        with urlopen(f"{address.rstrip('/')}/{path}", timeout=30) as answer:
            body = answer.read()
        if answer.status != 200 or needed not in body:
            raise UserError(f"{address}/{path}: answered {answer.status} without {needed!r}; the page does not work")
