"""What each store would take: disk, memory, time of a search, time of building, machines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rungwise.index.lance_tuning import GRAPH_UP_TO_ROWS, HELD_BYTES
from rungwise.planning.need import Need, StoreKind
from rungwise.planning.quantity import Quantity, Unit
from rungwise.planning.rates import Rate, Rates

SLOWEST_MS = 100.0
"""A person does not notice that a search takes so long; what takes longer is better shared out over machines."""
LONGEST_BUILD = 24.0
"""Hours; an index that takes longer to make is never up to date."""
_SECONDS = 3600.0
_GB = 1e9


@dataclass(frozen=True)
class StoreCosts:
    """What one store would take.

    Attributes:
        kind: Which store.
        disk: All machines together, for one copy.
        memory: Likewise.
        search: One search, without encoding its words.
        build: Rows written and indexed, vectors at hand.
        holding: Machines for one copy.
        machines: Machines for all searches.
        wrong: Why it does not do; empty if it does.
    """

    kind: StoreKind
    disk: Quantity
    memory: Quantity
    search: Quantity
    build: Quantity
    holding: int
    machines: Quantity
    wrong: tuple[str, ...]


@dataclass(frozen=True)
class _Reckoning:
    """The need, and the rates, of one store."""

    need: Need
    rates: Rates
    vector: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "vector", self.need.dimension * 4)

    def quantity(
        self, name: str, value: float, unit: Unit, formula: str, *rates: Rate, rows: int | None = None, remark: str = ""
    ) -> Quantity:
        beyond = self.need.rows if rows is None else rows
        return Quantity(name, value, unit, formula, rates, beyond, self.need.dimension, remark)

    def facts(self, *, half: bool = False) -> tuple[str, float, list[Rate]]:
        """Formula, bytes and rates of vectors and of what is kept beside them."""
        need, rates = self.need, self.rates
        vector, size = ("2 D", self.vector // 2) if half else ("4 D", self.vector)
        formula, value, used = f"N x ({vector} + {{0}}", size + rates.facts.value, [rates.facts]
        if need.thumbnails:
            formula, value = f"{formula} + {{{len(used)}}}", value + rates.thumbnail.value
            used.append(rates.thumbnail)
        formula, value = f"{formula})", value * need.pictures
        if need.captions:
            formula += f" + {need.captions:g} N x ({vector} + {{{len(used)}}})"
            value += (need.rows - need.pictures) * (size + rates.caption.value)
            used.append(rates.caption)
        return formula, value, used

    def machines(self, search: Quantity, holding: int, process: str) -> Quantity:
        """Machines for all searches: as many copies as are needed, each on so many machines."""
        need, rates = self.need, self.rates
        assert search.value is not None
        copies = max(1, math.ceil(need.queries * search.value / 1000))
        formula = f"{copies:,} copies (Q x one search) x {holding:,} machines to hold one"
        return self.quantity(f"machines, {process}", copies * holding, "machines", formula, *search.rates, rates.spare)

    def holding(self, memory: float) -> int:
        return max(1, math.ceil(memory / (self.need.memory * _GB * self.rates.spare.value)))


def costs_of(kind: StoreKind, need: Need, rates: Rates) -> StoreCosts:
    """What a store would take.

    Args:
        kind: Which store.
        need: For what.
        rates: What was measured.
    """
    reckoning = _Reckoning(need, rates)
    if kind == "milvus":
        return _milvus(reckoning)
    return _exact(reckoning) if kind == "exact" else _lance(reckoning)


def _exact(of: _Reckoning) -> StoreCosts:
    need, rates = of.need, of.rates
    formula, disk, used = of.facts()
    memory = of.quantity(
        "memory", need.rows * of.vector + rates.exact_process.value, "bytes", "R x 4 D + {0}", rates.exact_process
    )
    speed = rates.exact_speed
    search = of.quantity(
        "one search", need.pictures * of.vector / speed.value / 1e6, "ms", "N x 4 D / {0}", speed, rows=need.pictures
    )
    insert = rates.exact_insert
    build = of.quantity("building", need.rows / insert.value / _SECONDS, "hours", "R / {0}", insert)
    return _on_one_machine(of, "exact", of.quantity("disk", disk, "bytes", formula, *used), memory, search, build)


def _lance(of: _Reckoning) -> StoreCosts:
    need, rates, vector = of.need, of.rates, of.vector
    largest = max(need.pictures, need.rows - need.pictures)
    formula, disk, used = of.facts(half=need.half)
    insert = rates.lance_insert
    seconds = need.rows / insert.value
    if largest * vector <= HELD_BYTES:
        memory = of.quantity(
            "memory",
            rates.lance_process.value + rates.held_memory.value * need.rows * vector,
            "bytes",
            "R x 4 D x {0} + {1}",
            rates.held_memory,
            rates.lance_process,
        )
        speed = rates.held_speed
        milliseconds = need.pictures * vector / speed.value / 1e6
        search = of.quantity("one search", milliseconds, "ms", "N x 4 D / {0}", speed, rows=need.pictures)
        build = of.quantity("building", seconds / _SECONDS, "hours", "R / {0}", insert)
    else:
        graph = largest <= GRAPH_UP_TO_ROWS
        size, held, making, searching = (
            (rates.graph_disk, rates.graph_memory, rates.graph_build, rates.graph_search)
            if graph
            else (rates.codes_disk, rates.codes_disk, rates.codes_build, rates.codes_search)
        )
        own = need.rows * size.value * need.dimension / (size.dimension or need.dimension)
        formula, disk, used = f"{formula} + R x {{{len(used)}}} x D / {size.dimension}", disk + own, [*used, size]
        memory = of.quantity(
            "memory",
            rates.lance_process.value + need.rows * held.value * need.dimension / (held.dimension or need.dimension),
            "bytes",
            f"R x {{0}} x D / {held.dimension} + {{1}}",
            held,
            rates.lance_process,
            remark="vectors stay on the disk; whether it keeps up where the system caches few of them is not measured",
        )
        measured = searching.rows or need.pictures
        times = max(1.0, need.pictures / measured) * need.dimension / (searching.dimension or need.dimension)
        search = of.quantity(
            "one search",
            searching.value * times,
            "ms",
            f"{{0}} x N / {measured:,} (N at least {measured:,}) x D / {searching.dimension}",
            searching,
            rows=need.pictures,
        )
        # Both the graph and the partitions of codes take longer a row the more rows there are.
        slower = max(1.0, largest / (making.rows or largest))
        build = of.quantity(
            "building",
            (seconds + need.rows * making.value * slower / 1e6 * need.dimension / (making.dimension or need.dimension))
            / _SECONDS,
            "hours",
            f"R / {{0}} + R x {{1}} x D / {making.dimension} x N / {making.rows:,} (at least 1)",
            insert,
            making,
            remark="that a row takes longer as rows become more is an upper bound" if slower > 1 else "",
        )
    twice = rates.twice
    total = of.quantity(
        "disk", disk, "bytes", formula, *used, remark=f"while it is compacted up to {twice.value:g} times that"
    )
    return _on_one_machine(of, "lance", total, memory, search, build)


def _on_one_machine(
    of: _Reckoning, kind: StoreKind, disk: Quantity, memory: Quantity, search: Quantity, build: Quantity
) -> StoreCosts:
    need = of.need
    assert memory.value is not None
    assert search.value is not None
    assert build.value is not None
    wrong = []
    if of.holding(memory.value) > 1:
        wrong.append(f"it does not fit into the memory of one machine ({need.memory:g} GB)")
    if search.value > SLOWEST_MS:
        wrong.append(f"one search takes {search.said}, more than {SLOWEST_MS:g} ms")
    if build.value > LONGEST_BUILD:
        wrong.append(f"building takes {build.said}, more than {LONGEST_BUILD:g} h")
    machines = of.machines(search, 1, "searching")
    return StoreCosts(kind, disk, memory, search, build, 1, machines, tuple(wrong))


def _milvus(of: _Reckoning) -> StoreCosts:
    need, rates, vector = of.need, of.rates, of.vector
    formula, disk, used = of.facts()
    more = rates.milvus_disk
    disk += need.rows * vector * (more.value - 1)
    total = of.quantity(
        "disk", disk, "bytes", f"{formula} + R x 4 D x ({{{len(used)}}} - 1)", *used, more,
        remark="facts are reckoned as in LanceDB; object stores and replicas keep more copies",
    )  # fmt: skip
    rows_memory = need.rows * vector * rates.milvus_memory.value
    holding = of.holding(rows_memory)
    memory = of.quantity(
        "memory",
        rows_memory + holding * rates.milvus_process.value,
        "bytes",
        f"R x 4 D x {{0}} + {holding:,} x {{1}}",
        rates.milvus_memory,
        rates.milvus_process,
    )
    own = math.ceil(need.pictures / holding)
    searching = rates.milvus_search
    measured = searching.rows or own
    search = of.quantity(
        "one search",
        searching.value * max(1.0, own / measured) * need.dimension / (searching.dimension or need.dimension),
        "ms",
        f"{{0}} x {own:,} rows of a machine / {measured:,} (at least 1) x D / {searching.dimension}",
        searching,
        rates.milvus_share,
        rows=own,
        remark="that it takes longer in proportion to the rows is an upper bound" if own > measured else "",
    )
    insert, making = rates.milvus_insert, rates.milvus_build
    wider = need.dimension / (making.dimension or need.dimension)
    build = of.quantity(
        "building",
        need.rows * (1 / insert.value + 1 / making.value / holding) * wider / _SECONDS,
        "hours",
        f"R x (1 / {{0}} + 1 / {{1}} / {holding:,} machines) x D / {making.dimension}",
        insert,
        making,
        rates.milvus_share,
        remark="one process writes all rows, while others encode",
    )
    machines = of.machines(search, holding, "Milvus")
    return StoreCosts("milvus", total, memory, search, build, holding, machines, ())
