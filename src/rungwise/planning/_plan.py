"""Plans: from a need to disk, memory, hours, machines and a store, each with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.planning._growth import growth
from rungwise.planning._model_size import ModelSize, model_size
from rungwise.planning._need import Need, StoreKind
from rungwise.planning._quantity import Quantity
from rungwise.planning._rates import DEFAULT_ENCODER, STORED, Rate, Rates, encoder, encoders
from rungwise.planning._stores import SLOWEST_MS, StoreCosts, costs_of

_DEVICES = {"cpu": "processor", "cuda": "GPU"}


@dataclass(frozen=True)
class Plan:
    """Costs of a collection.

    Attributes:
        need: Need that the plan is for.
        store: The recommended store, or the one that was asked for.
        why: Reason for the store, in one line.
        doubts: Objections to a store that was asked for.
        quantities: Quantities of this store, and of encoding.
        compared: Costs of each store.
        model: Model with which the plan reckons, and where that was not asked for, that it is the default.
    """

    need: Need
    store: StoreKind
    why: str
    doubts: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    compared: tuple[StoreCosts, ...]
    model: str

    __repr__ = short_repr

    def __getitem__(self, name: str) -> Quantity:
        """The quantity with this name."""
        return next(one for one in self.quantities if one.name == name)

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stores = [
            {
                "store": one.kind,
                "disk": one.disk.value,
                "memory": one.memory.value,
                "one search": one.search.value,
                "building": one.build.value,
                "machines": one.machines.value,
                "wrong": list(one.wrong),
            }
            for one in self.compared
        ]
        return {
            "need": self.need.plain(),
            "store": self.store,
            "why": self.why,
            "model": self.model,
            "doubts": list(self.doubts),
            "quantities": [one.plain() for one in self.quantities],
            "compared": stores,
        }


def plan(need: Need, rates: Rates = STORED) -> Plan:
    """Plan a collection; UserError for a model whose rate is not known.

    >>> small, large = plan(Need(10_000)), plan(Need(100_000_000))
    >>> small.store, large.store
    ('lance', 'milvus')
    >>> small["disk"].said
    '54 MB'
    >>> [doubt for doubt in large["disk"].doubts if doubt.startswith("extrapolated")]
    ['extrapolated from 300 k rows']
    """
    compared = tuple(costs_of(kind, need, rates) for kind in get_args(StoreKind))
    costs = {one.kind: one for one in compared}
    lance = costs["lance"]
    if need.store != "auto":
        chosen, why = costs[need.store], "it was asked for"
    elif lance.wrong:
        chosen, why = costs["milvus"], f"in LanceDB's store on one machine {'; '.join(lance.wrong)}"
    else:
        chosen, why = (
            lance,
            f"one machine holds it, and one search takes {lance.search.said} ({SLOWEST_MS:g} ms would do)",
        )
    model = model_size(need, rates)
    memory = (chosen.memory, *_serving_beside_milvus(chosen, model, need, rates), _indexing(model, need, rates))
    serve = "machines, serve" if chosen.kind == "milvus" else "machines"
    of_server = Quantity(
        serve,
        math.ceil(need.queries / chosen.searching[-1].known),
        "machines",
        "Q / searches of a machine" + (", each with a copy" if chosen.kind != "milvus" else ""),
    )
    machines = (chosen.machines, of_server) if chosen.kind == "milvus" else (of_server,)
    quantities = (
        chosen.disk,
        *memory,
        *_encoding(need, rates),
        chosen.build,
        _update(need, rates),
        chosen.search,
        *chosen.searching,
        *machines,
    )
    return Plan(need, chosen.kind, why, chosen.wrong, quantities, compared, model.said)


def _serving_beside_milvus(costs: StoreCosts, model: ModelSize, need: Need, rates: Rates) -> tuple[Quantity, ...]:
    """Memory of one server, where the rows lie elsewhere."""
    if costs.kind != "milvus":
        return ()
    used = rates[f"{model.kind}_process"], model.weights, rates[f"{model.kind}_weights"]
    value = used[0].value + used[1].value * used[2].value
    return (Quantity("memory, serving", value, "bytes", "{} + {} x {}", used),)


def _update(need: Need, rates: Rates) -> Quantity:
    of = growth(rates, "update", need.rows)
    return Quantity("update, nothing new", of.value / 3600, "hours", of.formula, of.rates, need.rows)


def _encoding(need: Need, rates: Rates) -> tuple[Quantity, ...]:
    """Hours of encoding, on the processor and on the requested device, and machines for it."""
    model, known = need.model_name or DEFAULT_ENCODER, encoders(rates)
    if need.model_name and model not in known and need.pictures_per_second is None and need.model_folder is None:
        raise UserError(
            f"model: pictures a second of {model!r} are not known; measure them with --measure, give"
            f" --pictures-per-second, or take one of {', '.join(known)}"
        )
    if need.pictures_per_second is not None:
        given = Rate(
            "pictures a second of one machine", need.pictures_per_second, "pictures/s", "as you say", machine=""
        )
        hours = [_hours(need, "encoding", given)]
    else:
        hours = [
            _hours(need, f"encoding, {_DEVICES.get(device, device)}", rates.get(encoder(model, device)))
            for device in dict.fromkeys(("cpu", need.device if need.device != "cpu" else "cuda"))
        ]
    taken = hours[-1] if hours[-1].value is not None else hours[0]
    if need.within is None or taken.value is None:
        return tuple(hours)
    count, formula = math.ceil(taken.value / need.within), f"{taken.name} {taken.said} / {need.within:g} h"
    return (*hours, Quantity("machines, encoding", count, "machines", formula, (rates["sharing_encoding"],)))


def _indexing(model: ModelSize, need: Need, rates: Rates) -> Quantity:
    """Memory of the process that indexes, which holds id, path and content hash of every picture."""
    rows = growth(rates, "indexing_memory", need.rows)
    process, weights = rates[f"{model.kind}_indexing"], rates[f"{model.kind}_weights"]
    value = process.value + model.weights.value * weights.value + rows.value
    remark = ""
    if value > need.memory * 1e9 * rates["spare"].value:
        remark = "more than one of your machines has: index parts of the collection, each into an index of its own"
    used = (process, model.weights, weights, *rows.rates)
    formula = f"{{}} + {{}} x {{}} + {rows.formula}"
    return Quantity("memory, indexing", value, "bytes", formula, used, need.rows, need.numbers, remark)


def _hours(need: Need, name: str, rate: Rate | None) -> Quantity:
    if rate is None:
        remedy = "measure it there: rungwise plan N --measure --model MODEL; or give --pictures-per-second"
        return Quantity(name, None, "hours", "N / pictures a second", remark=remedy)
    return Quantity(name, need.pictures / rate.value / 3600, "hours", "N / {}", (rate,))


def title(need: Need) -> str:
    """Title of a plan, in one line.

    >>> title(Need(1_000_000, queries=50))
    'N = 1,000,000 pictures, D = 512, Q = 50 searches/s, machines of 64 GB'
    """
    plural = "" if need.captions == 1 else "s"
    captions = f" with {need.captions:g} caption{plural} each" if need.captions else ""
    return (
        f"N = {need.pictures:,} pictures{captions}, D = {need.numbers}, Q = {need.queries:g} searches/s,"
        f" machines of {need.memory:g} GB"
    )
