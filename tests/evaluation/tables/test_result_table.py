import json

import pytest

from rungwise.evaluation import PAPERS, matching, tables_of
from rungwise.evaluation.tables import Ours, paper_table
from tests.evaluation.tables.test_paper_table import RECALLS, ROW, ours, result_of


@pytest.mark.parametrize("paper", list(PAPERS))
@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_longer_than_the_terminal(paper, width):
    for table in tables_of(paper):
        for line in paper_table(paper, table).to_text(width).splitlines():
            assert len(line) <= width, line


def test_every_number_is_printed():
    text = paper_table("convse", "I").to_text()
    assert text.count("rsum") == 2  # its own group, in the block of each dataset
    assert "474.4 ±0.7" in text
    assert "0.235" in paper_table("ladder_loss", "1").to_text()
    assert "38.66" in paper_table("cmal2r", "1").to_text()


def test_a_doubted_number_is_marked_and_explained():
    text = paper_table("cmal2r", "1").to_text()
    assert "31.20?" in text
    assert "? ml-CCA, MAP: mean of parts=0.3200" in text


def test_ours_are_marked_noted_and_what_stands_nowhere_is_below():
    shown = ours(ROW, *(result_of({name: value + seed for name, value in RECALLS.items()}) for seed in (0, 1)))
    missed = ours(ROW, result_of(RECALLS, split="val"), name="another run of a long name that is to be wrapped here")
    table = paper_table("vsepp", "1", [Ours(shown.name, shown.results, shown.stands_for, ("epochs [2]",)), missed])
    text = table.to_text()
    assert "> mine [1]" in text
    assert "60.5 ±0.7" in text
    assert "[1] epochs [2]" in text
    below = text.partition("Not in the table:")[2]
    assert "another run of a long name" in below
    assert max(map(len, text.splitlines())) <= 80


def test_markdown_has_a_table_for_each_block():
    shown = ours(ROW, result_of(RECALLS), name="a|b")
    text = paper_table("vsepp", "1", [shown]).to_markdown()
    assert text.count("|:--|") == 3
    assert "| **> a\\|b** | 60.0 | 90.0 | 1.0 | 50.0 | 91.0 | 1.0 |" in text


def test_json_has_everything():
    table = paper_table("vsepp", "1", [ours(ROW, result_of(RECALLS))])
    read = json.loads(table.to_json())
    assert (read["paper"], read["table"], len(read["blocks"])) == ("vsepp", "Table 1", 3)
    mine = [line for block in read["blocks"] for line in block["lines"] if line["ours"]]
    assert mine[0]["cells"]["i2t/R@1"] == {"value": 60.0, "deviation": None, "doubt": "", "mark": ""}
    assert matching(ROW)[0].method in read["blocks"][1]["lines"][8]["name"]
