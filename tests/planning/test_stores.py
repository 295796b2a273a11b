"""What each store takes, against sums that are written out here."""

import math
from dataclasses import replace

import pytest

from rungwise.index.stores import LISTS_PAY_FROM_BYTES
from rungwise.planning import STORED, Need
from rungwise.planning._growth import growth
from rungwise.planning._quantity import MEASURED_UP_TO
from rungwise.planning._rates import sized_name, sized_rate, sizes_of
from rungwise.planning._stores import LONGEST_BUILD, SLOWEST_MS, costs_of

KINDS = ("exact", "lance", "milvus")
SIZES = (1, 10_000, 100_000, 200_000, 1_000_000, 100_000_000, 5_000_000_000)


def test_the_exact_store_is_vectors_and_facts() -> None:
    found = costs_of("exact", Need(1000, dimension=64, captions=2), STORED)
    facts, caption = STORED["facts"].value, STORED["caption"].value
    assert found.disk.value == pytest.approx(1000 * (256 + facts) + 2000 * (256 + caption))
    assert found.memory.value == pytest.approx(3000 * 256 + without_rows())
    floor = STORED["exact_floor"].value
    assert found.search.value == pytest.approx(floor + 1000 * 256 / (STORED["exact_speed"].value * 1e9) * 1000)
    preparing = growth(STORED, "preparing", 3000).value
    assert found.build.value == pytest.approx((preparing + 3000 / STORED["exact_insert"].value) / 3600)


def without_rows() -> float:
    """Memory of a server with the default model."""
    weights = STORED["weights of siglip2-base-patch32-256"].value
    return STORED["torch_process"].value + STORED["torch_weights"].value * weights


def test_at_a_measured_size_a_plan_says_what_was_measured() -> None:
    n, captions = 20_000, 8_000
    found = costs_of("lance", Need(n, captions=captions / n, model="quick"), STORED)
    rows = n + captions
    model = STORED["torch_process"].value + STORED["torch_weights"].value * STORED["weights of quick"].value
    points = [rate.rows for rate in sizes_of(STORED, "held_memory")]
    expected = growth(STORED, "held_memory", rows)
    assert found.memory.value == pytest.approx(model + expected.value)
    assert found.search.value == growth(STORED, "held_search", n).value
    assert {part.name: part.value for part in found.searching[:-2]} == {
        "search: query": STORED["query of quick"].value,
        "search: vectors": growth(STORED, "held_vectors", n).value,
        **{f"search: {one}": growth(STORED, one, n).value for one in ("words", "folding", "end", "answer")},
    }
    assert len(points) >= 2


def test_searches_of_a_machine_follow_from_the_processor_time_of_a_whole_search() -> None:
    for kind in KINDS:
        *parts, whole, each = costs_of(kind, Need(50_000), STORED).searching
        assert whole.value == pytest.approx(sum(part.known for part in parts))
        assert each.value == pytest.approx(1000 * growth(STORED, "busy", 50_000).value / whole.known)


def test_machines_grow_with_searches_and_with_rows() -> None:
    counts = [
        costs_of("lance", Need(rows, queries=queries, model="quick"), STORED).machines.known
        for queries, rows in ((1, 8000), (100, 8000), (100, 100_000), (1000, 100_000))
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[1]
    assert counts[2] < counts[3]


def test_fewer_numbers_of_a_vector_count_as_fewer_rows() -> None:
    half = costs_of("lance", Need(40_000, dimension=256), STORED)
    assert half.search.value == growth(STORED, "held_search", 20_000).value
    assert half.searching[1].value == growth(STORED, "held_vectors", 20_000).value
    large = costs_of("lance", Need(400_000, dimension=256), STORED)
    assert large.search.value == growth(STORED, "lists_search", 200_000).value


@pytest.mark.parametrize(
    ("rows", "lists"), [(LISTS_PAY_FROM_BYTES // 2048 - 1, False), (LISTS_PAY_FROM_BYTES // 2048, True), (10**7, True)]
)
def test_lancedb_is_reckoned_with_the_lists_that_it_makes(rows: int, lists: bool) -> None:
    found = costs_of("lance", Need(rows), STORED)
    of_lists = rows * STORED["lists_disk"].value if lists else 0.0
    assert found.disk.value == pytest.approx(2 * rows * (2048 + STORED["facts"].value) + of_lists)
    used = {rate.what for rate in (*found.search.rates, *found.build.rates)}
    vectors = {rate.what for rate in sizes_of(STORED, "held_vectors")}
    assert bool(vectors & {rate.what for rate in found.searching[1].rates}) != lists
    assert (STORED["lists_build"].what in used) == lists


def test_a_search_and_the_memory_are_reckoned_from_what_was_measured_with_lists() -> None:
    measured = dict(STORED)
    for name, value in (("lists_search", 20.0), ("lists_vectors", 40.0), ("lists_memory", 3e9)):
        measured = {key: rate for key, rate in measured.items() if key.partition(" at ")[0] != name}
        measured[sized_name(name, 10**6)] = sized_rate(name, 10**6, value)
    found = costs_of("lance", Need(10**6), measured)
    assert (found.search.value, found.searching[1].value) == (20.0, 40.0)
    assert found.memory.value == pytest.approx(without_rows() + 3e9)
    twice = costs_of("lance", Need(10**6, dimension=1024), measured)
    assert (twice.search.value, twice.searching[1].value) == (40.0, 80.0)


def test_half_precision_halves_the_vectors_of_lancedb_alone() -> None:
    whole, half = (costs_of("lance", Need(10**6, half=half), STORED).disk.value for half in (False, True))
    assert whole is not None
    assert half is not None
    assert whole - half == pytest.approx(2 * 10**6 * 1024)  # of the table, and of the copy beside its lists
    assert costs_of("milvus", Need(10**6, half=True), STORED).disk.value == costs_of(
        "milvus", Need(10**6), STORED
    ).disk.value  # fmt: skip


def test_thumbnails_take_their_place_everywhere() -> None:
    for kind in KINDS:
        plain, more = (costs_of(kind, Need(500, thumbnails=on), STORED).disk.value for on in (False, True))
        assert plain is not None
        assert more is not None
        assert more - plain == pytest.approx(500 * STORED["thumbnail"].value)


@pytest.mark.parametrize("kind", KINDS)
def test_more_pictures_take_no_less_of_anything(kind: str) -> None:
    found = [costs_of(kind, Need(count, queries=50), STORED) for count in SIZES]
    for name in ("disk", "memory"):
        values = [getattr(one, name).value for one in found]
        # What LanceDB holds in memory while vectors are few takes more than the lists of somewhat more.
        assert values == sorted(values) or (kind, name) == ("lance", "memory")
    machines = [one.machines.value for one in found]
    assert machines == sorted(machines) or kind == "lance"  # whose lists are quicker than the products of fewer rows


@pytest.mark.parametrize("kind", KINDS)
def test_more_searches_or_less_memory_take_no_fewer_machines(kind: str) -> None:
    def machines(queries: float, memory: float) -> float:
        found = costs_of(kind, Need(10**8, queries=queries, memory=memory), STORED).machines.value
        assert found is not None
        return found

    few = machines(1, 64)
    assert few <= machines(100, 64) <= machines(10_000, 64)
    if kind == "milvus":
        assert few <= machines(1, 32)


def test_milvus_is_held_by_as_many_machines_as_its_memory_needs() -> None:
    need = Need(10**8, memory=64)
    found = costs_of("milvus", need, STORED)
    rows = 10**8 * 2048 * STORED["milvus_memory"].value
    assert found.holding == math.ceil(rows / (64e9 * STORED["spare"].value))
    assert found.memory.value == pytest.approx(rows + found.holding * STORED["milvus_process"].value)
    assert any(rate.assumed for rate in found.search.rates), "nobody measured several machines"


def test_one_process_writes_into_milvus_however_many_machines_make_its_graphs() -> None:
    need = Need(10**9, memory=64)
    found = costs_of("milvus", need, STORED)
    assert found.holding > 10
    writing, making = (10**9 / rate.value / 3600 for rate in (STORED["milvus_insert"], STORED["milvus_build"]))
    preparing = growth(STORED, "preparing", 10**9).value / 3600
    assert found.build.value == pytest.approx(preparing + writing + making / found.holding)


def test_what_does_not_do_says_why() -> None:
    assert costs_of("exact", Need(10_000), STORED).wrong == ()
    reasons = " ".join(costs_of("exact", Need(10**8), STORED).wrong)
    assert "does not fit into the memory of one machine (64 GB)" in reasons
    assert f"more than {SLOWEST_MS:g} ms" in reasons
    slow = {**STORED, "lance_insert": replace(STORED["lance_insert"], value=1.0)}
    assert f"more than {LONGEST_BUILD:g} h" in " ".join(costs_of("lance", Need(100_000), slow).wrong)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", SIZES)
def test_beyond_what_was_measured_every_number_says_so(kind: str, count: int) -> None:
    found = costs_of(kind, Need(count), STORED)
    for one in (found.memory, found.search, found.build):
        largest = {rate.what: rate.rows for rate in one.rates if rate.rows}  # the last size is the largest
        beyond = any(one.rows > MEASURED_UP_TO * rows for rows in largest.values())
        assert beyond == any(doubt.startswith("extrapolated from") for doubt in one.doubts)
    if count == SIZES[-1]:
        assert any(doubt.startswith("extrapolated") for doubt in found.search.doubts)
