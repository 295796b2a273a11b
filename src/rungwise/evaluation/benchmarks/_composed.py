"""CIRCO and files in MMEB's layout: queries and candidates of texts, pictures, or both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core import UserError, parse_json, read_json
from rungwise.data.files import opened_parquet, read_lines
from rungwise.evaluation.benchmarks._questions import NO_PICTURE, UNUSABLE, Gathered

ASKED = ("qry_text", "qry_img_path", "tgt_text", "tgt_img_path")
"""Names in an entry of MMEB."""
_PLACEHOLDER = re.compile(r"<\|image_\d{1,3}\|>\n?")
_PICTURES = "unlabeled2017"
_INFO = "image_info_unlabeled2017.json"


def read_circo(found: Gathered, paths: Sequence[Path]) -> None:
    """A reference picture with a text, over a gallery of COCO's unlabeled pictures (Baldrati et al. 2023).

    The reference stays in the gallery, as in the authors' program.
    """
    path = next((one for one in paths if one.stem == "val"), paths[0])
    entries = read_json(path)
    if not isinstance(entries, list):
        raise UserError(f"{path}: is no list of queries; download CIRCO's annotations again")
    if entries and not any(isinstance(one, dict) and one.get("gt_img_ids") for one in entries):
        raise UserError(
            f"{path}: holds no answers, as CIRCO's test split; measure val.json here, and give the rankings of the test"
            " split to the authors' server"
        )
    if any(one.stem == "test" for one in paths) and path.stem == "val":
        found.warnings.append("val.json is measured; test.json has no answers, and the authors' server judges it")
    places = _gallery(found)
    gallery = np.array([found.item(picture=one) for one in places.values()], dtype=np.int32)
    position = {number: at for at, number in enumerate(places)}
    for at, entry in enumerate(entries):
        where = f"{path.name}, entry {at + 1}"
        try:
            if not isinstance(entry, dict):
                raise ValueError("is no object")
            lacking = [name for name in ("reference_img_id", "relative_caption", "gt_img_ids") if name not in entry]
            if lacking:
                raise ValueError(f"no {lacking[0]!r}")
            text, right = found.text(entry["relative_caption"]), entry["gt_img_ids"]
            target = entry.get("target_img_id", right[0] if isinstance(right, list) and right else None)
            if not isinstance(right, list) or target not in right:
                raise ValueError("gt_img_ids is no list that holds target_img_id")
            numbers = [entry["reference_img_id"], target, *dict.fromkeys(one for one in right if one != target)]
            if not all(isinstance(one, int) for one in numbers):
                raise ValueError("an id of a picture is no whole number")
            if absent := [one for one in numbers if one not in places]:
                raise LookupError(f"{absent[0]:012d}: no picture of this number")
        except (ValueError, TypeError) as error:
            found.refuse(UNUSABLE, where, str(error))
            continue
        except LookupError as error:
            found.refuse(NO_PICTURE, where, str(error.args[0]))
            continue
        tags = entry.get("semantic_aspects")
        found.ask(
            str(entry.get("id", at))[:100],
            "circo",
            found.item(text, places[numbers[0]]),
            gallery,
            [position[one] for one in numbers[1:]],
            [one for one in tags if isinstance(one, str) and one.isprintable()] if isinstance(tags, list) else (),
        )


def _gallery(found: Gathered) -> dict[int, Path]:
    """The pictures of the gallery by their numbers in COCO, in ascending order; a warning where some may be missing."""
    files = found.files
    numbered = [path for path in files.pictures if path.stem.isascii() and path.stem.isdigit() and len(path.stem) < 16]
    inside = [path for path in numbered if path.parent.name == _PICTURES]
    places = {int(path.stem): files.root / path for path in sorted(inside or numbered, key=lambda path: int(path.stem))}
    info = next((path for path in files.others if path.name == _INFO), None)
    if not places:
        raise UserError(
            f"{files.root}: no pictures such as {_PICTURES}/000000000042.jpg; put or link {_PICTURES} there"
        )
    if info is None:
        found.warnings.append(
            f"the gallery is the {len(places):,} pictures that are there; {_INFO} is not, to count them"
        )
        return places
    content = read_json(files.root / info)
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list) or not all(
        isinstance(one, dict) and isinstance(one.get("id"), int) for one in images
    ):
        raise UserError(f"{files.root / info}: has no list images with an id each; download it again")
    wanted = {one["id"] for one in images}
    if lacking := wanted - places.keys():
        found.warnings.append(
            f"{len(lacking):,} of {len(wanted):,} pictures of the gallery are missing: it is easier so"
        )
    return {number: place for number, place in places.items() if number in wanted}


def read_mmeb(found: Gathered, paths: Sequence[Path]) -> None:
    """Queries with their own candidates, the first of which is right, in the layout of MMEB (Jiang et al. 2024)."""
    removed = 0
    for path in paths:
        folder = path.relative_to(found.files.root).parts[:-1]
        group = folder[0] if folder else path.stem
        for where, entry in _rows(path):
            try:
                query, cut = _item(found, entry.get("qry_text"), entry.get("qry_img_path"))
                texts, pictures = _lists(entry)
                told = [_item(found, *one) for one in zip(texts, pictures, strict=True)]
                removed += cut + sum(count for _, count in told)
                candidates = [one for one, _ in told]
                right = [at for at, one in enumerate(candidates) if one == candidates[0]]
                if len(right) == len(candidates):
                    raise ValueError("no candidate is wrong")
            except ValueError as error:
                found.refuse(UNUSABLE, where, str(error))
                continue
            except LookupError as error:
                found.refuse(NO_PICTURE, where, str(error.args[0]))
                continue
            found.ask(where, group, query, candidates, right)
    if removed:
        found.warnings.append(f"{removed:,} placeholders such as <|image_1|> were taken out of texts")


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix == ".parquet":
        with opened_parquet(path) as file:
            for number, row in enumerate(file.rows([name for name in ASKED if name in file.schema.names])):
                yield f"{path.name}, row {number}", row
        return
    for number, line in read_lines(path):
        where = f"{path.name}, line {number}"
        entry = parse_json(line, where)
        yield where, entry if isinstance(entry, dict) else {}


def _lists(entry: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Texts and pictures of the candidates, as many of each."""
    texts, pictures = entry.get("tgt_text"), entry.get("tgt_img_path")
    if not isinstance(texts, list) and not isinstance(pictures, list):
        raise ValueError("no list 'tgt_text' or 'tgt_img_path'")
    count = len(texts if isinstance(texts, list) else pictures or [])
    texts = texts if isinstance(texts, list) else [None] * count
    pictures = pictures if isinstance(pictures, list) and pictures else [None] * count
    if not count or len(texts) != len(pictures):
        raise ValueError(f"{len(texts)} texts and {len(pictures)} pictures of candidates")
    return texts, pictures


def _item(found: Gathered, text: object, picture: object) -> tuple[int, int]:
    """Position of an item, and the number of placeholders that were taken out of its text."""
    if not isinstance(text, str | None) or not isinstance(picture, str | None):
        raise ValueError("a text, or a picture's path, is no text")
    bare, cut = _PLACEHOLDER.subn("", text or "")
    own = found.text(bare) if bare.strip() else ""
    if not own and not picture:
        raise ValueError("neither text nor picture")
    return found.item(own, found.named(picture) if picture else None), cut
