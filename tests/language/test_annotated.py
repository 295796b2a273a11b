"""Tests tests/language/annotated.py: the captions annotated by hand are complete, well formed, and found again."""

from collections import Counter
from itertools import chain

import pytest

from tests.language.annotated import REAL, WRITTEN, annotated, rows, text_hash, written

ALL = [(path.name, number, row) for path in (REAL, WRITTEN) for number, row in enumerate(rows(path), start=1)]


def test_there_are_200_real_captions_in_two_halves_and_no_text_of_theirs():
    real = rows(REAL)
    assert Counter((row["source"], row["half"]) for row in real) == {
        (source, half): 50 for source in ("coco5k", "flickr30k") for half in ("dev", "test")
    }
    assert len({(row["source"], row["id"]) for row in real}) == 200
    assert {tuple(row) for row in real} == {("source", "id", "text_hash", "half", "tuples")}


def test_there_are_60_written_captions_each_another():
    assert len(rows(WRITTEN)) == len({caption.text for caption in written()}) == 60
    assert Counter(caption.half for caption in written()) == {"dev": 30, "test": 30}


def test_tuples_have_one_to_three_parts_in_lower_case_and_none_stands_twice():
    for name, number, row in ALL:
        found = [tuple(each) for each in row["tuples"]]
        assert found, f"{name}, line {number}: no tuples"
        assert len(found) == len(set(found)), f"{name}, line {number}: a tuple twice"
        assert all(1 <= len(each) <= 3 for each in found), f"{name}, line {number}: {found}"
        for part in chain.from_iterable(found):
            assert part == part.lower().strip() != "", f"{name}, line {number}: {part!r}"


def test_what_tuples_speak_of_is_an_object_of_the_caption():
    for name, number, row in ALL:
        objects = {each[0] for each in row["tuples"] if len(each) == 1}
        for each in row["tuples"]:
            assert each[0] in objects, f"{name}, line {number}: the subject of {each} is no object"
            if len(each) == 3 and not each[1].startswith("without"):
                assert each[2] in objects, f"{name}, line {number}: the object of {each} is no object"


@pytest.mark.real_data
def test_every_real_caption_is_found_by_its_id_with_its_hash(real_data):
    captions = annotated(real_data)
    assert [text_hash(caption.text) for caption in captions] == [row["text_hash"] for row in rows(REAL)]
    assert [caption.source for caption in captions] == [row["source"] for row in rows(REAL)]
