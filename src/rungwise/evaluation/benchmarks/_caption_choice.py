"""Winoground and SugarCrepe: which caption fits a picture, and which picture fits a caption."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rungwise.core import UserError, parse_json, read_json
from rungwise.data.files import ParquetCell, Picture, opened_parquet, read_lines
from rungwise.evaluation.benchmarks._questions import NO_PICTURE, UNUSABLE, Gathered

PAIRED = ("image_0", "image_1", "caption_0", "caption_1")
"""Names in an entry of Winoground that all of them have."""
_TAG = "collapsed_tag"
CATEGORY = re.compile(r"(add|replace|swap)_[a-z]{2,8}\.json")
"""Names of SugarCrepe's files."""


def read_winoground(found: Gathered, paths: Sequence[Path]) -> None:
    """Examples of two pictures and two captions (Thrush et al. 2022), as four questions each."""
    for path in paths:
        rows = _cells(path) if path.suffix == ".parquet" else _lines(path)
        for number, (where, entry) in enumerate(rows):
            try:
                lacking = [name for name in PAIRED if name not in entry]
                if lacking:
                    raise ValueError(f"no {lacking[0]!r}")
                captions = [found.item(found.text(entry[name])) for name in PAIRED[2:]]
                pictures = [
                    found.item(picture=one if isinstance(one, ParquetCell) else found.named(one))
                    for one in (entry[name] for name in PAIRED[:2])
                ]
                if captions[0] == captions[1] or pictures[0] == pictures[1]:
                    raise ValueError("both captions, or both pictures, are the same")
            except ValueError as error:
                found.refuse(UNUSABLE, where, str(error))
                continue
            except LookupError as error:
                found.refuse(NO_PICTURE, where, str(error.args[0]))
                continue
            tag = entry.get(_TAG)
            tags = (tag,) if isinstance(tag, str) and tag.isprintable() and tag else ()
            example = str(entry.get("id", number))[:100]
            for place in (0, 1):
                found.ask(example, "text", pictures[place], captions, [place], tags)
                found.ask(example, "image", captions[place], pictures, [place], tags)


def _lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in read_lines(path):
        where = f"{path.name}, line {number}"
        entry = parse_json(line, where)
        yield where, entry if isinstance(entry, dict) else {}


def _cells(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of Parquet, as Hugging Face writes them: the pictures are cells, which are not read here."""
    with opened_parquet(path) as file:
        own = [name for name in (*PAIRED[2:], "id", _TAG) if name in file.schema.names]
        rows = file.rows(own)
        for group, size in enumerate(file.group_sizes):
            for row in range(size):
                cells: dict[str, Picture] = {
                    name: ParquetCell(path, group, row, name) for name in PAIRED[:2] if name in file.schema.names
                }
                yield f"{path.name}, row {row} of row group {group}", {**next(rows), **cells}


def read_sugarcrepe(found: Gathered, paths: Sequence[Path]) -> None:
    """Pictures of COCO val2017 with a caption and a negative one (Hsieh et al. 2023), one question each."""
    for path in paths:
        content = read_json(path)
        entries = (
            content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
        )
        category = path.stem
        for key, entry in entries:
            where = f"{path.name}, {str(key)[:100]!r}"
            try:
                if not isinstance(entry, dict):
                    raise ValueError("is no object")
                lacking = [name for name in ("filename", "caption", "negative_caption") if name not in entry]
                if lacking:
                    raise ValueError(f"no {lacking[0]!r}")
                captions = [found.item(found.text(entry[name])) for name in ("caption", "negative_caption")]
                if captions[0] == captions[1]:
                    raise ValueError("both captions are the same")
                query = found.item(picture=found.named(entry["filename"]))
            except ValueError as error:
                found.refuse(UNUSABLE, where, str(error))
                continue
            except LookupError as error:
                found.refuse(NO_PICTURE, where, str(error.args[0]))
                continue
            found.ask(f"{category}/{str(key)[:100]}", category, query, captions, [0])
        if not entries:
            raise UserError(f"{path}: holds no entries of filename, caption and negative_caption; download it again")
