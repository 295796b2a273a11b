"""Small folders in the layouts of benchmarks, of plain pictures that the colour model knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.colour_model import COLOURS, picture_bytes

Entry = Mapping[str, Any]


def draw(path: Path, colour: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture_bytes(COLOURS[colour]))


def winoground(root: Path, *, parquet: bool = False) -> Path:
    """Three examples: all right, captions exchanged, and both captions without a colour, so that all scores tie."""
    colours = [("red", "green"), ("blue", "yellow"), ("red", "blue")]
    captions = [("a red thing", "a green thing"), ("a yellow thing", "a blue thing"), ("some thing", "a thing")]
    rows: list[dict[str, Any]] = []
    for number, (pair, texts) in enumerate(zip(colours, captions, strict=True)):
        names = [f"ex_{number}_img_{place}" for place in (0, 1)]
        rows.append(
            {"id": number, "image_0": names[0], "image_1": names[1], "caption_0": texts[0], "caption_1": texts[1],
             "tag": "Noun", "secondary_tag": "", "collapsed_tag": ("Object", "Relation")[number % 2],
             "num_main_preds": 1}
        )  # fmt: skip
        if not parquet:
            for name, colour in zip(names, pair, strict=True):
                draw(root / "images" / f"{name}.png", colour)
    root.mkdir(parents=True, exist_ok=True)
    if not parquet:
        (root / "examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return root
    import pyarrow as pa
    import pyarrow.parquet as pq

    for row, pair in zip(rows, colours, strict=True):
        for place, colour in enumerate(pair):
            row[f"image_{place}"] = {"bytes": picture_bytes(COLOURS[colour]), "path": f"{colour}.png"}
    (root / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), root / "data" / "test-00000-of-00001.parquet", row_group_size=2)
    return root


def sugarcrepe(root: Path) -> Path:
    """Three categories: 2 of 2, 1 of 2 and a tie."""
    files: Mapping[str, Sequence[tuple[str, str, str]]] = {
        "add_att": [("red", "a red car", "a green car"), ("blue", "a blue car", "a red car")],
        "add_obj": [("red", "a red cat", "a blue cat"), ("green", "a blue cat", "a green cat")],
        "swap_att": [("red", "some cat", "one cat")],
    }
    for category, entries in files.items():
        told = {}
        for number, (colour, caption, negative) in enumerate(entries):
            name = f"{len(category)}0000{number}.jpg"
            draw(root / "val2017" / f"{colour}-{name}", colour)
            told[str(number)] = {"filename": f"{colour}-{name}", "caption": caption, "negative_caption": negative}
        (root / f"{category}.json").write_text(json.dumps(told))
    return root


def circo(root: Path) -> Path:
    """Two queries over a gallery of six pictures, and a test split without answers."""
    gallery = {11: "red", 12: "green", 13: "blue", 14: "yellow", 15: "red", 16: "blue"}
    for number, colour in gallery.items():
        draw(root / "COCO2017_unlabeled/unlabeled2017" / f"{number:012d}.jpg", colour)
    info = root / "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json"
    info.parent.mkdir()
    info.write_text(json.dumps({"images": [{"id": number, "file_name": f"{number:012d}.jpg"} for number in gallery]}))
    asked = [
        {"reference_img_id": 11, "target_img_id": 13, "relative_caption": "is blue", "shared_concept": "a square",
         "gt_img_ids": [13, 16], "id": 0, "semantic_aspects": ["cardinality", "viewpoint"]},
        {"reference_img_id": 12, "target_img_id": 14, "relative_caption": "is red", "shared_concept": "a square",
         "gt_img_ids": [14, 15], "id": 1, "semantic_aspects": ["viewpoint"]},
    ]  # fmt: skip
    hidden = [{"reference_img_id": 12, "relative_caption": "is red", "shared_concept": "a square", "id": 0}]
    (root / "annotations").mkdir()
    (root / "annotations/val.json").write_text(json.dumps(asked))
    (root / "annotations/test.json").write_text(json.dumps(hidden))
    return root


def mmeb(root: Path) -> Path:
    """A data set in JSONL (pictures to texts) and one in Parquet (a text with a picture to pictures)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for colour in ("red", "green", "blue", "yellow"):
        draw(root / "images" / f"{colour}.png", colour)
    classes = [
        {
            "qry_text": "<|image_1|>\n",
            "qry_img_path": f"images/{colour}.png",
            "tgt_text": texts,
            "tgt_img_path": [""] * 3,
        }
        for colour, texts in (("red", ["red", "green", "red"]), ("green", ["blue", "green", "yellow"]))
    ]
    (root / "Colours.jsonl").write_text("".join(json.dumps(one) + "\n" for one in classes))
    (root / "Changed").mkdir()
    changed = {"qry_text": "<|image_1|>\nblue", "qry_img_path": "images/red.png",
               "tgt_text": ["", ""], "tgt_img_path": ["images/blue.png", "images/yellow.png"]}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([changed]), root / "Changed/test-00000-of-00001.parquet")
    return root


FOLDERS = {"winoground": winoground, "sugarcrepe": sugarcrepe, "circo": circo, "mmeb": mmeb}
