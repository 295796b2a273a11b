from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.quality.typed_queries import GivenQuery, read_queries


def test_plain_lines_and_json_lines_may_stand_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "queries.txt"
    file.write_text('wallet\n\n  black belt \n{"query": "red", "relevant": ["a.jpg"]}\n{"query": "sea"}\nwallet\n')
    assert read_queries(file) == (
        GivenQuery("wallet"),
        GivenQuery("black belt"),
        GivenQuery("red", ("a.jpg",)),
        GivenQuery("sea"),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": 3}', "line 2: give the fields query and relevant"),
        ('{"relevant": []}', "line 2: give the fields query and relevant"),
        ('{"query": "a", "other": 1}', "line 2: give the fields query and relevant"),
        ('{"query": "a", "relevant": "b.jpg"}', "line 2: relevant is no list of ids"),
        ('{"query": "a", "relevant": [3]}', "line 2: relevant is no list of ids"),
        ('{"query": ', "line 2"),
        ("x" * 100_000, "line 2: the query"),
    ],
)
def test_a_fault_names_its_line(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_text(f"wallet\n{line}\n")
    with pytest.raises(UserError) as error:
        read_queries(file)
    assert message in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_without_a_query_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "queries.txt"
    file.write_text("\n  \n")
    with pytest.raises(UserError, match="the file is empty"):
        read_queries(file)
