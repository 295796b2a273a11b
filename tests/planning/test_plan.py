import json
from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.planning import STORED, Need, Rate, plan
from rungwise.planning._growth import growth
from rungwise.planning._rates import DEFAULT_ENCODER as DEFAULT

GPU = Rate("a network on a GPU", 1000.0, "pictures/s", "as drawn for this test")


def test_few_pictures_go_into_lancedb_and_many_into_milvus() -> None:
    stores = [plan(Need(count)).store for count in (1, 10_000, 10**6, 10**8, 5 * 10**9)]
    assert stores == ["lance", "lance", "lance", "milvus", "milvus"]
    assert plan(Need(10**6, memory=0.1)).store == "milvus"


def test_the_choice_follows_from_the_numbers_and_says_which() -> None:
    large = plan(Need(10**8))
    assert large.why.startswith("in LanceDB's store on one machine ")
    assert large.why.endswith("; ".join(next(one.wrong for one in large.compared if one.kind == "lance")))
    fast = {
        **STORED,
        **{name: replace(rate, value=0.01) for name, rate in STORED.items() if name.startswith("lists_search")},
        "lists_build": replace(STORED["lists_build"], value=0.001),
        **{name: replace(rate, value=1.0) for name, rate in STORED.items() if name.startswith("preparing")},
    }
    assert plan(Need(10**8, memory=10_000), fast).store == "lance"


def test_a_store_that_was_asked_for_is_taken_with_what_speaks_against_it() -> None:
    found = plan(Need(10**8, store="exact"))
    assert (found.store, found.why) == ("exact", "it was asked for")
    assert found.doubts
    assert plan(Need(10_000, store="exact")).doubts == ()


def test_hours_of_encoding_are_those_of_the_device_and_of_no_other() -> None:
    found = plan(Need(691_000, model="quick"))
    assert found["encoding, processor"].value == pytest.approx(691_000 / STORED["quick on cpu"].value / 3600)
    assert found["encoding, GPU"].value is None
    assert found["encoding, GPU"].said == "not measured"
    assert "--pictures-per-second" in " ".join(found["encoding, GPU"].doubts)
    rates = {**STORED, "quick on h200": GPU}
    assert plan(Need(3_600_000, model="quick", device="h200"), rates)["encoding, h200"].value == pytest.approx(1.0)


def test_a_rate_that_the_user_gives_is_said_to_be_theirs() -> None:
    found = plan(Need(3_600_000, pictures_per_second=100, within=2.5, model="anything"))
    assert found["encoding"].value == pytest.approx(10.0)
    assert found["encoding"].rates[0].source == "as you say"
    assert found["machines, encoding"].value == 4
    assert found["machines, encoding"].doubts, "that pictures are shared out evenly was not measured"


def test_the_memory_of_the_process_that_indexes_is_said_where_no_machine_has_it() -> None:
    few, many = (plan(Need(count, memory=64))["memory, indexing"] for count in (10**5, 10**8))
    model = STORED["torch_indexing"].value + STORED["torch_weights"].value * STORED[f"weights of {DEFAULT}"].value
    rows = growth(STORED, "indexing_memory", 10**5).value
    assert few.value == pytest.approx(model + rows)
    assert not any("an index of its own" in doubt for doubt in few.doubts)
    assert any("an index of its own" in doubt for doubt in many.doubts)


def test_an_exported_model_takes_less_memory_than_the_default(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_bytes(bytes(1000))
    small, usual = plan(Need(1000, model=str(tmp_path))), plan(Need(1000))
    for name in ("memory, serving", "memory, indexing", "whole search"):
        assert small[name].known < usual[name].known
    assert small.model == f"{tmp_path.name} in {tmp_path}"
    assert usual.model == f"{DEFAULT} (the default)"
    assert small["encoding, processor"].value is None, "nobody knows how fast it is"


def test_beside_milvus_a_server_takes_memory_too() -> None:
    found = plan(Need(10**8, queries=500))
    model = STORED["torch_process"].value + STORED["torch_weights"].value * STORED[f"weights of {DEFAULT}"].value
    assert found["memory, serving"].value == pytest.approx(model)
    each = found["searches of a machine"].known
    assert (found["machines, serve"].known - 1) * each < 500 <= found["machines, serve"].known * each


def test_an_update_is_what_was_measured() -> None:
    found = plan(Need(100_000))["update, nothing new"]
    assert found.value == pytest.approx(growth(STORED, "update", 100_000).value / 3600)


def test_hours_that_nobody_knows_give_no_machines() -> None:
    nobody = {name: rate for name, rate in STORED.items() if " on " not in name}
    found = plan(Need(1000, within=1), nobody)
    assert "machines, encoding" not in {one.name for one in found.quantities}


def test_an_unknown_model_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match=r"pictures a second of 'resnet9000' are not known; .* take one of .*quick"):
        plan(Need(1000, model="resnet9000"))


def test_machines_answer_all_searches() -> None:
    one = plan(Need(10_000, queries=1))
    many = plan(Need(10_000, queries=1000))
    each = many["searches of a machine"].value
    assert each is not None
    assert one["machines"].value == 1
    count = many["machines"].value
    assert count is not None
    assert (count - 1) * each < 1000 <= count * each


def test_json_holds_every_number_with_its_rates() -> None:
    plain = json.loads(json.dumps(plan(Need(10**8, queries=50)).plain(), allow_nan=False))
    assert plain["store"] == "milvus"
    assert [one["store"] for one in plain["compared"]] == ["exact", "lance", "milvus"]
    for one in plain["quantities"]:
        assert one["rates"] or one["value"] is None or one["name"] in ("whole search", "machines, serve")
        assert "{" not in one["formula"]
