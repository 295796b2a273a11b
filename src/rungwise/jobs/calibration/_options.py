"""Options of a calibration."""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, field
from typing import Annotated, Any

import tyro

from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER
from rungwise.core.output import short_repr
from rungwise.core.text import IdleCase, idle_where, idle_without
from rungwise.jobs._job import JobOptions
from rungwise.jobs._options import (
    ADVANCED,
    AlteredModel,
    Cache,
    DataOrNone,
    Device,
    JoinRestval,
    Layout,
    LeastCosine,
    MemberKey,
    OneModel,
    PathOrNone,
    Precision,
    given,
)

_OF_LEARNING = "query_file relevance relevant_from out queries"
_OF_DATA = "split layout key join_restval precision least_cosine cache"


@dataclass
class Calibrate(JobOptions):
    """Learn where relevance ends, so that a search shows what fits and says where noise begins.

    Queries as people type them are made of captions and columns: of DATA, or of the INDEX itself. Where people graded
    hits on the page of the INDEX, their grades teach. What is learnt is compared with what judges now, on queries that
    it did not see, and takes its place only where no kind of query loses. It is kept with the model, or in the index,
    which a search prefers.

    Attributes:
        model: Folder or name of a model, or the folder of an index.
        data: Folder or caption file, with pictures. Best one that the model was not trained on.
        query_file: Queries of your own besides, one a line. Or JSON lines: {"query": "...", "relevant": ["id", ...]}.
        show: Print how the kept calibration did. Its numbers for each kind of query; nothing is learnt.
        relevance: Captions as queries, with these degrees. What "rungwise relevance" wrote, or the name of a source,
            such as bi-encoder.
        relevant_from: Least degree of --relevance that counts. Default by the source, which is said.
        split: The pictures and captions to learn from; "all" takes every one.
        index: Keep it in this index.
        out: Keep it in this JSON file, whatever the comparison says.
        queries: Queries to learn from, about.
    """

    model: Annotated[tyro.conf.Positional[OneModel], tyro.conf.arg(metavar="MODEL|INDEX")] = given(MISSING)
    data: Annotated[tyro.conf.Positional[DataOrNone], tyro.conf.arg(metavar="[DATA]")] = given(None)
    query_file: PathOrNone = given(None)
    show: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    relevance: str | None = None
    relevant_from: float | None = None
    split: str = "val"
    index: PathOrNone = given(None)
    out: PathOrNone = given(None, WRITTEN_FILE)
    queries: int = field(default=1800, metadata=ADVANCED)
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    join_restval: JoinRestval = field(default=False, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    precision: Precision = field(default="float32", metadata=ADVANCED)
    least_cosine: LeastCosine = field(default=0.999, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)

    IDLE = (
        idle_where(
            f"{_OF_LEARNING} {_OF_DATA} device altered_model",
            lambda asked: asked.show,
            "with {show}, which learns nothing",
        ),
        idle_without("relevant_from", "relevance"),
        idle_where(_OF_DATA, lambda asked: asked.data is None, "without DATA", "give both, or leave {} out"),
        idle_where(
            "least_cosine",
            lambda asked: asked.precision != "auto",
            "without {precision} auto",
            "give both, or leave {} out",
        ),
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self.model, self.index = _folder_of(self.model), _folder_of(self.index)
        super().__post_init__()


def of_grades() -> IdleCase:
    """The case that people graded enough of an index, so that their grades alone teach."""
    return idle_where(
        "relevance relevant_from queries query_file",
        lambda _: True,
        "without DATA, since people graded this index and their grades teach",
        "leave it out, or give DATA",
    )


def _folder_of(given: Any) -> Any:
    """The folder of an opened index in its place; anything else as it is."""
    if given is None or isinstance(given, str | os.PathLike):
        return given
    from rungwise.index import Index
    from rungwise.index.stores import named

    return named(given.folder) if isinstance(given, Index) and given.folder is not None else given
