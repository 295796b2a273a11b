"""``rungwise plan``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import tyro

from rungwise.cli.parsing import ADVANCED, parse
from rungwise.cli.terminal import messages_apart, say
from rungwise.core.errors import UserError
from rungwise.core.folders import WRITTEN_FOLDER
from rungwise.core.printable import printable

if TYPE_CHECKING:
    from rungwise.planning import Need, Rates
    from rungwise.planning.need import Wished

_EXAMPLES = (
    "rungwise plan 1M",
    "rungwise plan 100M --queries 50 --memory 128 --within 24",
    "rungwise plan 1M --measure --model hf:FOLDER",
)


@dataclass
class PlanCollection:
    """What a collection takes: disk, memory, hours, machines, and the store for it.

    Every number stands beside its formula, and beside the rates that it is reckoned from: what was measured, with how
    much, on which machine. What was not measured as it is asked for is marked.

    Attributes:
        pictures: How many. Such as 10k, 1M or 5B.
        dimension: Numbers of a vector. Default 512, or those of the model that is measured.
        queries: Searches a second.
        captions: Captions of a picture; each has a vector too.
        store: Which store is reckoned with; auto takes the one that the numbers speak for.
        half: Vectors in half precision, in LanceDB's store.
        thumbnails: Small copies of pictures are kept.
        model: What encodes: a name whose rate is known (siglip2-base-patch32-256, quick, resnet50). With --measure
            any model.
        device: Where pictures are encoded, beside the processor.
        pictures_per_second: Of one machine that encodes, if you know it.
        memory: Gigabytes of one machine.
        within: Hours in which all pictures are to be encoded.
        measure: Measure this machine for some seconds, and reckon with what it does.
        folder: Where --measure writes its rows, such as the disk for the index.
        json: Print JSON.
    """

    pictures: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="N")]
    dimension: int | None = None
    queries: float = 10.0
    captions: float = 0.0
    store: Annotated[str, tyro.conf.arg(metavar="{auto,exact,lance,milvus}")] = "auto"
    half: bool = False
    thumbnails: bool = False
    model: str | None = None
    device: Literal["cpu", "cuda", "t4", "l4", "a100", "h100", "h200"] = "cpu"
    pictures_per_second: float | None = None
    memory: float = 64.0
    within: float | None = None
    measure: bool = False
    folder: Path | None = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)
    json: bool = False


def main(arguments: list[str]) -> int:
    """Reckon, and print."""
    asked = parse(PlanCollection, arguments, "rungwise plan", examples=_EXAMPLES)
    from rungwise.planning import STORED, Need, parse_count, plan, plan_text

    if asked.folder is not None and not asked.measure:
        raise UserError("--folder says where --measure writes; give both or neither")
    need = Need(
        parse_count(asked.pictures),
        512 if asked.dimension is None else asked.dimension,
        asked.queries,
        asked.captions,
        cast("Wished", asked.store),
        asked.half,
        asked.thumbnails,
        (asked.model or "").rpartition("/")[2],
        asked.device,
        asked.pictures_per_second,
        asked.memory,
        asked.within,
    )
    with messages_apart(asked.json):
        need, rates = _measured(asked, need) if asked.measure else (need, STORED)
    planned = plan(need, rates)
    if asked.json:
        print(json.dumps(planned.plain(), indent=1, allow_nan=False))
    else:
        say(printable(plan_text(planned)))
    return 0


def _measured(asked: PlanCollection, need: Need) -> tuple[Need, Rates]:
    """The need with the dimension of the model, and the rates of this machine."""
    from rungwise.planning import STORED, measured

    if asked.model is None:
        if asked.device != "cpu":
            raise UserError("--device says where --measure encodes, which needs a model; name it: --model")
        return need, measured(STORED, need.dimension, folder=asked.folder, say=say)
    from rungwise.cli.models import read_dual_encoder

    model = read_dual_encoder(asked.model, "cpu" if asked.device == "cpu" else "cuda", altered=False)
    if asked.dimension is not None and asked.dimension != model.dimension:
        raise UserError(f"--dimension {asked.dimension}: vectors of {asked.model} have {model.dimension} numbers")
    need = replace(need, dimension=model.dimension)
    return need, measured(
        STORED, need.dimension, model=model, name=need.model, device=need.device, folder=asked.folder, say=say
    )
