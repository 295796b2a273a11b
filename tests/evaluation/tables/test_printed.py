import pytest

from rungwise.core import UserError
from rungwise.evaluation import PAPERS, matching, printed, table_named, tables_of


def test_roman_and_arabic_figures_name_the_same_table():
    for asked in ("1", "I", "i", "Table I", "table 1", " 1 "):
        assert table_named("convse", asked) == "Table I"
    assert table_named("ladder_loss", "IV") == "Table 4"


@pytest.mark.parametrize("asked", ["", "0", "9", "VII", "Table", "1.5", "x"])
def test_a_table_that_is_not_there_is_refused_with_those_that_are(asked):
    with pytest.raises(
        UserError, match=r"^convse has no table .*; there are convse:I, convse:II, convse:III, convse:IV$"
    ):
        table_named("convse", asked)


def test_every_row_is_found_by_its_own_facts():
    for paper in PAPERS:
        for row in printed(paper):
            facts = {name: value for name, value in row.facts.items() if value}
            found = matching({"paper": paper, "table": row.table, "dataset": row.dataset, **facts})
            assert row in found
            assert {one.table for one in found} == {row.table}
        assert tables_of(paper)


def test_one_printed_line_may_be_rows_of_two_protocols():
    rows = matching({"paper": "ladder_loss", "table": 1, "method": "CVSE++", "backbone": "VGG19", "finetuned": False})
    assert {row.protocol for row in rows} == {"coco-1k-one-caption", "coco-1k"}
    assert {row.facts["finetuned"] for row in rows} == {"no"}


def test_settings_of_a_row_are_facts():
    (row, graded) = matching({"paper": "sam", "table": "5", "tau": 10, "sampling": "RS", "original_triplet": False})
    assert {row.relevance, graded.relevance} == {"", "SPICE"}
    rows = matching({"paper": "ladder_loss", "table": 3, "L": 2, "beta2": 0.25})
    assert {row.facts["beta2"] for row in rows} == {"0.25"}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"paper": "nature", "table": "1"}, "paper 'nature' is not known"),
        ({"table": "1"}, "paper '' is not known"),
        ({"paper": "vsepp"}, "vsepp has no table ''"),
        ({"paper": "vsepp", "table": 1, "row": "9.9"}, r"vsepp, Table 1: no row whose row is '9.9'; there are 1.1, "),
        ({"paper": "vsepp", "table": 1, "bones": "x"}, r"no row whose bones is 'x'; there are \(not said\)"),
        ({"paper": "vsepp", "table": 1, "method": "UVS", "finetuned": True}, "no row whose finetuned is 'yes'"),
    ],
)
def test_a_reference_that_fits_no_row_is_refused(reference, said):
    with pytest.raises(UserError, match=said) as caught:
        matching(reference)
    assert "\n" not in str(caught.value)
