import json
import math

import pytest

from rungwise.core import UserError
from rungwise.relevance.human._rows import grade_of, number_of, ratings_of, rows_of, text_of, texts_of

ROWS = [{"image": "a", "caption": "one, two", "scores": [3, 4.5]}, {"image": "b", "caption": "three", "scores": [1]}]
TABLE = 'image,caption,scores\na,"one, two","[3, 4.5]"\nb,three,[1]\n'


@pytest.mark.parametrize(
    "content",
    [
        TABLE,
        TABLE.replace("\n", "\r\n"),
        'Image\tCaption \tSCORES\na\tone, two\t"[3, 4.5]"\n\nb\tthree\t[1]\n',
        json.dumps(ROWS),
        json.dumps(ROWS, indent=1),
        "".join(json.dumps(row) + "\n" for row in ROWS),
        "\n" + "\n\n".join(json.dumps(row) for row in ROWS),
    ],
    ids=["csv", "line ends", "tsv", "json", "indented json", "json lines", "blank lines"],
)
def test_all_ways_of_writing_rows_say_the_same(tmp_path, content):
    file = tmp_path / "rows"
    file.write_bytes(content.encode())
    table = rows_of(file)
    assert table.columns == ("image", "caption", "scores")
    found = [(text_of(cells, ("image",), at), ratings_of(cells, ("scores",), at)) for at, cells in table.rows]
    assert found == [("a", [3, 4.5]), ("b", [1])]


def test_one_object_is_one_row(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(ROWS[0], indent=2))
    ((where, cells),) = rows_of(tmp_path / "one.json").rows
    assert (where, cells["caption"]) == (f"{tmp_path / 'one.json'}, entry 1", "one, two")


def test_places_are_lines(tmp_path):
    (tmp_path / "rows.csv").write_text('image,text\na,"two\nlines"\nb,one\n')
    assert [where.rpartition(", ")[2] for where, _ in rows_of(tmp_path / "rows.csv").rows] == ["line 2", "line 4"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('image,caption\na,"b\n', "line 2: unexpected end of data; correct the quotation marks"),
        ('[{"a": 1}, 2]', "entry 2: is no object of columns"),
        ('{"a": 1}\n{"a": 2\n', "line 2: not valid JSON"),
        ('{"a": 1}\n{"a": NaN}\n', "line 2: not valid JSON"),
        ("", "the file is empty"),
    ],
    ids=["quotes", "no object", "broken line", "NaN", "empty"],
)
def test_damaged_rows_get_one_line(tmp_path, content, said):
    (tmp_path / "rows").write_text(content)
    with pytest.raises(UserError, match=said) as caught:
        list(rows_of(tmp_path / "rows").rows)
    assert "\n" not in str(caught.value)


def test_lists_of_texts_stand_in_a_cell_or_in_columns():
    assert texts_of({"references": [" a ", "", "b"]}, "references", "") == ("a", "b")
    assert texts_of({"references": '["a", "b"]'}, "references", "") == ("a", "b")
    assert texts_of({"reference1": "a", "reference_2": "b", "referencer": "c"}, "references", "") == ("a", "b")
    assert texts_of({"references": "just one"}, "references", "") == ("just one",)
    assert texts_of({}, "references", "") == ()
    with pytest.raises(UserError, match="line 2: references is no list of texts"):
        texts_of({"references": ["a", 1]}, "references", "line 2")


def test_empty_ratings_are_none_beside_others_and_no_ratings_alone():
    found = ratings_of({"score_1": "4", "score_2": "", "score_3": "2"}, ("scores",), "")
    assert found[0] == 4
    assert math.isnan(found[1])
    assert ratings_of({"rater1": 1, "annotator-2": 2, "judge 3": 3, "image1": "x"}, (), "") == [1, 2, 3]
    for cells in ({}, {"scores": []}, {"score_1": "", "score_2": ""}):
        with pytest.raises(UserError, match="line 2: has no rating"):
            ratings_of(cells, ("scores",), "line 2")
    with pytest.raises(UserError, match="line 2: '' is no grade"):
        ratings_of({"scores": ""}, ("scores",), "line 2")


@pytest.mark.parametrize("cell", ["good", "nan", "inf", "1e39", "9" * 5000, True, None, [1], {"a": 1}])
def test_what_is_no_number_is_no_grade(cell):
    assert number_of(cell) is None
    with pytest.raises(UserError, match="line 2: .* is no grade; write a number") as caught:
        grade_of(cell, "line 2")
    assert len(str(caught.value)) < 200


def test_a_text_is_one_text():
    assert text_of({"id": 7.5}, ("image", "id"), "") == "7.5"
    with pytest.raises(UserError, match="entry 1: image is no text but"):
        text_of({"image": ["a"]}, ("image",), "entry 1")
