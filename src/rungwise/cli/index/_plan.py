"""``rungwise plan``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.cli.frame import parse
from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import printable
from rungwise.core.text import idle_beside, idle_where, idle_without
from rungwise.jobs import ADVANCED, messages_apart, say
from rungwise.planning import (
    MOST_PICTURES,
    STORED,
    MeasuredSample,
    Need,
    Rates,
    Wished,
    measured,
    parse_count,
    plan,
    plan_text,
)

_EXAMPLES = (
    "rungwise plan 1M",
    "rungwise plan 100M --queries 50 --memory 128 --within 24",
    "rungwise plan 1M --measure --model hf:FOLDER",
    "rungwise plan 200k --measure --stored photos.index",
)


_COUNT = PrimitiveConstructorSpec(
    nargs=1,
    metavar="N",
    instance_from_str=lambda words: parse_count(words[0]),
    is_instance=lambda value: isinstance(value, int),
    str_from_instance=lambda value: [str(value)],
)
"""Parser of numbers of pictures as people write them."""


@dataclass(frozen=True)
class PlanCollection(Need):
    """What a collection takes: disk, memory, hours, machines, and the store for it.

    Every number stands beside its formula, and beside the rates that it is reckoned from: what was measured, with how
    much, on which machine. What was not measured as it is asked for is marked.

    Attributes:
        measure: Measure this machine at the size of the plan, and reckon with what it does. That many rows are drawn,
            written and searched, up to --measured-rows; with --stored an index is searched that is there.
        stored: Index that --measure searches, with its model.
        measured_rows: Most rows that --measure draws. 100,000 take some minutes and 0.7 GB of disk.
        folder: Where --measure writes its rows, such as the disk for the index.
        json: Print JSON.
    """

    pictures: Annotated[tyro.conf.Positional[int], _COUNT, tyro.conf.arg(metavar="N")]
    store: Annotated[Wished, tyro.conf.arg(metavar="{auto,exact,lance,milvus}")] = "auto"
    measure: bool = False
    stored: Path | None = None
    measured_rows: int = field(default=MeasuredSample.rows, metadata=ADVANCED)
    folder: Path | None = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)
    json: bool = False

    IDLE = (
        idle_without("stored measured_rows folder", "measure"),
        idle_beside("measured_rows", "stored", remedy="leave one of them out: an index is searched as it is"),
        idle_where(
            "device",
            lambda asked: asked.pictures_per_second is not None and not asked.measure,
            "beside {pictures_per_second}, which says how fast pictures are encoded",
        ),
    )


def main(arguments: list[str]) -> int:
    """Plan, and print the plan."""
    asked = parse(PlanCollection, arguments, "rungwise plan", examples=_EXAMPLES)
    if not 1 <= asked.measured_rows <= MOST_PICTURES:
        raise UserError(f"--measured-rows {asked.measured_rows}: must be at least 1")
    with messages_apart(asked.json):
        need, rates = _measured(asked) if asked.measure else (asked, STORED)
    planned = plan(need, rates)
    if asked.json:
        print(json.dumps(planned.plain(), indent=1, allow_nan=False))
    else:
        say(printable(plan_text(planned)))
    return 0


def _measured(asked: PlanCollection) -> tuple[Need, Rates]:
    """The need with the dimension of the model, and the rates of this machine."""
    sample = MeasuredSample(rows=asked.measured_rows)
    if asked.model is None and asked.stored is None:
        if asked.device != "cpu":
            raise UserError("--device says where --measure encodes, which needs a model; name it: --model")
        return asked, measured(STORED, asked, folder=asked.folder, sample=sample, say=say)
    from rungwise.jobs import read_dual_encoder, read_model_of

    device = "cpu" if asked.device == "cpu" else "cuda"
    stored = None
    if asked.stored is not None:
        from rungwise.index import Index

        stored = Index.open(asked.stored)
        model = read_model_of(stored, asked.model, device, altered=False)
        asked = replace(asked, model=asked.model or stored.manifest.model_location)
    else:
        assert asked.model is not None
        model = read_dual_encoder(asked.model, device, altered=False)
    if asked.dimension is not None and asked.dimension != model.dimension:
        raise UserError(f"--dimension {asked.dimension}: vectors of {asked.model} have {model.dimension} numbers")
    asked = replace(asked, dimension=model.dimension)
    return asked, measured(STORED, asked, model=model, stored=stored, folder=asked.folder, sample=sample, say=say)
