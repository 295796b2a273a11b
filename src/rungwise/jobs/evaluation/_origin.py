"""What a report says of the evaluation that it comes from: the model, the files as they were given, the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from rungwise.core.output import one_line, short
from rungwise.core.text import first_sentence
from rungwise.evaluation.report import ReportOrigin
from rungwise.jobs.evaluation._inputs import ScoredInputs
from rungwise.jobs.evaluation._options import Evaluate

_FILES = {
    "data": "data and captions",
    "image_embeddings": "vectors of images",
    "text_embeddings": "vectors of captions",
    "similarity": "similarities",
    "ranked_lists": "ranked lists",
    "image_of_caption": "image of each caption",
    "relevance": "degrees of relevance",
    "positives": "judgements",
    "calibration": "calibration",
    "rerank": "model that reranks",
    "beside": "model beside",
}
"""Words for what options name, in the order of the report."""

_LONGEST = 2000
"""Largest number of letters of a command that is shown."""


def origin_of(given: Evaluate, scored: ScoredInputs, command: str = "") -> ReportOrigin:
    """What a report says of where it comes from.

    Args:
        given: The options as they were given.
        scored: What was read for them.
        command: The command as it was typed; empty for a call in Python.
    """
    model = "" if given.model is None or given.has_scores else _said(given.model)
    return ReportOrigin(
        model=model,
        kind=_kind(scored),
        files=dict(_files(given, scored)),
        command=one_line(command or _call(given), _LONGEST),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _files(given: Evaluate, scored: ScoredInputs) -> Iterator[tuple[str, str]]:
    for name, words in _FILES.items():
        value = getattr(given, name)
        if name == "data" and given.has_scores and value is None:
            value = given.model  # DATA stands in its place
        if name == "relevance" and value is None and scored.relevance is not None:
            value = "those of the data"
        if value is None or (isinstance(value, tuple) and not value):
            continue
        said = ", ".join(map(_said, value)) if isinstance(value, tuple) else _said(value)
        if name == "data":
            said += f", read as {scored.data.layout}" if scored.data.layout else ""
            said += "" if scored.data.has_pictures else "; pictures were not read"
        if name == "relevance" and hasattr(scored.relevance, "title"):
            said += f": {scored.relevance.title()}"
        yield words, said


def _kind(scored: ScoredInputs) -> str:
    """What the model is, in a few words: its kind, the docstring of its class, the width of its vectors."""
    model: Any = scored.orders
    if model is None:
        return "not known here: scores were given, not the model that made them"
    about = first_sentence(type(model).__doc__).removesuffix(".")
    dimension = getattr(model, "dimension", None)
    parts = [f"kind {model.kind}" if model.kind else type(model).__name__, about]
    parts.append(f"vectors of {dimension:,} numbers" if isinstance(dimension, int) else "")
    return "; ".join(filter(None, parts))


def _call(given: Evaluate) -> str:
    """The call in Python with the options that are not the usual ones; what is in memory is named by its type."""
    usual = type(given)()
    options = [
        f"{one.name}={_written(getattr(given, one.name))}"
        for one in fields(given)
        if one.name != "quiet" and not _is_usual(getattr(given, one.name), getattr(usual, one.name))
    ]
    return f"rungwise.evaluate({', '.join(options)})"


def _is_usual(value: Any, usual: Any) -> bool:
    return value is usual or (
        type(value) is type(usual) and isinstance(value, str | int | float | tuple) and value == usual
    )


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return _said(value) if _in_memory(value) else repr(str(value) if hasattr(value, "__fspath__") else value)


def _said(value: Any) -> str:
    """A place as it was given; the type, and the shape of an array, of what is in memory."""
    if not _in_memory(value):
        return str(value)
    if hasattr(value, "shape"):
        return f"<{type(value).__name__} in memory, {' x '.join(map(str, value.shape))}>"
    return f"<{type(value).__name__} in memory>" if not hasattr(value, "k") else short(value)


def _in_memory(value: Any) -> bool:
    return not (isinstance(value, str | bool | int | float) or hasattr(value, "__fspath__"))
