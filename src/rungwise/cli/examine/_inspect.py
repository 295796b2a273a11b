"""``rungwise inspect``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.text import idle_beside
from rungwise.jobs import (
    ADVANCED,
    Captions,
    Exclude,
    JoinRestval,
    Layout,
    MemberKey,
    console,
    pasted,
    program,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions

_EXAMPLES = ("rungwise inspect photos", "rungwise inspect photos --contact-sheet sheet.png")


@dataclass
class Inspect:
    """What a collection of pictures (or features) and captions holds, and what is odd in it.

    Attributes:
        data: Folder, caption file or file of features. Any layout that is recognised. Or several folders.
        contact_sheet: Write a PNG with some of the pictures here.
        captions_only: Do not look for pictures or features at all.
        quick: Do not decode and compare the pictures. Rows of features are not looked at either.
    """

    data: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DATA [DATA]")]
    captions: Captions = None
    contact_sheet: Path | None = field(default=None, metadata=WRITTEN_FILE)
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    exclude: Exclude = ()
    join_restval: JoinRestval = field(default=False, metadata=ADVANCED)
    captions_only: bool = field(default=False, metadata=ADVANCED)
    quick: bool = False

    IDLE = (
        idle_beside(
            "quick contact_sheet", "captions_only", remedy="leave one of them out: {captions_only} looks at no pictures"
        ),
    )


def main(arguments: list[str]) -> int:
    """Print a table on the collection."""
    asked = parse(Inspect, arguments, "rungwise inspect", examples=_EXAMPLES)
    if not asked.data:
        raise UserError("name a folder or a file of captions, such as rungwise inspect photos")
    if (layout := _benchmark(asked)) is not None:
        _print_benchmark(asked, layout)
        return 0
    from rungwise.data import inspect, read, render
    from rungwise.data.pictures import contact_sheet

    data = read(
        asked.data if len(asked.data) > 1 else asked.data[0],
        layout=asked.layout,
        captions=asked.captions,
        key=asked.key,
        exclude=asked.exclude,
        join_restval=asked.join_restval,
        captions_only=asked.captions_only,
    )
    with progress_bar("checking pictures", 0 if asked.quick else len(data.paths)) as advance:
        seen = 0

        def progress(done: int, total: int) -> None:
            nonlocal seen
            advance(done - seen)
            seen = done

        found = inspect(data, check_pictures=not asked.quick, progress=progress)
    console.print(render(found))
    if asked.contact_sheet:
        lacking = contact_sheet(data, asked.contact_sheet)
        say(f"contact sheet: {asked.contact_sheet}")
        if lacking:
            say(f"no font here has {lacking} of its characters; for them, install a font such as Noto Sans")
    for line in _next(asked, data):
        say(line)
    return 0


def _benchmark(asked: Inspect) -> str | None:
    """Layout of a benchmark that one folder or file holds; None for a collection."""
    from rungwise.evaluation.benchmarks import BENCHMARKS, benchmark_layout

    if len(asked.data) > 1 or asked.layout is not None:
        return asked.layout if asked.layout in BENCHMARKS else None
    return benchmark_layout(asked.data[0])


def _print_benchmark(asked: Inspect, layout: str) -> None:
    from rungwise.evaluation.benchmarks import BENCHMARKS, read_benchmark
    from rungwise.jobs import say_issues

    place = asked.data[0]
    found = read_benchmark(place, asked.layout)
    say(f"{place}: a benchmark ({BENCHMARKS[layout]})")
    say(f"{len(found.questions):,} questions, {len(found.texts):,} texts, {len(found.pictures):,} pictures")
    for reason, count in found.left_out.items():
        say(f"left out: {count:,} with {reason}")
    for warning in found.warnings:
        say(warning)
    say_issues(found.issues)
    say("next, measure a model on it:")
    named = "" if asked.layout is None else f" --layout {quote(asked.layout)}"
    say(f"  {program()} evaluate MODEL {pasted(place)}{named}")


def _next(asked: Inspect, data: ImageCaptions) -> Iterator[str]:
    """Next commands for such a collection, to paste, which read it by the same options."""
    ours, named = program(), " ".join(map(pasted, asked.data))
    said = [("layout", quote(asked.layout))] if asked.layout is not None else []
    said += [("key", asked.key)] if asked.key != Inspect.key else []
    read_as, trained_as = ("".join(f" --{of}{name} {value}" for name, value in said) for of in ("", "data."))
    captions = "" if asked.captions is None else f" --captions {pasted(asked.captions)}"
    exclude = f" --exclude {' '.join(map(quote, asked.exclude))}" if asked.exclude else ""
    index = f"{ours} index {named}{read_as}{captions}{exclude}"
    alone = index if len(asked.data) == 1 else f"{index} --out index"
    if not len(data):
        yield "nothing of it can be read as it is; the table says why"
    elif data.captions and data.has_pictures:
        yield from _training(asked, data, f"{named}{trained_as}", index)
        if data.paths:
            yield "search it with a published model, without training:"
            yield f"  {alone}"
    elif data.paths:
        yield "next, make it searchable with a published model (no captions to train with):"
        yield f"  {alone}"
    elif data.captions:
        yield "next, see how alike its captions are (no pictures to train with):"
        yield f"  {ours} relevance cider-d {named}{read_as} --captions-only"
    else:
        yield "next: features alone can be indexed with the model that was trained on them:"
        yield f"  {index} --model MODEL --out index"


def _training(asked: Inspect, data: ImageCaptions, place: str, index: str) -> Iterator[str]:
    """Commands that train a model and search with it, or why there are none."""
    from rungwise.data import NO_SPLIT, why_untrained

    if len(asked.data) > 1 or asked.captions is not None or asked.exclude:
        yield "rungwise train reads one folder, or one file of captions, without these options"
        return
    train = f"{program()} train {'scenes ' if data.layout == 'scenes' else ''}{place}"
    # Whoever has only pictures for a test may want to train on them all the same.
    others = tuple(one for one in data.split_names if one not in ("val", NO_SPLIT))
    if not (why := why_untrained(data)):
        yield "next, train a model on it and search with that:"
        yield f"  {train} --out run"
        yield f"  {index} --model run/model --out index"
    elif others and not why_untrained(data, others):
        yield f"next, train a model ({why}, so the line names it) and search with that:"
        yield f"  {train} --data.train {' '.join(map(quote, others))} --out run"
        yield f"  {index} --model run/model --out index"
    else:
        yield f"too little to train a model on: {why}"
