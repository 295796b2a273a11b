import csv
import io
import json

import numpy as np
import pytest
from rich.console import Console

from rungwise.evaluation import (
    Provenance,
    RankedLists,
    by_class,
    evaluate,
    format_result,
    render_by_class,
    render_published,
    render_table,
)
from rungwise.evaluation.tables import PublishedRow


def text_of(result, width=80):
    console = Console(width=width, record=True, color_system=None, file=io.StringIO())
    console.print(render_table(result))
    return console.export_text()


def test_directions_stand_side_by_side_in_eighty_columns():
    similarity = np.random.default_rng(0).random((3, 6))
    result = evaluate(
        similarity=similarity,
        image_of_caption=[0, 0, 0, 1, 1, 1],
        relevance=similarity,
        measures=["R@1", "rsum", "MedR", "CS@100", "NCS@10(non_gt)", "SR@10(m=5,non_gt)", "Nsum(non_gt)"],
        provenance=Provenance(data_name="a collection"),
    )
    text = text_of(result)
    assert max(map(len, text.splitlines())) <= 80
    [line] = [line for line in text.splitlines() if " CS@100 " in line]
    assert line.count("1.0000") == 2
    assert "rsum" in text
    assert "a collection, protocol full" in text
    assert "3 images x 6 captions (0 to 3 an image)" in text
    assert "i2t: 1 of 3 queries no positive, left out (MedR, R@1, R@10, R@5)" in text


def test_numbers_that_do_not_exist_are_dashes():
    result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1"])
    broken = type(result)(**{**vars(result), "numbers": {**result.numbers, "i2t/R@1": float("nan")}})
    [line] = [line for line in text_of(broken).splitlines() if " R@1 " in line]
    assert " - " in line


def test_a_direction_without_lists_has_no_column():
    lists = RankedLists({"t2i": [[0, 1], [1, 0]]}, (2, 2))
    text = text_of(evaluate(similarity=lists, image_of_caption=[0, 1], measures=["R@1"]))
    assert "text to image" in text
    assert "image to text" not in text


ROW = PublishedRow("sam", "Table 2", "CVSE_x & co", "coco", 2, "full", {"i2t/R@1": 60.0, "rsum": 400.0})


@pytest.fixture
def result():
    return evaluate(
        similarity=np.eye(2), image_of_caption=[0, 1], relevance=np.eye(2), measures=["R@1", "CS@2", "rsum"]
    )


def test_markdown_has_as_many_cells_in_every_line(result):
    text = format_result(result, "markdown", [ROW])
    first, second, notes = text.split("\n\n")
    for table in (first, second):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "| CS@2 | 1.0000 | 1.0000 | correlation |" in first
    assert "| CVSE_x & co (sam, Table 2) | 60.0 | 400.0 |" in second
    assert "Is An Image Worth Five Sentences?" in notes


def test_latex_escapes_what_is_special(result):
    text = format_result(result, "latex", [ROW])
    assert r"CVSE\_x \& co (sam, Table 2) & 60.0 & 400.0 \\" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2


def test_csv_and_json_read_back_with_all_digits(result):
    result = evaluate(similarity=np.random.default_rng(0).random((3, 3)), image_of_caption=[0, 1, 2], measures=["R@1"])
    rows = list(csv.DictReader(io.StringIO(format_result(result, "csv", [ROW], ours="mine"))))
    assert {row["name"]: float(row["value"]) for row in rows if row["source"] == "mine"} == result.numbers
    assert [row["value"] for row in rows if row["source"] != "mine"] == ["60.0"]
    read = json.loads(format_result(result, "json", [ROW]))
    assert read["numbers"] == result.numbers
    assert read["published"][0]["numbers"]["rsum"] == 400.0
    assert read["gallery"] == {"i2t": [3], "t2i": [3]}


def test_bounds_follow_their_number_everywhere(result):
    bounds = {"i2t/R@1": (90.0, 100.0), "rsum": (500.0, float("nan"))}
    assert "100.0 [90.0, 100.0]" in format_result(result, "markdown", intervals=bounds)
    assert "600.0 [500.0, -]" in format_result(result, "latex", intervals=bounds)
    rows = list(csv.DictReader(io.StringIO(format_result(result, "csv", intervals=bounds))))
    assert [(row["low"], row["high"]) for row in rows if row["name"] in bounds] == [("90.0", "100.0"), ("500.0", "")]
    assert json.loads(format_result(result, "json", intervals=bounds))["intervals"]["rsum"] == [500.0, None]


def test_published_rows_stand_below_ours(result):
    lines = render_published(result, "mine", [ROW]).splitlines()
    assert lines[0].split() == ["i2t/R@1", "rsum"]
    assert lines[1].split()[:2] == ["100.0", "600.0"]
    assert lines[2].endswith("CVSE_x & co (sam, Table 2)")


@pytest.mark.parametrize("count", [1, 6, 15])
def test_tables_by_class_are_eighty_columns_wide_whatever_is_measured(count):
    names = ["MAP", "MAP@50(of_possible)", "CS@2", *(f"R@{k}" for k in range(1, 20))][:count]
    labels = ["a class of a very long name, as some collections have them, which goes on and on", ()]
    bare = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], relevance=np.eye(2), measures=names)
    result = type(bare)(**{**vars(bare), "by_class": by_class(bare, labels)})
    console = Console(width=80, record=True, color_system=None, file=io.StringIO())
    for table in render_by_class(result):
        console.print(table)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("100.0") >= 2
    assert "…" not in text
    assert " ".join(text.split()).count("i2t: queries without a label, which are in no class: 1") == 1
    assert "class & queries" in format_result(result, "latex")
