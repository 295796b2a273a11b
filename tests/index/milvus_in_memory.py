"""What pymilvus.MilvusClient does, as far as rungwise asks it, with collections in a dictionary of this process.

The same tests are run against a real server in the whole tier, which shows that the two answer alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

_EXISTS = re.compile(r'exists columns\[("\w+")\]')


class _Nothing:
    """What a JSON field lacks: it is not equal, smaller or greater."""

    def _no(self, _: object) -> bool:
        return False

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _no  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class _Json(dict[str, Any]):
    def __missing__(self, _: str) -> _Nothing:
        return _Nothing()


_WORDS: dict[str, Any] = {
    "true": True,
    "json_contains": lambda held, one: one in held,
    "json_contains_any": lambda held, some: any(one in held for one in some),
    "json_contains_all": lambda held, some: all(one in held for one in some),
    "__builtins__": {},
}
"""What expressions of Milvus name; the rest of those that rungwise writes means the same in Python."""


def _compiled(expression: str) -> CodeType:
    return compile(_EXISTS.sub(r"\1 in columns", expression) or "True", expression, "eval")


class Kept:
    """What a server holds.

    Attributes:
        rows: Of each collection, by id.
        about: Each collection, as describe_collection says it.
        aliases: With the collection that each leads to.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}
        self.about: dict[str, dict[str, Any]] = {}
        self.aliases: dict[str, str] = {}


def client_of(kept: Kept) -> type:
    """What stands in place of pymilvus.MilvusClient."""

    class Client:
        create_schema = staticmethod(MilvusClient.create_schema)
        prepare_index_params = staticmethod(MilvusClient.prepare_index_params)

        def __init__(self, **_: Any) -> None:
            pass

        def close(self) -> None:
            pass

        def create_collection(
            self, name: str, *, properties: Mapping[str, str] | None = None, num_shards: int = 1, **_: Any
        ) -> None:
            kept.rows[name] = {}
            kept.about[name] = {"properties": dict(properties or {}), "num_shards": num_shards}

        def has_collection(self, name: str, **_: Any) -> bool:
            return name in kept.rows

        def list_collections(self, **_: Any) -> list[str]:
            return list(kept.rows)

        def describe_collection(self, name: str, **_: Any) -> dict[str, Any]:
            if name not in kept.about:
                raise MilvusException(100, f"collection not found[collection={name}]")
            return kept.about[name]

        def alter_collection_properties(self, name: str, properties: Mapping[str, str], **_: Any) -> None:
            self.describe_collection(name)["properties"].update(properties)

        def drop_collection(self, name: str, **_: Any) -> None:
            kept.rows.pop(name, None)
            kept.about.pop(name, None)

        def create_alias(self, name: str, alias: str, **_: Any) -> None:
            kept.aliases[alias] = name

        alter_alias = create_alias

        def describe_alias(self, alias: str, **_: Any) -> dict[str, str]:
            if alias not in kept.aliases:
                raise MilvusException(1600, f"alias not found[alias={alias}]")
            return {"collection_name": kept.aliases[alias]}

        def drop_alias(self, alias: str, **_: Any) -> None:
            del kept.aliases[alias]

        def create_index(self, *_: Any, **__: Any) -> None:
            pass

        def load_collection(self, name: str, **_: Any) -> None:
            self.describe_collection(name)

        flush = load_collection

        def describe_index(self, *_: Any, **__: Any) -> dict[str, int]:
            return {"pending_index_rows": 0}

        def upsert(self, name: str, rows: Sequence[Mapping[str, Any]], **_: Any) -> None:
            for row in rows:
                columns = _Json(row.get("columns", {}))
                kept.rows[name][row["id"]] = {**row, "columns": columns}

        insert = upsert

        def delete(self, name: str, *, filter: str, **_: Any) -> None:
            for row in self._fitting(name, filter):
                del kept.rows[name][row["id"]]

        def query(
            self, name: str, *, filter: str, output_fields: Sequence[str], limit: int | None = None, **_: Any
        ) -> list[dict[str, Any]]:
            found = self._fitting(name, filter)
            if list(output_fields) == ["count(*)"]:
                return [{"count(*)": len(found)}]
            some = sorted(found, key=lambda row: row["id"])[:limit]
            return [_fields(row, output_fields) for row in some]

        def search(
            self, name: str, *, data: Sequence[Any], filter: str, limit: int, output_fields: Sequence[str], **_: Any
        ) -> list[list[dict[str, Any]]]:
            found = self._fitting(name, filter)
            vectors = [np.asarray(row["vector"], np.float32) for row in found]
            answers = []
            for query in data:
                scores = np.array([vector @ query for vector in vectors])
                best = np.argsort(-scores, kind="stable")[:limit]
                answers.append(
                    [
                        {"id": found[at]["id"], "entity": _fields(found[at], output_fields), "distance": scores[at]}
                        for at in best
                    ]
                )
            return answers

        def _fitting(self, name: str, expression: str) -> list[dict[str, Any]]:
            self.describe_collection(name)
            fits = _compiled(expression)
            return [row for row in kept.rows[name].values() if eval(fits, _WORDS, row)]  # an expression of rungwise

    return Client


def _fields(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return dict(row) if list(names) == ["*"] else {name: row[name] for name in names}
