import pytest

from rungwise.core import UserError
from rungwise.planning import Need, parse_count


@pytest.mark.parametrize(
    ("typed", "count"),
    [("10k", 10_000), ("1M", 10**6), ("5b", 5 * 10**9), ("1_000", 1000), ("2.5M", 2_500_000), (" 7 ", 7), ("0", 0)],
)
def test_numbers_are_read_as_people_write_them(typed: str, count: int) -> None:
    assert parse_count(typed) == count


@pytest.mark.parametrize(
    "typed", ["", "many", "-5", "1.5", "1e6", "nan", "inf", "10kk", "9" * 400, "10 M pictures", "²"]
)
def test_what_is_no_number_is_said_in_a_line(typed: str) -> None:
    with pytest.raises(UserError, match="is no number of pictures; write it as") as said:
        parse_count(typed)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pictures": 0}, "pictures: there must be at least 1"),
        ({"pictures": -1}, "pictures: there must be at least 1"),
        ({"pictures": 10**13}, "at most 1,000,000,000,000"),
        ({"dimension": 0}, "dimension: must lie between 1 and 65,536, got 0"),
        ({"store": "faiss"}, "store: there is no 'faiss'; there are auto, exact, lance, milvus"),
        ({"store": "exact", "half": True}, "half: the store exact keeps full precision"),
        ({"store": "milvus", "half": True}, "half: the store milvus keeps full precision"),
        ({"queries": 0.0}, "queries: must be above 0"),
        ({"queries": float("nan")}, "queries: must be above 0"),
        ({"memory": -1.0}, "memory: must be above 0"),
        ({"within": float("inf")}, "within: must be above 0"),
        ({"pictures_per_second": 0.0}, "pictures per second: must be above 0"),
        ({"captions": -1.0}, "captions: a picture has between 0 and 10,000"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        Need(**({"pictures": 10} | wrong))
    assert "\n" not in str(refused.value)


def test_captions_are_rows_too() -> None:
    assert Need(1000).rows == 1000
    assert Need(1000, captions=2.5).rows == 3500
