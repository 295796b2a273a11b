"""Options of ``rungwise calibrate``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.frame import ADVANCED, AlteredModel, Cache, Device, JoinRestval, LeastCosine, MemberKey, Precision
from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER


@dataclass
class Calibrate:
    """Learn where relevance ends, so that a search shows what fits and says where noise begins.

    Give MODEL DATA, and captions with degrees of relevance teach it. Or give an INDEX alone: then the grades that
    people gave on its page do, and where these are too few, its own captions. It is kept with the model, or in the
    index, which a search prefers.

    Attributes:
        model: Folder or name of a model, or the folder of an index.
        data: Folder or caption file, with pictures. Best one that the model was not trained on.
        relevance: Degrees of this split, or the name of a source. Degrees are what "rungwise relevance" wrote; a
            source is such as bi-encoder. Default: tfidf, by the words of the captions; scenes have their own. Class
            labels, where they chose the model.
        relevant_from: The least degree that counts as relevant. Default by the source, which is said.
        split: The pictures and captions to learn from; "all" takes every one.
        index: Keep it in this index.
        out: Keep it in this JSON file.
        queries: Captions to learn from, at most.
    """

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL|INDEX")]
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[DATA]")] = None
    relevance: str | None = None
    relevant_from: float | None = None
    split: str = "val"
    index: Path | None = None
    out: Path | None = field(default=None, metadata=WRITTEN_FILE)
    queries: int = field(default=1500, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    join_restval: JoinRestval = field(default=False, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    precision: Precision = field(default="float32", metadata=ADVANCED)
    least_cosine: LeastCosine = field(default=0.999, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)
