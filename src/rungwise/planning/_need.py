"""Requirements of a plan: the number of pictures and searches, and the machines."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from rungwise.core import UserError

StoreKind = Literal["exact", "lance", "milvus"]
Wished = Literal["auto", "exact", "lance", "milvus"]
"""Store that a user asks for; ``auto`` leaves the choice to the numbers."""
Device = Literal["cpu", "cuda", "t4", "l4", "a100", "h100", "h200"]
"""Device of a model; ``cuda`` stands for any GPU."""

MOST_PICTURES = 10**12
MOST_DIMENSIONS = 1 << 16
USUAL_DIMENSIONS = 512
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kmb]?)", re.IGNORECASE)
_PREFIX = re.compile(r"(?:hf|open_clip|st):")
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}


@dataclass(frozen=True)
class Need:
    """What is to be searched, and on what.

    Attributes:
        pictures: How many. Such as 10k, 1M or 5B.
        dimension: Numbers of a vector. Default 512, or those of the model that is measured.
        queries: Searches a second.
        captions: Captions of a picture; each has a vector too.
        store: Which store is reckoned with; auto takes the one that the numbers speak for.
        half: Vectors in half precision, in LanceDB's store.
        thumbnails: Small copies of pictures are kept.
        model: What encodes: a folder of a model, whose size is read from its files, or a name whose rates are known
            (siglip2-base-patch32-256, which is the default, quick, resnet50). With --measure any model.
        device: Where pictures are encoded, beside the processor.
        pictures_per_second: Of one machine that encodes, if you know it.
        memory: Gigabytes of one machine.
        within: Hours in which all pictures are to be encoded.

    >>> Need(1_000_000, captions=5).rows
    6000000
    >>> Need(0)
    Traceback (most recent call last):
    rungwise.core.UserError: pictures: there must be at least 1 and at most 1,000,000,000,000, got 0
    """

    pictures: int
    dimension: int | None = None
    queries: float = 10.0
    captions: float = 0.0
    store: Wished = "auto"
    half: bool = False
    thumbnails: bool = False
    model: str | None = None
    device: Device = "cpu"
    pictures_per_second: float | None = None
    memory: float = 64.0
    within: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.pictures <= MOST_PICTURES:
            raise UserError(f"pictures: there must be at least 1 and at most {MOST_PICTURES:,}, got {self.pictures:,}")
        if not 1 <= self.numbers <= MOST_DIMENSIONS:
            raise UserError(f"dimension: must lie between 1 and {MOST_DIMENSIONS:,}, got {self.numbers:,}")
        if self.store not in get_args(Wished):
            raise UserError(f"store: there is no {self.store!r}; there are {', '.join(get_args(Wished))}")
        if self.half and self.store not in ("auto", "lance"):
            raise UserError(f"half: the store {self.store} keeps full precision; choose the store lance for half of it")
        if not 0 <= self.captions <= 10_000:
            raise UserError(f"captions: a picture has between 0 and 10,000, got {self.captions:g}")
        for name in ("queries", "memory", "pictures_per_second", "within"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UserError(f"{name.replace('_', ' ')}: must be above 0, got {value:g}")

    @property
    def numbers(self) -> int:
        """Dimension D of a vector."""
        return USUAL_DIMENSIONS if self.dimension is None else self.dimension

    @property
    def rows(self) -> int:
        """Number R of pictures and captions."""
        return self.pictures + round(self.pictures * self.captions)

    @property
    def model_name(self) -> str:
        """Name of the model without hub and owner; empty without a model."""
        return (self.model or "").rstrip("/").rpartition("/")[2]

    @property
    def model_folder(self) -> Path | None:
        """Folder of the model on this machine; None for a name."""
        name = self.model or ""
        for place in (name, _PREFIX.sub("", name)):
            if place and Path(place).is_dir():
                return Path(place)
        return None

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        said = {one.name: getattr(self, one.name) for one in fields(Need)}
        return said | {"dimension": self.numbers, "model": self.model_name}


def parse_count(text: str) -> int:
    """Parse a number as people write it: ``10k``, ``1M``, ``5B``, ``1,000,000``; UserError for anything else.

    >>> parse_count("10k"), parse_count("1.5M"), parse_count("5B"), parse_count("1,000,000")
    (10000, 1500000, 5000000000, 1000000)
    >>> parse_count("many")
    Traceback (most recent call last):
    rungwise.core.UserError: 'many' is no number of pictures; write it as 1000000, 10k, 1M or 5B
    """
    found = _COUNT.fullmatch(re.sub(r"[,_\s]", "", text))
    if found is not None and len(found[1]) <= 20:
        number = float(found[1]) * _TIMES[found[2].lower()]
        if number == int(number):
            return int(number)
    raise UserError(f"{text!r} is no number of pictures; write it as 1000000, 10k, 1M or 5B")
