from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.evaluation.inputs._trec_ids import WrittenIds, direction_in_name, file_of_direction, trec_ids


@given(
    st.lists(st.text("ab% 25\t\u00a0\u2028\u00e9/.#0\n", min_size=1, max_size=6), min_size=1, max_size=6, unique=True)
)
def test_every_written_id_is_found_at_its_own_place_or_all_are_refused(ids):
    try:
        written = trec_ids(ids, "image")
    except UserError:
        return
    find = WrittenIds(ids)
    for place, one in enumerate(written):
        assert one.split() == [one]
        assert find(one) == place


def test_ids_without_blanks_stay_as_they_are():
    assert trec_ids(["50%.jpg", "a%20b", "n\u00e4me#0"], "image") == ("50%.jpg", "a%20b", "n\u00e4me#0")


def test_an_empty_id_and_two_that_would_be_one_are_refused():
    with pytest.raises(UserError, match="^caption ids: one is empty"):
        trec_ids(["a", ""], "caption")
    with pytest.raises(UserError, match="^image ids 'a b' and 'a%20b' are both a%20b in a TREC file"):
        trec_ids(["a b", "a%20b"], "image")


def test_the_direction_stands_before_the_ending():
    for name in ("run.trec", "run", "my.run.txt"):
        for way in ("i2t", "t2i"):
            assert direction_in_name(file_of_direction(Path(name), way)) == way
        assert direction_in_name(name) is None
    assert direction_in_name("i2t.run.old.trec") is None
