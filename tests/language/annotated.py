"""Captions annotated by hand with the tuples of their scene graphs; annotated_captions.md says how."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REAL = Path(__file__).with_name("annotated_captions.jsonl")
WRITTEN = Path(__file__).with_name("written_captions.jsonl")
HALVES = ("dev", "test")


@dataclass(frozen=True)
class Annotated:
    """A caption with its tuples.

    Attributes:
        text: The caption as its source has it.
        tuples: (object,), (object, attribute) and (subject, relation, object), lemmas in lower case.
        half: ``dev``, which a parser may be improved by, or ``test``, which it is judged by.
        source: ``coco5k``, ``flickr30k`` or ``written``.
    """

    text: str
    tuples: frozenset[tuple[str, ...]]
    half: str
    source: str


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of annotations, one JSON object each."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def text_hash(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def published_texts(real_data: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """All captions of both collections: ((source, id), text)."""
    with (real_data / "coco5k/captions.tsv").open(encoding="utf-8", newline="\n") as lines:
        next(lines)  # the names of the columns
        for line in lines:
            sentence, _, text = line.rstrip("\n").split("\t")
            yield ("coco5k", sentence), text
    packed = real_data / "flickr30k/captions.en.token.gz"
    with gzip.open(packed, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            name, text = line.rstrip("\n").split("\t")
            yield ("flickr30k", name), text


def annotated(real_data: Path) -> list[Annotated]:
    """The 200 real captions, in the order of the file.

    Args:
        real_data: The folder that ``RUNGWISE_DATA`` names, where the texts stand.

    Raises:
        AssertionError: An id is missing there, or its text is another one than the one that was annotated.
    """
    texts = dict(published_texts(real_data))
    found = []
    for row in rows(REAL):
        key = (row["source"], row["id"])
        assert key in texts, f"{REAL.name}: {key} is not in {real_data}"
        assert text_hash(texts[key]) == row["text_hash"], f"{REAL.name}: {key} has another text in {real_data}"
        found.append(Annotated(texts[key], frozenset(map(tuple, row["tuples"])), row["half"], row["source"]))
    return found


def written() -> list[Annotated]:
    """The 60 captions written for these tests, in the order of the file; halves alternate."""
    return [
        Annotated(row["text"], frozenset(map(tuple, row["tuples"])), HALVES[number % 2], "written")
        for number, row in enumerate(rows(WRITTEN))
    ]
