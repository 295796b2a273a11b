import json
import math

import numpy as np
import pytest

import rungwise
from rungwise.core.errors import UserError
from rungwise.evaluation import Result, evaluate


@pytest.fixture
def result():
    return evaluate(
        similarity=np.array([[0.9, 0.1, 0.4], [0.2, 0.3, 0.1], [0.5, 0.5, 0.5]]),
        image_of_caption=[0, 1, 1],
        relevance=np.eye(3),
        measures=["R@1", "rsum", "CS@3"],
        data_name="tiny",
        data_hash="d4",
        model_hash="m0",
        seed=7,
    )


@pytest.mark.parametrize("per_query", [False, True])
def test_a_result_survives_the_file(result, tmp_path, per_query):
    result.to_json(tmp_path / "deep" / "result.json", per_query=per_query)
    again = Result.from_json(tmp_path / "deep" / "result.json")
    assert again == result
    if per_query:
        np.testing.assert_array_equal(again.per_query("i2t/R@1"), result.per_query("i2t/R@1"))
    else:
        with pytest.raises(KeyError, match="no values per query here; there are none"):
            again.per_query("i2t/R@1")


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
    Result(**{**vars(result), "numbers": values, "_per_query": nobody}).to_json(tmp_path / "r.json", per_query=True)
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
    result.to_json(path, per_query=True)
    whole = json.loads(path.read_text())
    name = next(iter(whole["per_query"]))
    for values, message in (
        (whole["per_query"][name][:-1], f"per_query of {name}: \\d+ values for \\d+ queries"),
        (["high", *whole["per_query"][name][1:]], rf"per_query.{name}.0.*: Input should be a valid number"),
    ):
        path.write_text(json.dumps({**whole, "per_query": {**whole["per_query"], name: values}}))
        with pytest.raises(UserError, match=rf"r\.json: the result is damaged \({message}.*\); evaluate again"):
            Result.from_json(path)
