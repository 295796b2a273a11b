import csv
import io
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError, limited
from rungwise.data.files import separated_records

PATH = Path("a.csv")
LONG = csv.field_size_limit() + 1
PIECES = st.lists(st.sampled_from(['"', '""', ",", "\n", "\r\n", "\r", "a", "é", " ", '","', '"\n"']), max_size=20)


def by_the_reader(text: str, delimiter: str, *, quoted: bool) -> list[tuple[int, list[str]]] | str:
    """What the reader of Python says of a text, one record after the other."""
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    found = []
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return found
        except csv.Error as error:
            return f"line {line}: {error}"
        if cells:
            found.append((line, cells))


@given(PIECES, PIECES, PIECES, st.booleans())
def test_long_cells_are_read_by_the_rules_of_the_reader(
    before: list[str], within: list[str], after: list[str], quoted: bool
) -> None:
    """The filling makes a cell longer than the reader takes; a sign in its place shows what the reader would say."""
    text = "".join([*before, "#", *within, "#", *after])
    expected = by_the_reader(text, ",", quoted=quoted)
    filled = text.replace("#", "x" * LONG)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=f"a.csv, {expected.partition(': ')[0]}"):
            list(separated_records(PATH, filled, ",", quoted=quoted))
        return
    found = list(separated_records(PATH, filled, ",", quoted=quoted))
    assert found == [(line, [cell.replace("#", "x" * LONG) for cell in cells]) for line, cells in expected]


def test_the_limit_of_the_process_stays_as_it_is() -> None:
    before = csv.field_size_limit()
    seen = []

    def read() -> None:
        seen.extend(csv.field_size_limit() for _ in separated_records(PATH, f"a,{'x' * LONG}\n" * 3, ","))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [before] * 9
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("text", ["a,{}\n", '"a","{}"\n', '"a","{}', "é,{}\n"])
@pytest.mark.parametrize("size", [LONG + 10, 1000])
def test_a_cell_beyond_the_limit_names_the_setting(text: str, size: int) -> None:
    with limited(line_bytes=size - 10), pytest.raises(UserError) as caught:
        list(separated_records(PATH, text.format("x" * size), ","))
    assert "line 1, a cell: " in str(caught.value) or "unexpected end of data" in str(caught.value)
    if '"{}' not in text or text.count('"') == 4:
        assert "set RUNGWISE_MAX_LINE_BYTES=" in str(caught.value)
    assert "\n" not in str(caught.value)
