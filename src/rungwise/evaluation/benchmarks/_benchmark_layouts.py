"""Which benchmark a folder holds, and its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rungwise.core import UserError, is_regular, opened_file, require_there
from rungwise.data.files import opened_parquet
from rungwise.data.layouts import PictureFolder, folder_name
from rungwise.evaluation.benchmarks._caption_choice import CATEGORY, PAIRED, read_sugarcrepe, read_winoground
from rungwise.evaluation.benchmarks._composed import ASKED, read_circo, read_mmeb
from rungwise.evaluation.benchmarks._questions import Benchmark, Gathered

BENCHMARKS: Mapping[str, str] = {
    "winoground": "Winoground: examples.jsonl or Parquet, and images/",
    "sugarcrepe": "SugarCrepe: add_att.json and so on, and COCO's val2017",
    "circo": "CIRCO: annotations/val.json, and COCO's unlabeled2017",
    "mmeb": "MMEB: JSONL or Parquet with qry_text and tgt_text",
}
"""Names of the layouts of benchmarks, and what each is."""

_HEAD, _MOST_LOOKED_INTO = 1 << 20, 200
"""Bytes of a file, and number of files of a folder, that are looked at to recognise a layout."""


_SUFFIXES = (".json", ".jsonl", ".parquet")


def benchmark_layout(place: Path) -> str | None:
    """Name of the layout of a folder or file, by a look at the heads of its files; None where it is no benchmark.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> entry = '{"0": {"filename": "1.jpg", "caption": "A dog.", "negative_caption": "A cat."}}'
    >>> _ = (folder / "add_obj.json").write_text(entry)
    >>> benchmark_layout(folder), benchmark_layout(folder.parent / "none")
    ('sugarcrepe', None)
    """
    try:
        return next((layout for layout, find in _FIND.items() if find(place, _holds)), None)
    except (UserError, OSError):
        return None  # a guess; whoever reads the folder says what is wrong with it


def read_benchmark(place: Path, layout: str | None = None) -> Benchmark:
    """The questions of a folder, or of one file of it.

    Args:
        place: The folder or file.
        layout: One of :data:`BENCHMARKS`, whose files are then known by their names; by default it is recognised.

    Raises:
        UserError: If it is no benchmark, a file is damaged, or no question can be asked.
    """
    require_there(place)
    if layout is not None and layout not in BENCHMARKS:
        raise UserError(f"layout {layout!r}: no such benchmark; there are {', '.join(BENCHMARKS)}")
    holds = _holds if layout is None else _named
    layout = layout or benchmark_layout(place)
    if layout is None:
        known = "; ".join(BENCHMARKS.values())
        raise UserError(f"{place}: no benchmark is recognised here ({known}); name its layout, or give another folder")
    paths = _FIND[layout](place, holds)
    if not paths:
        raise UserError(f"{place}: has no files of {BENCHMARKS[layout]}; give another folder, or leave the layout out")
    root = place if place.is_dir() else place.parent
    found = Gathered(PictureFolder(root))
    _READ[layout](found, paths)
    return found.benchmark(layout, folder_name(root), one_gallery=layout == "circo")


def _files(place: Path, depth: int = 0) -> Iterator[Path]:
    """A file itself, or the first files of a folder and of the folders in it, in the order of their names."""
    if place.is_file():
        yield place
        return
    if not place.is_dir():
        return
    for path in sorted(place.iterdir())[: _MOST_LOOKED_INTO if depth else None]:
        if path.is_dir() and depth and not path.name.startswith("."):
            yield from _files(path, depth - 1)
        elif path.suffix in _SUFFIXES and is_regular(path):
            yield path


def _holds(path: Path, *words: str) -> bool:
    """Whether the head of a JSON file has these names, or a Parquet file these columns."""
    if path.suffix == ".parquet":
        with opened_parquet(path) as file:
            return set(words) <= set(file.schema.names)
    with opened_file(path, None) as reader:
        head = reader.read(_HEAD)
    return all(f'"{word}"'.encode() in head for word in words)


def _named(path: Path, *words: str) -> bool:
    """What stands for :func:`_holds` where a layout was asked for: the names of its files are enough."""
    return True


_Holds = Callable[..., bool]


def _winoground(place: Path, holds: _Holds) -> list[Path]:
    found = [
        path
        for folder in (place, place / "data")
        for path in _files(folder)
        if (path.name == "examples.jsonl" or path.suffix == ".parquet") and holds(path, *PAIRED)
    ]
    jsonl = [path for path in found if path.suffix == ".jsonl"]
    return jsonl[:1] or found


def _sugarcrepe(place: Path, holds: _Holds) -> list[Path]:
    for folder in (place, place / "data"):
        named = [path for path in _files(folder) if CATEGORY.fullmatch(path.name)]
        if found := [path for path in named if holds(path, "negative_caption")]:
            return found
    return []


def _circo(place: Path, holds: _Holds) -> list[Path]:
    for folder in (place / "annotations", place):
        named = [path for path in _files(folder) if path.name in ("val.json", "test.json")]
        if found := [path for path in named if holds(path, "reference_img_id", "relative_caption")]:
            return found
    return []


def _mmeb(place: Path, holds: _Holds) -> list[Path]:
    tables = [path for path in _files(place, 2) if path.suffix in (".jsonl", ".parquet")]
    return [path for path in tables if holds(path, ASKED[0], ASKED[2])]


_FIND: Mapping[str, Callable[[Path, _Holds], list[Path]]] = {
    "winoground": _winoground,
    "sugarcrepe": _sugarcrepe,
    "circo": _circo,
    "mmeb": _mmeb,
}
_READ: Mapping[str, Callable[[Gathered, Sequence[Path]], None]] = {
    "winoground": read_winoground,
    "sugarcrepe": read_sugarcrepe,
    "circo": read_circo,
    "mmeb": read_mmeb,
}
