import json

import pytest

from rungwise.core import UserError
from rungwise.relevance.human import Finder, read_id_lists


def test_an_image_is_found_by_its_id_its_name_and_its_number():
    find = Finder(("val/COCO_val2014_000000391895.jpg", "770337", "b.jpg#0"))
    asked = [
        "val/COCO_val2014_000000391895.jpg",
        "COCO_val2014_000000391895.jpg",
        "COCO_val2014_000000391895",
        "391895",
    ]
    assert [find(one) for one in asked] == [0] * 4
    assert [find("COCO_val2014:sentid:770337"), find("b.jpg#0"), find("b.jpg"), find("9")] == [1, 2, None, None]


def test_an_ambiguous_number_names_no_image():
    find = Finder(("train_7.jpg", "val_7.jpg"))
    assert [find("7"), find("train_7"), find("val_7.jpg")] == [None, 0, 1]


def test_ids_of_thousands_of_digits_are_no_numbers(tmp_path):
    digits = "9" * 5000
    find = Finder((f"COCO_{digits}.jpg", "b.jpg"))
    assert [find(f"COCO_{digits}"), find(digits)] == [0, None]
    file = tmp_path / "lists.json"
    file.write_text(json.dumps({f"COCO_{digits}": [digits, 7]}))
    assert read_id_lists(file) == {f"COCO_{digits}": [digits, "7"]}


def test_what_is_no_object_of_lists_is_refused(tmp_path):
    file = tmp_path / "lists.json"
    for content in ("[1]", '{"a": 1}'):
        file.write_text(content)
        with pytest.raises(UserError, match="lists.json: is not an object of lists of ids"):
            read_id_lists(file)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": [' + "9" * 5000 + "]}", '{"a": [NaN]}', '{"a": [1', "{}}"])
def test_json_that_is_none_is_refused_in_one_line(tmp_path, content):
    file = tmp_path / "lists.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"lists.json: not valid JSON \(.*\); correct it") as caught:
        read_id_lists(file)
    assert "\n" not in str(caught.value)
