"""Costs of each store: disk, memory, time of a search, time of building, machines.

In formulas N is the number of pictures, R the number of rows (pictures and captions), D the dimension of a vector, and
Q the number of searches a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rungwise.planning._growth import Growth, growth
from rungwise.planning._model_size import ModelSize, model_size
from rungwise.planning._need import USUAL_DIMENSIONS, Need, StoreKind
from rungwise.planning._quantity import Quantity, Unit
from rungwise.planning._rates import Rates

SLOWEST_MS = 100.0
"""Time of a search that a person does not notice; slower searches are better distributed over machines."""
LONGEST_BUILD = 24.0
"""Hours of building above which an index is never up to date."""
_COPIES = 2
"""Places in which LanceDB's store in a folder has each row: the table, and the files that are mapped."""
_GB = 1e9


@dataclass(frozen=True)
class StoreCosts:
    """Costs of one store.

    Attributes:
        kind: Kind of the store.
        disk: Disk of all machines together, for one copy.
        memory: Memory of all machines together, for one copy.
        search: Time of one search in the store, vectors alone.
        build: Time of making the index with given vectors.
        searching: Parts of a whole search, and at last all of it.
        holding: Number of machines for one copy.
        machines: Number of machines for all searches.
        wrong: Reasons why the store is unsuitable; empty if it is suitable.
    """

    kind: StoreKind
    disk: Quantity
    memory: Quantity
    search: Quantity
    build: Quantity
    searching: tuple[Quantity, ...]
    holding: int
    machines: Quantity
    wrong: tuple[str, ...]


def costs_of(kind: StoreKind, need: Need, rates: Rates) -> StoreCosts:
    """Costs of a store for a need, computed from rates."""
    return {"exact": _exact, "lance": _lance, "milvus": _milvus}[kind](_Reckoning(need, rates, model_size(need, rates)))


@dataclass(frozen=True)
class _Reckoning:
    """Quantities for one need, each as a value, its formula and the names of the rates in it, in their order."""

    need: Need
    rates: Rates
    model: ModelSize

    def __getitem__(self, rate: str) -> float:
        return self.rates[rate].value

    @property
    def vector(self) -> int:
        return self.need.numbers * 4

    def measured_with(self, rate: str) -> tuple[int, int]:
        """N and D of the measurement of a rate."""
        found = self.rates[rate]
        return found.rows or self.need.pictures, found.dimension or self.need.numbers

    def disk(
        self, more: float, formula: str, *rates: str, half: bool = False, copies: int = 1, remark: str = ""
    ) -> Quantity:
        """Disk for vectors and metadata, so many times, and ``more``."""
        need, captions = self.need, self.need.rows - self.need.pictures
        vector, size = ("2 D", self.vector // 2) if half else ("4 D", self.vector)
        beside = ["facts"]
        value, whole = need.pictures * (size + self["facts"]), f"N x ({vector} + {{}})"
        if need.captions:
            value += captions * (size + self["caption"])
            whole, beside = f"{whole} + {need.captions:g} N x ({vector} + {{}})", [*beside, "caption"]
        if copies > 1:
            value, whole = (
                copies * value,
                f"{copies} x ({whole})" if need.captions else f"{copies} N x ({vector} + {{}})",
            )
        if need.thumbnails:
            value += need.pictures * self["thumbnail"]
            whole, beside = f"{whole} + N x {{}}", [*beside, "thumbnail"]
        return self._quantity("disk", value + more, "bytes", whole + formula, (*beside, *rates), None, remark)

    def served(self, rows: Growth, remark: str = "") -> Quantity:
        """Memory of a server: its process, its model, and what it holds of the rows."""
        process, weights = self.rates[f"{self.model.kind}_process"], self.rates[f"{self.model.kind}_weights"]
        return Quantity(
            "memory, serving",
            process.value + self.model.weights.value * weights.value + rows.value,
            "bytes",
            f"{{}} + {{}} x {{}} + {rows.formula}",
            (process, self.model.weights, weights, *rows.rates),
            self.need.rows,
            self.need.numbers,
            remark,
        )

    def search(self, milliseconds: float, formula: str, *rates: str, rows: int, remark: str = "") -> Quantity:
        return self._quantity("one search", milliseconds, "ms", formula, rates, rows, remark)

    def build(self, seconds: float, formula: str, *rates: str, remark: str = "") -> Quantity:
        """Time of reading all pictures, and of writing their rows, which takes ``seconds``."""
        preparing = growth(self.rates, "preparing", self.need.rows)
        return Quantity(
            "building",
            (preparing.value + seconds) / 3600,
            "hours",
            f"{preparing.formula} + {formula}",
            (*preparing.rates, *(self.rates[one] for one in rates)),
            self.need.rows,
            self.need.numbers,
            remark,
        )

    def _quantity(
        self, name: str, value: float, unit: Unit, formula: str, rates: Sequence[str], rows: int | None, remark: str
    ) -> Quantity:
        used, beyond = tuple(self.rates[one] for one in rates), self.need.rows if rows is None else rows
        return Quantity(name, value, unit, formula, used, beyond, self.need.numbers, remark)

    def searching(self, vectors: Growth | None, store: str = "") -> tuple[Quantity, ...]:
        """Processor time of a whole search, part by part, and how many of them a machine does in a second."""
        n, numbers, model = self.need.pictures, self.need.numbers, self.model
        parts = [Quantity("search: query", model.query.value, "ms", "{}", (model.query,), remark=model.remark)]
        usual = round(n * numbers / USUAL_DIMENSIONS)
        if vectors is not None:  # else another process compares them
            parts.append(
                Quantity("search: vectors", vectors.value, "ms", vectors.formula, vectors.rates, usual, numbers)
            )
        for name in ("words", "folding", "end", "answer"):
            of = growth(self.rates, name, n)
            remark = f"measured with LanceDB's store, not with {store}" if store and name == "words" else ""
            parts.append(Quantity(f"search: {name}", of.value, "ms", of.formula, of.rates, n, remark=remark))
        whole = sum(part.known for part in parts)
        busy = growth(self.rates, "busy", n)
        each = 1000 * busy.value / whole
        return (
            *parts,
            Quantity("whole search", whole, "ms", "all of these, of one core"),
            Quantity("searches of a machine", each, "a second", f"({busy.formula}) / whole search", busy.rates, n),
        )

    def machines(self, searching: Sequence[Quantity], name: str = "machines") -> Quantity:
        """Machines for all searches, each with a copy of the rows."""
        count = math.ceil(self.need.queries / searching[-1].known)
        return Quantity(name, count, "machines", "Q / searches of a machine, each with a copy")

    def holding(self, memory: float) -> int:
        return max(1, math.ceil(memory / (self.need.memory * _GB * self["spare"])))

    def on_one_machine(
        self, kind: StoreKind, disk: Quantity, memory: Quantity, search: Quantity, build: Quantity, vectors: Growth
    ) -> StoreCosts:
        wrong = []
        if self.holding(memory.known) > 1:
            wrong.append(f"it does not fit into the memory of one machine ({self.need.memory:g} GB)")
        if search.known > SLOWEST_MS:
            wrong.append(f"one search takes {search.said}, more than {SLOWEST_MS:g} ms")
        if build.known > LONGEST_BUILD:
            wrong.append(f"building takes {build.said}, more than {LONGEST_BUILD:g} h")
        searching = self.searching(vectors, "" if kind == "lance" else "this one")
        return StoreCosts(kind, disk, memory, search, build, searching, 1, self.machines(searching), tuple(wrong))


def _exact(of: _Reckoning) -> StoreCosts:
    n, r, d = of.need.pictures, of.need.rows, of.need.numbers
    return of.on_one_machine(
        "exact",
        of.disk(0, ""),
        of.served(Growth(r * of.vector, "R x 4 D", ()), "its full text comes on top"),
        of.search(
            of["exact_floor"] + n * of.vector / of["exact_speed"] / 1e6,
            "{} + N x 4 D / {}",
            "exact_floor",
            "exact_speed",
            rows=n,
        ),
        of.build(r / of["exact_insert"], "R / {}", "exact_insert"),
        growth(of.rates, "held_vectors", n * d / USUAL_DIMENSIONS),
    )


def _lance(of: _Reckoning) -> StoreCosts:
    from rungwise.index.stores import LISTS_PAY_FROM_BYTES  # and with them numpy

    n, r, d = of.need.pictures, of.need.rows, of.need.numbers
    largest = max(n, r - n)
    compacting = f"while it is compacted up to {of['twice']:g} times that"
    if largest * of.vector >= LISTS_PAY_FROM_BYTES:
        return _lance_with_lists(of, largest, compacting)
    as_usual = d / USUAL_DIMENSIONS
    search = growth(of.rates, "held_search", n * as_usual)
    return of.on_one_machine(
        "lance",
        of.disk(0, "", half=of.need.half, copies=_COPIES, remark=compacting),
        of.served(growth(of.rates, "held_memory", r * as_usual)),
        Quantity("one search", search.value, "ms", search.formula, search.rates, round(n * as_usual), d),
        of.build(r / of["lance_insert"], "R / {}", "lance_insert"),
        growth(of.rates, "held_vectors", n * as_usual),
    )


def _lance_with_lists(of: _Reckoning, largest: int, compacting: str) -> StoreCosts:
    r, d = of.need.rows, of.need.numbers
    (_, d_kept), (n_made, d_made) = of.measured_with("lists_disk"), of.measured_with("lists_build")
    as_usual = d / USUAL_DIMENSIONS
    pictures, rows = of.need.pictures * as_usual, r * as_usual
    slower = max(1.0, largest / n_made) ** 0.5  # lists and their rows grow with the root of the rows
    search = growth(of.rates, "lists_search", pictures)
    return of.on_one_machine(
        "lance",
        of.disk(
            r * of["lists_disk"] * d / d_kept,
            f" + R x {{}} x D / {d_kept}",
            "lists_disk",
            half=of.need.half,
            copies=_COPIES,
            remark=compacting,
        ),
        of.served(
            growth(of.rates, "lists_memory", rows),
            "mapped files take what is free besides; whether it keeps up where little is free is not measured",
        ),
        Quantity("one search", search.value, "ms", search.formula, search.rates, round(pictures), d),
        of.build(
            r / of["lance_insert"] + r * of["lists_build"] * slower / 1e6 * d / d_made,
            f"R / {{}} + R x {{}} x D / {d_made} x root of N / {n_made:,} (at least 1)",
            "lance_insert",
            "lists_build",
        ),
        growth(of.rates, "lists_vectors", pictures),
    )


def _milvus(of: _Reckoning) -> StoreCosts:
    n, r, d = of.need.pictures, of.need.rows, of.need.numbers
    rows_memory = r * of.vector * of["milvus_memory"]
    holding = of.holding(rows_memory)
    own = math.ceil(n / holding)
    (n_searched, d_searched), (_, d_made) = of.measured_with("milvus_search"), of.measured_with("milvus_build")
    search = of.search(
        of["milvus_search"] * max(1.0, own / n_searched) * d / d_searched,
        f"{{}} x {own:,} rows of a machine / {n_searched:,} (at least 1) x D / {d_searched}",
        "milvus_search",
        "milvus_share",
        rows=own,
        remark="that it takes longer in proportion to the rows is an upper bound" if own > n_searched else "",
    )
    copies = max(1, math.ceil(of.need.queries * search.known / 1000))
    machines = Quantity(
        "machines, Milvus",
        copies * holding,
        "machines",
        f"{copies:,} copies (Q x one search) x {holding:,} machines to hold one",
        (*search.rates, of.rates["spare"]),
        own,
        d,
    )
    memory = Quantity(
        "memory, Milvus",
        rows_memory + holding * of["milvus_process"],
        "bytes",
        f"R x 4 D x {{}} + {holding:,} x {{}}",
        (of.rates["milvus_memory"], of.rates["milvus_process"]),
        r,
        d,
    )
    return StoreCosts(
        "milvus",
        of.disk(
            r * of.vector * (of["milvus_disk"] - 1),
            " + R x 4 D x ({} - 1)",
            "milvus_disk",
            remark="facts are reckoned as in LanceDB; object stores and replicas keep more copies",
        ),
        memory,
        search,
        of.build(
            r * (1 / of["milvus_insert"] + 1 / of["milvus_build"] / holding) * (d / d_made),
            f"R x (1 / {{}} + 1 / {{}} / {holding:,} machines) x D / {d_made}",
            "milvus_insert",
            "milvus_build",
            "milvus_share",
            remark="one process writes all rows, while others encode",
        ),
        of.searching(None, "Milvus"),
        holding,
        machines,
        (),
    )
