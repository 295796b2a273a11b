from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rungwise.index import Index
from rungwise.index.stores import StoreFacts
from rungwise.planning import STORED, MeasuredSample, Need, Rates, measured, plan, plan_text
from rungwise.planning import _measurement as measurement
from rungwise.planning._measurement import _rescaled
from rungwise.planning._rates import HERE, sized_name, sized_rate, sizes_of
from tests.colour_model import ColourModel, colour_pictures

SMALL = MeasuredSample(rows=300, pictures=4, queries=3, repeats=1)
OF_STORES = {"exact_insert", "exact_speed", "lance_insert"}
OF_SEARCHES = {"held_vectors", "words", "folding", "end", "held_search"}


def names(rates: Rates) -> set[str]:
    """Names of the rates that are not as they are stored, whatever their size."""
    return {name.partition(" at ")[0] for name in rates if rates[name] != STORED.get(name)}


def test_rates_of_this_machine_take_the_place_of_stored_ones_and_of_no_others(tmp_path: Path) -> None:
    said: list[str] = []
    found = measured(STORED, Need(200, captions=0.5, dimension=8), folder=tmp_path, sample=SMALL, say=said.append)
    assert names(found) == OF_STORES | OF_SEARCHES
    for name in OF_STORES:
        rate = found[name]
        assert (rate.machine, rate.rows, rate.dimension, rate.source) == (HERE, 300, 8, "measured just now")
        assert rate.value > 0
    for name in ("words", "folding", "end"):
        assert found[sized_name(name, 200)].source == "measured just now"
    assert said == [
        "writing and searching 300 rows of 8 numbers in both stores",
        "drawing an index of 200 pictures, and searching it",
    ]
    assert not list(tmp_path.iterdir()), "what was written is removed"


def test_no_more_rows_are_drawn_than_may_be_and_it_says_so() -> None:
    said: list[str] = []
    found = measured(STORED, Need(5000, dimension=8), sample=SMALL, say=said.append)
    assert said[1] == "drawing an index of 300 pictures (of 5,000: no more are drawn), and searching it"
    assert sized_name("words", 300) in found


def test_a_plan_at_the_measured_size_says_what_was_measured() -> None:
    need = Need(200, dimension=8)
    found = measured(STORED, need, sample=SMALL)
    planned = plan(need, found)
    for name in ("words", "folding", "end"):
        assert planned[f"search: {name}"].value == found[sized_name(name, 200)].value


def test_rates_of_other_sizes_keep_their_proportion() -> None:
    stored = {sized_name("words", n): sized_rate("words", n, ms) for n, ms in ((1000, 4.0), (5000, 8.0))}
    found = _rescaled(stored, "words", 3000, 12.0, 512)
    assert [(rate.rows, rate.value, rate.machine) for rate in sizes_of(found, "words")] == [
        (1000, 8.0, HERE),
        (3000, 12.0, HERE),
        (5000, 16.0, HERE),
    ]
    assert found[sized_name("words", 5000)].source.endswith(", x 2 as measured here")


def test_a_model_is_measured_on_its_device() -> None:
    need = Need(100, dimension=3, model="colours", device="h200")
    found = measured(STORED, need, model=ColourModel(), sample=SMALL)
    assert found["colours on h200"].value > 0
    assert found["query of colours"].machine == HERE
    planned = plan(need, found)
    assert planned["encoding, h200"].value == pytest.approx(100 / found["colours on h200"].value / 3600)
    assert planned["encoding, processor"].value is None
    assert planned["search: query"].value == found["query of colours"].value
    assert "measured on this machine:" in plan_text(planned)


def test_an_index_that_is_there_is_searched_at_its_size(tmp_path: Path) -> None:
    photos, model = colour_pictures(tmp_path / "photos", ["red", "blue", "green"]), ColourModel()
    index = Index.build(photos, model, tmp_path / "index", store="lance")
    said: list[str] = []
    found = measured(STORED, Need(1000, dimension=3), model=model, stored=index, sample=SMALL, say=said.append)
    assert said[1] == "searching your index of 3 pictures"
    assert found[sized_name("words", 3)].source == "measured just now"


@pytest.mark.parametrize(
    ("kind", "exact", "pictures", "replaced"),
    [
        ("exact", True, 5_000, {"held_search", "held_vectors"}),
        ("lance", True, 20_000, {"held_search", "held_vectors"}),
        ("lance", False, 10**6, {"lists_search", "lists_vectors"}),
        ("milvus", False, 200_000, {"milvus_search"}),
    ],
)
def test_what_an_index_was_measured_for_is_what_a_plan_with_such_an_index_reads(
    monkeypatch: pytest.MonkeyPatch, kind: str, exact: bool, pictures: int, replaced: set[str]
) -> None:
    parts = {"vectors": 80.0, "words": 1.0, "folding": 1.0, "end": 1.0, "store": 40.0}
    monkeypatch.setattr(measurement, "search_parts", lambda *_: parts)
    store = SimpleNamespace(about=lambda: StoreFacts(kind, exact, ""))
    index: Any = SimpleNamespace(picture_store=store)
    found = measurement._searches(STORED, index, ColourModel(), [], pictures, 512)
    assert names(found) - {"words", "folding", "end"} == replaced
    if kind == "lance":
        assert plan(Need(pictures, store="lance"), found)["one search"].value == pytest.approx(40.0)
