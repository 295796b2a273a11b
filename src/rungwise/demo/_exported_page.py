"""Export of the demo's page as files for any web server: chosen queries with both answers, and small pictures."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rungwise.core import UserError
from rungwise.core.disk.folders import refuse_strangers, replacing_folder, require_writable_folder
from rungwise.data import ImageCaptions, read
from rungwise.data.files import Picture
from rungwise.data.pictures import small_image
from rungwise.demo._application import about_of
from rungwise.demo._comparison import ComparedAnswer, ShownHit
from rungwise.demo._examples import FROM_OUTSIDE
from rungwise.demo._parts import first_object_of, fresh_queries
from rungwise.demo._places import Places
from rungwise.demo._whole import SHOWN, Demo
from rungwise.scenes import SceneFile, held_out_queries, load_scene_file
from rungwise.serving import page_files

EXPORTED_QUERIES = 200
"""Number of queries that an exported page knows."""

PARTS = ("index.html", "page.js", "page.css", "page.svg", "answers.js", "pictures-*.png")
"""Names of the files of an exported page."""

_MADE_BY = b"COMMAND"
"""Text of the HTML in whose place the command stands that made the page."""
_PAGE = Path(__file__).parent / "exported" / "index.html"
_WHAT = "an exported demo"
_MARGIN, _ACROSS, _DOWN = 4, 24, 24
"""Of a sheet of pictures: pixels around each, pictures in a row, and rows."""
_SHARES = (9, 6, 3, 2)
"""Numbers of queries of each kind that are taken in turn."""


@dataclass(frozen=True)
class Exported:
    """Record of an export.

    Attributes:
        queries: Number of queries.
        pictures: Number of pictures.
        size: Number of bytes of all files.
    """

    queries: int
    pictures: int
    size: int


@dataclass(frozen=True)
class ChosenQuery:
    """A query of the exported page, and what kind of query it is."""

    text: str
    kind: str


def refuse_export(folder: Path, places: Places) -> None:
    """Refuse a folder that holds other files, that cannot be written, or that would get in the way of the demo."""
    target, demo = folder.resolve(), places.folder.resolve()
    if target.is_relative_to(demo) or demo.is_relative_to(target):
        raise UserError(f"{folder}: would share a folder with the demo in {places.folder}; name a folder beside it")
    refuse_strangers(folder, PARTS, _WHAT)
    require_writable_folder(folder)


def export_demo(
    demo: Demo,
    places: Places,
    folder: Path,
    command: str,
    *,
    queries: int = EXPORTED_QUERIES,
    progress: Callable[[int], None] = lambda _done: None,
) -> Exported:
    """Write a page that shows both models' answers to chosen queries, and that asks no server.

    Args:
        demo: The demo.
        places: Folders of the demo.
        folder: Folder of the page; an earlier export there is replaced.
        command: Command that the page names as the one that made it.
        queries: Largest number of queries.
        progress: Callback with the number of answered queries.

    Raises:
        UserError: If the folder holds other files, or it cannot be written.
    """
    data, file = read(places.scenes).split("test"), load_scene_file(places.scenes)
    chosen = choose_queries(demo, places, data, file, queries)
    packed = _Packing()
    answers = []
    for done, query in enumerate(chosen):
        progress(done)
        answers.append({"kind": query.kind, **packed.answer(demo.comparison.answer(query.text))})
    progress(len(chosen))
    captions = _longest_captions(data)
    known = {
        "about": asdict(about_of(demo)),
        "cells": {"side": file.config.side, "margin": _MARGIN, "across": _ACROSS, "down": _DOWN},
        "pictures": [captions[one] for one in packed.pictures],
        "words": list(packed.words),
        "answers": answers,
    }
    paths = dict(zip(data.image_ids, data.paths, strict=True))
    with replacing_folder(folder, PARTS, _WHAT, header="index.html", seal=False) as draft:
        write_exported_page(draft, command)
        (draft / "answers.js").write_text(f"globalThis.rungwiseDemo = {_json(known)};\n", encoding="utf-8")
        for number, sheet in enumerate(sheets([paths[one] for one in packed.pictures], file.config.side), start=1):
            Image.fromarray(sheet).save(draft / f"pictures-{number}.png", optimize=True)
        size = sum(one.stat().st_size for one in draft.iterdir())
    return Exported(len(chosen), len(packed.pictures), size)


def write_exported_page(folder: Path, command: str) -> None:
    """Write the page without its answers and pictures, which :func:`export_demo` writes beside it.

    Args:
        folder: Folder that exists.
        command: Command that the page names as the one that made it.
    """
    for name, content in page_files(_PAGE).items():
        (folder / name).write_bytes(content.replace(_MADE_BY, html.escape(command).encode()))


def choose_queries(
    demo: Demo, places: Places, data: ImageCaptions, file: SceneFile, count: int
) -> tuple[ChosenQuery, ...]:
    """Different queries, chosen by rule and without a look at their outcome; but the examples of the page come first.

    In turn, nine searches for combinations absent from training, other than the measured ones; six captions of test
    pictures; three that name one object alone; two for scenes that are not among the pictures.

    Args:
        demo: The demo.
        places: Folders of the demo.
        data: The test pictures with their captions.
        file: Content of the pictures.
        count: Largest number of queries; fewer where there are no more.
    """
    held_out = held_out_queries(places.scenes, demo.results.compared[0].queries, SHOWN)
    fresh = fresh_queries(file.config, file.held_out, count)
    order = np.random.default_rng(SHOWN).permutation(len(data.captions)).tolist()
    kinds = {
        "combination absent from training": [one.text for one in held_out],
        "caption of a picture": [data.captions[place] for place in order],
        "one object": [first_object_of(one).text for one in held_out],
        "drawn from other scenes": [one.text for one in fresh],
    }
    left = {kind: iter(dict.fromkeys(texts)) for kind, texts in kinds.items()}
    turns = [kind for kind, share in zip(kinds, _SHARES, strict=True) for _ in range(share)]
    chosen = dict.fromkeys((one.text for one in demo.results.examples), "example")
    chosen.update(dict.fromkeys(FROM_OUTSIDE, "words for what no picture shows"))
    while len(chosen) < count and left:
        for kind in turns:
            text = next((one for one in left.get(kind, ()) if one not in chosen), None)
            if text is None:
                left.pop(kind, None)
            elif len(chosen) < count:
                chosen[text] = kind
    return tuple(ChosenQuery(text, kind) for text, kind in chosen.items())[:count]


def sheets(pictures: Sequence[Picture], side: int) -> list[NDArray[np.uint8]]:
    """Square pictures in rows on large ones; a margin in the colours of its edge keeps each from its neighbours."""
    around = ((_MARGIN, _MARGIN), (_MARGIN, _MARGIN), (0, 0))
    cells = [np.pad(np.asarray(small_image(one, side)), around, mode="edge") for one in pictures]
    found = []
    for begin in range(0, len(cells), _ACROSS * _DOWN):
        own = cells[begin : begin + _ACROSS * _DOWN]
        own += [np.zeros_like(own[0])] * (-len(own) % _ACROSS)
        found.append(np.vstack([np.hstack(own[row : row + _ACROSS]) for row in range(0, len(own), _ACROSS)]))
    return found


class _Packing:
    """Answers in few characters: pictures and words are numbered, and degrees are counts of facts."""

    def __init__(self) -> None:
        self.pictures: dict[str, int] = {}
        self.words: dict[str, int] = {}

    def answer(self, answer: ComparedAnswer) -> dict[str, Any]:
        """The answer for ``unpacking.js``, which makes it whole again."""
        return {
            **asdict(answer),
            "ideal": _counts(answer.ideal, answer.facts),
            "columns": [
                {
                    **asdict(column),
                    "curve": _counts(column.curve, answer.facts),
                    "hits": [self._hit(one) for one in column.hits],
                }
                for column in answer.columns
            ],
        }

    def _hit(self, hit: ShownHit) -> list[int | None]:
        return [_number(self.pictures, hit.id), hit.true, *(_number(self.words, one) for one in (hit.band, *hit.wrong))]


def _number(known: dict[str, int], text: str) -> int:
    return known.setdefault(text, len(known))


def _counts(degrees: Sequence[float], facts: int) -> list[int]:
    return [round(one * facts) for one in degrees]


def _longest_captions(data: ImageCaptions) -> dict[str, str]:
    return {
        name: max((data.captions[place] for place in own), key=len, default="")
        for name, own in zip(data.image_ids, data.captions_of_image, strict=True)
    }


def _json(value: object) -> str:
    """JSON in ASCII, which is JavaScript as well."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
