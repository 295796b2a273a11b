import json

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.formats import AlteredError
from rungwise.evaluation.benchmarks import BenchmarkResult, format_benchmark, render_benchmark


@pytest.fixture
def result() -> BenchmarkResult:
    values = {"P@1(a)": (0.0, 100.0, 100.0, 100.0), "P@1(b)": (100.0, 0.0)}
    numbers = {"P@1": 62.5, "P@1(a)": 75.0, "P@1(b)": 50.0}
    return BenchmarkResult(
        "mmeb", numbers, dict.fromkeys(numbers, "percent"), "mmeb: first", "folder", "d" * 64, "m" * 64, 3, "0.2.0",
        ("2 placeholders",), {"missing picture": 1}, {"P@1": ("P@1(a)", "P@1(b)")}, values,
        {"P@1(a)": ("1", "2", "3", "4"), "P@1(b)": ("1", "2")},
    )  # fmt: skip


def test_it_survives_json_and_an_alteration_is_found(result):
    assert BenchmarkResult.from_json(result.to_json()) == result
    with pytest.raises(UserError, match="altered"):
        BenchmarkResult.from_json(result.to_json().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(UserError, match="not a rungwise-benchmark/1 file"):
        BenchmarkResult.from_json('{"format": "rungwise-result/1"}')


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("numbers", {"P@1": 62.5, "P@1(a)": 75.0, "P@1(b)": 51.0}, r"P@1 is 62.5, but its values give 63"),
        ("numbers", {"P@1": 62.5, "P@1(a)": 75.0}, "units"),
        ("means", {}, "no number with values per question"),
        ("means", {"P@1": ()}, "numbers that are not there"),
        ("question_ids", {}, "4 values and 0 ids"),
        ("per_question", {"P@1(a)": (0.0, 100.0, 100.0, 500.0), "P@1(b)": (100.0, 0.0)}, "not in 0..100"),
    ],
)
def test_numbers_follow_from_the_values_of_questions(result, part, value, said):
    content = result._content()
    content[part] = value
    content.pop("checksum")
    damaged = BenchmarkResult(**{name: content[name] for name in content})
    with pytest.raises(ValueError, match=said):
        damaged._check_parts()
    assert issubclass(AlteredError, ValueError)


def test_intervals_are_of_questions_drawn_with_replacement(result):
    draws = np.random.default_rng(7)
    own = {name: np.array(result.per_question[name]) for name in ("P@1(a)", "P@1(b)")}
    found = {"P@1": [], "P@1(a)": [], "P@1(b)": []}
    for _ in range(4000):
        means = []
        for name, values in own.items():
            total = 0.0
            for _ in range(len(values)):
                total += values[draws.integers(len(values))]
            found[name].append(total / len(values))
            means.append(total / len(values))
        found["P@1"].append(sum(means) / 2)
    for name, ours in result.intervals(draws=4000).items():
        assert tuple(ours) == pytest.approx(np.quantile(found[name], [0.025, 0.975]), abs=13)
        assert ours.low <= result[name] <= ours.high
    with pytest.raises(UserError, match="draws must be at least 1"):
        result.interval("P@1", draws=0)


def test_all_right_is_wilsons_interval():
    name = {"text": 100.0}
    result = BenchmarkResult(
        "winoground", name, {"text": "percent"}, per_question={"text": (100.0,) * 100},
        question_ids={"text": tuple(map(str, range(100)))},
    )  # fmt: skip
    assert result.interval("text").high == 100
    assert 96 < result.interval("text").low < 97


def test_it_prints_in_every_form(result):
    assert format_benchmark(result, "markdown").startswith("| measure | percent | of |\n")
    assert "P@1(a) & 75.0" in format_benchmark(result, "latex")
    head, first, *_ = format_benchmark(result, "csv").splitlines()
    assert head == "benchmark,name,value,unit,low,high,questions"
    assert first.startswith("mmeb,P@1,62.5,percent,")
    assert first.endswith(",6")
    content = json.loads(format_benchmark(result, "json"))
    assert content["numbers"]["P@1"] == 62.5
    assert len(content["intervals"]["P@1(b)"]) == 2
    table = render_benchmark(result)
    assert table.title == "folder, mmeb"
    assert "left out: 1 with missing picture" in str(table.caption)
    assert "P@1 is the mean of 2 numbers" in str(table.caption)
    assert repr(result).splitlines()[0] == "BenchmarkResult: folder, mmeb"
    assert "<table>" in result._repr_html_()


def test_what_was_not_measured_is_named(result):
    assert "P@1" in result
    assert list(result) == list(result.keys())
    with pytest.raises(KeyError, match="there are P@1, "):
        result["group"]
    with pytest.raises(KeyError, match="no values per question"):
        result.per_query("P@1")


def test_many_data_sets_print_in_few_lines():
    names = [f"P@1(a data set of number {number})" for number in range(2000)]
    numbers = dict.fromkeys(names, 50.0)
    result = BenchmarkResult(
        "mmeb", numbers, dict.fromkeys(names, "percent"), data_name="folder " * 100,
        left_out={"missing picture": 10**9},
        warnings=("a long warning " * 50,) * 500, per_question=dict.fromkeys(names, (0.0, 100.0)),
    )  # fmt: skip
    lines = repr(result).splitlines()
    assert len(lines) < 6
    assert max(map(len, lines)) <= 120
    assert "(2,000)" in lines[1]
