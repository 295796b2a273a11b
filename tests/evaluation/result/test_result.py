import json
import math
from dataclasses import replace

import numpy as np
import pytest

import rungwise
from rungwise.core import UserError
from rungwise.evaluation import Provenance, Result, evaluate
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.metrics import MRR
from tests.odd_files import on_posix, put


@pytest.fixture
def result():
    return evaluate(
        similarity=np.array([[0.9, 0.1, 0.4], [0.2, 0.3, 0.1], [0.5, 0.5, 0.5]]),
        image_of_caption=[0, 1, 1],
        relevance=np.eye(3),
        measures=["R@1", "rsum", "CS@3"],
        provenance=Provenance(data_name="tiny", data_hash="d4", model_hash="m0", seed=7),
    )


def test_numbers_without_a_value_are_equal(result):
    result = replace(result, numbers=dict(result.numbers) | {"t2i/R@1": float("nan")}, _per_query={})
    assert replace(result, numbers=dict(result.numbers) | {"t2i/R@1": -float("nan")}) == result
    assert replace(result, numbers=dict(result.numbers) | {"t2i/R@1": 0.0}) != result


@pytest.mark.parametrize("given", [None, {}, 5])
def test_what_is_neither_path_nor_text_is_no_result(given):
    with pytest.raises(UserError, match=f"got {type(given).__name__}; give the path of a file, or its text"):
        Result.from_json(given)


@pytest.mark.parametrize("per_query", [False, True])
def test_a_result_survives_the_file(result, tmp_path, per_query):
    if not per_query:
        result = replace(result, _per_query={}, _image_of_query={}, _query_ids={})
    result.to_json(tmp_path / "deep" / "result.json")
    again = Result.from_json(tmp_path / "deep" / "result.json")
    assert again == result
    if per_query:
        np.testing.assert_array_equal(again.per_query("i2t/R@1"), result.per_query("i2t/R@1"))
    else:
        with pytest.raises(KeyError, match="no values per query here; there are none"):
            again.per_query("i2t/R@1")


def test_a_result_gives_its_names_and_numbers_as_a_mapping_does(result):
    assert "i2t/R@1" in result
    assert "i2t/R@2" not in result
    assert 0 not in result
    assert list(result) == list(result.keys()) == list(result.numbers)
    assert dict(result) == result.numbers
    assert {**result} == result.numbers
    assert bool(result)


def test_the_file_says_what_was_measured(result, tmp_path):
    result.to_json(tmp_path / "result.json")
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["protocol"] == "full"
    assert content["gallery"] == {"i2t": [3], "t2i": [3]}
    assert content["captions_per_image"] == {"min": 0.0, "mean": 1.0, "max": 2.0}
    assert content["units"]["i2t/R@1"] == "percent"
    assert content["units"]["t2i/CS@3"] == "correlation"
    assert (content["data_name"], content["data_hash"], content["model_hash"], content["seed"]) == (
        "tiny",
        "d4",
        "m0",
        7,
    )
    assert content["version"] == rungwise.__version__
    assert content["remarks"]["i2t/R@1"] == {"no positive, left out": 1}


def test_a_number_that_does_not_exist_is_null_in_the_file(tmp_path):
    result = evaluate(similarity=np.zeros((2, 2)), image_of_caption=[0, 0], measures=["R@1"])
    values = {**result.numbers, "i2t/R@1": math.nan}
    nobody = {**result._per_query, "i2t/R@1": np.full(2, math.nan)}
    Result(**{**vars(result), "numbers": values, "_per_query": nobody}).to_json(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["numbers"]["i2t/R@1"] is None
    assert content["per_query"]["i2t/R@1"] == [None, None]
    assert math.isnan(Result.from_json(tmp_path / "r.json")["i2t/R@1"])


def test_an_unknown_name_lists_what_there_is(result):
    with pytest.raises(KeyError, match=r"'R@5' was not measured; there are i2t/R@1, .*i2t/R@10"):
        result["R@5"]
    with pytest.raises(KeyError, match="has no values per query here"):
        result.per_query("rsum")


def test_a_write_that_fails_leaves_the_old_file(result, tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("old")

    def no_space(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_text", no_space)
    with pytest.raises(UserError, match="disk is full"):
        result.to_json(path)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"numbers": {}}', '{"format": "rungwise-result/1"}', '{"format": "rungwise-result/1", "numbers": 3}'],
)
def test_what_is_no_result_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(UserError, match=r"r\.json: "):
        Result.from_json(tmp_path / "r.json")
    with pytest.raises(UserError, match="no such file"):
        Result.from_json(tmp_path / "absent.json")


def test_a_damaged_result_is_refused(result, tmp_path):
    path = tmp_path / "r.json"
    result.to_json(path)
    whole = json.loads(path.read_text())
    name = next(iter(whole["per_query"]))
    for values, message in (
        (whole["per_query"][name][:-1], f"per_query of {name}: \\d+ values for \\d+ queries"),
        (["high", *whole["per_query"][name][1:]], rf"per_query.{name}.0.*: must be a number"),
    ):
        path.write_text(json.dumps({**whole, "per_query": {**whole["per_query"], name: values}}))
        with pytest.raises(UserError, match=rf"r\.json: the result is damaged \({message}.*\); evaluate again"):
            Result.from_json(path)


def changed(path, **parts):
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))


def test_a_number_that_was_edited_against_its_own_values_is_refused_by_its_name(result, tmp_path):
    path = tmp_path / "r.json"
    for name, number, said in (
        ("i2t/R@1", 99.0, r"i2t/R@1 is 99, but its values per query give 100"),
        ("t2i/CS@3", 0.25, r"t2i/CS@3 is 0.25, but its values per query give"),
        ("t2i/R@1", None, r"t2i/R@1 is nan, but its values per query give"),
        ("rsum", 599.0, r"rsum is 599, but its terms give"),
    ):
        result.to_json(path)
        whole = json.loads(path.read_text())
        path.write_text(json.dumps({**whole, "numbers": {**whole["numbers"], name: number}}))
        with pytest.raises(UserError, match=rf"r\.json: the result is damaged \({said}"):
            Result.from_json(path)


def test_numbers_without_values_per_query_are_covered_by_the_checksum(result, tmp_path):
    path = tmp_path / "r.json"
    result.to_json(path)
    changed(path, model_hash="other")
    with pytest.raises(UserError, match=r"r\.json: the result was altered after it was written; evaluate again"):
        Result.from_json(path)
    result.to_json(path)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=None, sort_keys=True))  # laid out otherwise
    assert Result.from_json(path) == result


def test_a_file_without_its_checksum_or_a_part_is_refused(result, tmp_path):
    path = tmp_path / "r.json"
    result.to_json(path)
    whole = json.loads(path.read_text())
    for part in ("checksum", "query_ids"):
        path.write_text(json.dumps({key: value for key, value in whole.items() if key != part}))
        with pytest.raises(UserError, match="was altered after it was written"):
            Result.from_json(path)


def test_values_and_images_of_queries_are_covered_too(result, tmp_path):
    path = tmp_path / "r.json"
    result.to_json(path)
    whole = json.loads(path.read_text())
    swapped = {**whole["per_query"], "i2t/R@1": whole["per_query"]["i2t/R@1"][::-1]}  # with the same mean
    for parts in ({"per_query": swapped}, {"image_of_query": {**whole["image_of_query"], "i2t": [2, 1, 0]}}):
        path.write_text(json.dumps({**whole, **parts}))
        with pytest.raises(UserError, match="was altered after it was written"):
            Result.from_json(path)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"per_query": {}, "numbers": {"i2t/R@1": 250.0}}, r"i2t/R@1 is 250, where 0..100 is possible"),
        ({"numbers": {"i2t/R@1": float("nan")}}, "NaN is no number that JSON knows"),
        ({"numbers": {"i2t/R@1": "100"}}, "numbers.i2t/R@1: must be a number"),
        ({"reference": "closest"}, "reference: must be '', 'max', 'mean' or 'paired'"),
        ({"per_query": {}, "numbers": {"up/R@1": 1.0}, "units": {"up/R@1": "percent"}}, "'up/R@1' is in no direction"),
        (
            {"per_query": {}, "numbers": {"R@1": 1.0}, "units": {"R@1": "percent"}},
            "'R@1' is a sum with a direction, or a measure",
        ),
        (
            {"per_query": {}, "numbers": {"i2t/rsum": 1.0}, "units": {"i2t/rsum": "percent"}},
            "'i2t/rsum' is a sum with a direction",
        ),
        ({"units": {}}, "has no unit"),
        ({"gallery": {"i2t": [3]}}, "gallery and queries are not those of i2t and t2i"),
        ({"gallery": {"i2t": [3], "t2i": [1, 1, 2]}}, "3 queries i2t, but the galleries are"),
        ({"gallery": {"i2t": [3], "t2i": [4, -1]}}, "3 queries i2t, but the galleries are"),
        ({"gallery": {"i2t": [3], "t2i": [1, 2]}}, "are not of the same folds"),
        ({"queries": {"i2t": 10**30, "t2i": 3}}, "queries i2t, but the galleries are"),
        (
            {"image_of_query": {"i2t": [0, 1.5, 2], "t2i": [0, 1, 1]}},
            "image_of_query.i2t.1: must be a whole number",
        ),
        ({"image_of_query": {"i2t": [0, 1, -2], "t2i": [0, 1, 1]}}, "-2..1 are no positions"),
        ({"image_of_query": {"i2t": [0, 1, 10**30], "t2i": [0, 1, 1]}}, "are no positions"),
        ({"query_ids": {"i2t": ["a"], "t2i": []}}, "query_ids of i2t: 1 values for 3 queries"),
        ({"per_query": {"i2t/R@7": [1.0, 2.0, 3.0]}}, "values per query of i2t/R@7, which is no number of it"),
        ({"per_query": {"i2t/R@1": [500.0, -200.0, None]}}, "i2t/R@1 of a query is 500, where 0..100 is possible"),
        ({"surprise": 1}, "surprise: Unexpected keyword argument"),
        ({"warnings": "odd"}, "warnings: must be a list"),
        ({"seed": "7"}, "seed: must be a whole number"),
        ({"protocol": ["full"]}, "protocol: must be text"),
    ],
)
def test_parts_that_make_no_sense_are_refused_in_one_line(result, tmp_path, parts, said):
    path = tmp_path / "r.json"
    result.to_json(path)
    changed(path, **parts)
    with pytest.raises(UserError, match=rf"r\.json.*{said}") as caught:
        Result.from_json(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "9" * 5000 + "}", '{"a":' * 100_000, "\ud83d"])
def test_json_made_to_hurt_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "r.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UserError, match=r"r\.json") as caught:
        Result.from_json(tmp_path / "r.json")
    assert "\n" not in str(caught.value)


@on_posix
def test_nothing_but_a_file_is_read(tmp_path):
    put(tmp_path / "r.json", "pipe")
    with pytest.raises(UserError, match=r"r\.json"):
        Result.from_json(tmp_path / "r.json")


def test_folds_are_averaged_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    many = evaluate(
        similarity=rng.standard_normal((50, 100)).astype(np.float32),
        image_of_caption=np.repeat(np.arange(50), 2),
        protocol=ConsecutiveFolds("five", count=5, size=10, per_image=2),
        measures=["R@10", "MedR", "rsum"],
    )
    assert len(many.gallery["i2t"]) == 5
    many.to_json(tmp_path / "r.json")
    assert Result.from_json(tmp_path / "r.json") == many


@pytest.fixture
def foreign() -> Result:
    """A result with a measure whose module is not imported here; its numbers stand first."""

    class Foreign(MRR):
        name = "ForeignInAResult"

    found = evaluate(
        similarity=np.eye(3)[[1, 0, 2]], image_of_caption=[0, 1, 2], measures=["ForeignInAResult", "R@1", "rsum"]
    )
    Foreign.name = ""
    return Result.from_json(found.to_json())


def test_numbers_of_a_measure_that_is_not_known_here_stand_last_without_an_interval(foreign: Result) -> None:
    assert list(foreign.intervals()) == [name for name in foreign.numbers if "Foreign" not in name]
    frame = foreign.to_frame()
    assert list(frame.index[-2:]) == ["i2t/ForeignInAResult", "t2i/ForeignInAResult"]
    assert frame["low"].isna().tolist() == [False] * (len(frame) - 2) + [True, True]
    assert "| ForeignInAResult | 66.7 | 66.7 | percent |" in foreign.to_markdown()
    assert "ForeignInAResult" in foreign._repr_html_()
    assert "R@10 100.0, ForeignInAResult 66.7" in repr(foreign)
    with pytest.raises(UserError, match="no measure 'ForeignInAResult'"):
        foreign.interval("i2t/ForeignInAResult")


def test_a_measure_that_is_not_known_here_is_asked_for_by_its_exact_name(foreign: Result) -> None:
    found = foreign.of_measures(["R@1", "ForeignInAResult"])
    assert set(found.numbers) == {f"{way}/{one}" for way in ("i2t", "t2i") for one in ("R@1", "ForeignInAResult")}
    alone = foreign.of_measures("ForeignInAResult")
    assert alone.intervals() == {}
    assert "ForeignInAResult" in alone.to_markdown()
    with pytest.raises(UserError, match="no measure 'ForeignIn'"):
        foreign.of_measures(["ForeignIn"])
