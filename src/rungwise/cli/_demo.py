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

from rungwise.cli.frame import Browser, Limits, Port, parse
from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import Progress
from rungwise.core.text import idle_beside, idle_where
from rungwise.jobs import ADVANCED, Device, chosen_device, console, program, say, shortest
from rungwise.serving import ServingLimits

if TYPE_CHECKING:
    from rungwise.demo import Demo as Made
    from rungwise.demo import Places
    from rungwise.serving import MakeApp

_EXAMPLES = ("rungwise demo", "rungwise demo --folder somewhere --no-browser", "rungwise demo --export site")


@dataclass
class DemoCommand:
    """Make pictures, train two models on them, compare both, and open a page with their answers side by side.

    Attributes:
        folder: Where everything is kept. A second run finds it and only serves.
        again: Make everything anew.
        export: Folder to write the page to, for any web server, in place of serving it: 200 queries with both answers.
        check: Try everything in a temporary folder. The page is asked for its answers, and that is all.
        small: With --check, few pictures and few steps, in half a minute of processor time.
    """

    folder: Path = Path("rungwise-demo")
    again: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    export: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = field(default=None, metadata=WRITTEN_FOLDER)
    browser: Browser = True
    port: Port = 8000
    check: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    small: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    limits: Limits = field(default_factory=ServingLimits, metadata=ADVANCED)

    IDLE = (
        idle_where(
            "small",
            lambda asked: not asked.check,
            "without {check}: models of so few pictures show nothing",
            "give both, or leave {} out",
        ),
        idle_beside(
            "folder again export port",
            "check",
            remedy="leave one of them out: {check} makes everything in a folder of its own, and opens no page",
        ),
        idle_beside(
            "browser port limits", "export", remedy="leave one of them out: {export} writes a page and serves none"
        ),
    )


def main(arguments: list[str]) -> int:
    """Run the demo."""
    asked = parse(DemoCommand, arguments, "rungwise demo", examples=_EXAMPLES)
    from rungwise.demo import Places, create_demo_app, refuse_export, refuse_others
    from rungwise.serving import ServerSettings, background_app, serve_app

    device = chosen_device(asked.device)

    def make(demo: Made) -> MakeApp:
        return lambda settings, _: create_demo_app(demo, settings=settings)

    if asked.check:
        with tempfile.TemporaryDirectory() as folder:
            demo = _made(Places(Path(folder)), device, small=asked.small)
            with background_app(make(demo), settings=ServerSettings(limits=asked.limits)) as address:
                _ask(address, demo)
            say("the page, its searches and its pictures answered")
        return 0
    places = Places(asked.folder)
    refuse_others(places)
    if asked.export is not None:
        refuse_export(asked.export, places)
    demo = _made(places, device, again=asked.again)
    if asked.export is not None:
        _export(demo, places, asked.export)
        return 0
    _say_commands(places, demo)
    serve_app(
        make(demo),
        settings=ServerSettings(port=asked.port, limits=asked.limits),
        open_browser=asked.browser,
        ready=lambda address: say(f"page: {address}   (Ctrl-C ends)"),
    )
    return 0


def _made(places: Places, device: str, *, again: bool = False, small: bool = False) -> Made:
    from rungwise.demo import made_before, rendered

    started = time.monotonic()
    demo = None if again else made_before(places, device)
    if demo is not None:
        say(f"found in {places.folder}: two models of an earlier demo; --again trains anew")
    else:
        demo = _make(places, device, again=again, small=small)
    for compared in demo.results.compared:
        console.print(f"\n{rendered(compared)}", highlight=False, soft_wrap=True)
    say(f"\nready after {time.monotonic() - started:.0f} s")
    return demo


def _make(places: Places, device: str, *, again: bool, small: bool) -> Made:
    from rungwise.demo import FEW_QUERIES, FEW_SCENES, QUERIES, SCENES, Bars, discard_runs, make, titles

    if again:
        discard_runs(places)
    say(f"two models learn from the same pictures, side by side; everything is kept in {places.folder}")
    with Progress("drawing pictures", 1, console) as drawing:

        def drawn(now: int, total: int) -> None:
            drawing.total = total
            drawing.at(now)

        return make(
            places,
            Bars(titles(), console),
            device,
            drawing=drawn,
            scenes=FEW_SCENES if small else SCENES,
            queries=FEW_QUERIES if small else QUERIES,
            done=lambda part, seconds: say(f"{part}: {seconds:.0f} s"),
        )


def _export(demo: Made, places: Places, folder: Path) -> None:
    from rungwise.demo import EXPORTED_QUERIES, export_demo

    named = folder.name if folder.is_absolute() else str(folder)  # which says nothing of this computer
    command = f"rungwise demo --export {quoted(named)}"
    with Progress("answering queries", EXPORTED_QUERIES, console) as answering:
        done = export_demo(demo, places, folder, command, queries=EXPORTED_QUERIES, progress=answering.at)
    say(f"exported: {done.queries} queries and {done.pictures} pictures, {done.size / 1e6:.1f} MB, to {folder}")
    say(f"to see the page: open {folder / 'index.html'}")


def _say_commands(places: Places, demo: Made) -> None:
    query = next((one.text for one in demo.results.examples), "a red star above a blue heart")
    ours, index = program(), quoted(shortest(places.index("degrees")))
    say("to try in another terminal, in this folder:")
    say(f'  {ours} search {index} "{query}"')
    say(f"  {ours} search {index} --help")


def _ask(address: str, demo: Made) -> None:
    """Send the running server the requests of a browser; UserError names the first wrong answer."""
    one = quote(demo.comparison.ids[0], safe="")
    query = quote(next((example.text for example in demo.results.examples), "a red star"))
    for path, needed in (
        ("", b"<title>"),
        ("static/demo.js", b"fetch("),
        ("demo/about", b'"compared"'),
        (f"demo/search?q={query}", b'"columns"'),
        ("degrees/", b"<title>"),
        (f"degrees/search?q={query}&k=5", b'"hits"'),
        (f"triplet/search?q={query}&k=5", b'"hits"'),
        (f"degrees/similar?id={one}&k=5", b'"hits"'),
        (f"degrees/images/{one}?thumb=128", b"\xff\xd8\xff"),
    ):
        with urlopen(f"{address.rstrip('/')}/{path}") as answer:
            body = answer.read()
        if answer.status != 200 or needed not in body:
            raise UserError(f"{address}/{path}: answered {answer.status} without {needed!r}; the page does not work")
