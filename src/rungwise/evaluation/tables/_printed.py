"""Look-up of printed tables by number, and of the rows that a reference names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rungwise.core import UserError
from rungwise.evaluation.tables._published_rows import PublishedRow, printed


def tables_of(paper: str) -> tuple[str, ...]:
    """Result tables of a paper, by the names that it gives them; UserError for an unknown paper.

    >>> tables_of("convse")
    ('Table I', 'Table II', 'Table III', 'Table IV')
    """
    return tuple(dict.fromkeys(row.table for row in printed(paper)))


def table_named(paper: str, number: str) -> str:
    """A paper's own name of a table, found by its number in roman or arabic figures.

    >>> table_named("convse", "2"), table_named("convse", "ii"), table_named("sam", "Table 3")
    ('Table II', 'Table II', 'Table 3')
    """
    tables = tables_of(paper)
    asked = _figure(number)
    for table in tables:
        if _figure(table) == asked:
            return table
    known = ", ".join(f"{paper}:{table.removeprefix('Table ')}" for table in tables)
    raise UserError(f"{paper} has no table {number!r} of results; there are {known}")


def matching(reference: Mapping[str, Any]) -> tuple[PublishedRow, ...]:
    """Rows that a reference names: ``{paper, table, row | method, backbone, finetuned, train_set, ...}``.

    Args:
        reference: ``paper`` and ``table``, and any of ``dataset``, ``test_images`` and the facts of a row. Yes and no
            may come as the truth values that YAML makes of them.

    Returns:
        Rows of one table; several where a printed line has measures of several protocols.

    Raises:
        UserError: If the table has no row of these facts; the message names the first fact that none has.

    >>> [row.method for row in matching({"paper": "vsepp", "table": 3, "row": "3.12"})]
    ['VSE++, VGG19, fine-tuned, trained on RC']
    >>> matching({"paper": "vsepp", "table": 3, "method": "CLIP"})
    Traceback (most recent call last):
    rungwise.core.UserError: vsepp, Table 3: no row whose method is 'CLIP'; there are UVS, Embedding Network, ...
    """
    paper = str(reference.get("paper", ""))
    table = table_named(paper, str(reference.get("table", "")))
    rows = [row for row in printed(paper) if row.table == table]
    for name, wanted in reference.items():
        if name in ("paper", "table"):
            continue
        text = ("no", "yes")[wanted] if isinstance(wanted, bool) else str(wanted)
        fitting = [row for row in rows if _fact(row, name) == text]
        if not fitting:
            known = ", ".join(dict.fromkeys(_fact(row, name) or "(not said)" for row in rows))
            raise UserError(f"{paper}, {table}: no row whose {name} is {text!r}; there are {known}")
        rows = fitting
    return tuple(rows)


def _fact(row: PublishedRow, name: str) -> str:
    if name == "dataset":
        return row.dataset
    return str(row.test_images) if name == "test_images" else row.facts.get(name, "")


_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6"}


def _figure(table: str) -> str:
    """Number of a table in arabic figures."""
    bare = table.strip().lower().removeprefix("table").strip()
    return _ROMAN.get(bare, bare)
