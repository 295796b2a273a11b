from __future__ import annotations

from typing import Any

import pytest

from rungwise.index import parse_where
from rungwise.index.stores.milvus import MilvusStore
from rungwise.index.stores.milvus import _newest as newest_module
from rungwise.index.stores.milvus._collection import Collection
from rungwise.similarity import Cosine

BY = ("taken", "modified")


def test_the_newest_of_many_rows_are_found_without_reading_the_others(
    milvus_in_memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_module, "_LEAST", 8)
    names = [f"p{number:04}" for number in range(600)]
    days = [f"{2000 + number % 20}-{number % 12 + 1:02}-{number % 28 + 1:02}" for number in range(600)]
    records: list[dict[str, Any]] = [
        {("taken" if number % 3 else "modified"): f"{day}T10:20:{number % 60:02}", "title": f"{number % 7}"}
        for number, day in enumerate(days)
    ]
    dates = dict(zip(names, [one.get("taken") or one["modified"] for one in records], strict=True))
    order = sorted(names, key=lambda one: dates[one], reverse=True)
    with MilvusStore.create(f"{milvus_in_memory}/pets", "store", 1, Cosine(), columns={"taken": "text"}) as store:
        store.upsert(names, [[1.0]] * len(names), records)
        read: list[int] = []
        each = Collection.rows

        def rows(self: Collection, only: str, names: list[str], limit: int | None = None) -> list[dict[str, Any]]:
            found = each(self, only, names, limit)
            read.append(0 if names == ["count(*)"] else len(found))
            return found

        monkeypatch.setattr(Collection, "rows", rows)
        for count, offset in ((3, 0), (20, 5), (1, 50)):
            read.clear()
            assert store.newest(count, offset, by=BY) == tuple(order[offset : offset + count])
            assert sum(read) <= max(4 * (count + offset), 8)
        read.clear()
        sevens = [one for one in order if int(one[1:]) % 7 == 3]
        assert store.newest(2, 1, parse_where("title contains '3'"), by=BY) == tuple(sevens[1:3])
        assert sum(read) < 300
        assert store.newest(999, by=BY) == tuple(order)


def test_more_rows_of_one_second_than_are_wanted_stand_in_order_of_their_ids(
    milvus_in_memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_module, "_LEAST", 2)
    names = [f"p{number:02}" for number in range(40)]
    with MilvusStore.create(f"{milvus_in_memory}/pets", "store", 1, Cosine()) as store:
        store.upsert(names[::-1], [[1.0]] * 40, [{"modified": "2020-05-31T10:20:30Z"}] * 40)
        assert store.newest(3, 1, by=BY) == ("p01", "p02", "p03")
