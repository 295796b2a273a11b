"""An index in Milvus: its collections, its small files, and how a new one takes its place.

An index is made under names of its own, a generation: ``pets_1f2e3d4c_pictures``, ``pets_1f2e3d4c_captions`` and
``pets_1f2e3d4c``, which keeps the small files. The alias ``pets`` leads to the generation that counts, and is moved in
one step once the new one is whole. The one before stays for those who search it meanwhile, until the next one is made
or the index is compacted.

Who makes a generation writes the time into the properties of its collection every minute (:func:`being_written`), and
empties that entry once the generation counts. One with a time of the last hour is a draft that somebody writes to now:
nobody else removes it.

The properties of a generation's collection hold the valid state of each small file and are replaced in one step: the
whole of ``index.json``, and of larger files the checksum and the names of the rows that hold their parts.

Collections of somebody else may have any name, ``pets_20261125`` too. So every collection of ours has properties whose
names begin with ``rungwise``, and only those are ever removed.

Every function that asks the server raises a UserError if it does not answer.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import short_repr
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.milvus._filters import one_of
from rungwise.index.stores.milvus._server import Address, MissingError, Server

__all__ = [
    "OURS",
    "Swept",
    "address_in",
    "being_written",
    "collection_at",
    "drafted",
    "drop",
    "is_index",
    "publish",
    "read_file",
    "sweep",
    "write_file",
]

OURS = "rungwise"
"""Prefix of the names of properties by which our collections are told from those of others."""
_GENERATION_OF, _FILE = f"{OURS}.generation_of", f"{OURS}.file."
_WRITTEN_AT = f"{OURS}.written_at"
"""Property with the seconds since 1970 at which somebody still wrote to a draft; empty for a whole generation."""
_BEAT_SECONDS, _SILENT_SECONDS = 60.0, 3600.0
_SMALL = 16 << 10
"""Bytes up to which a file stands in the properties itself."""
_PART_BYTES = 48_000
_MOST_BYTES = 64 << 20
_ATTEMPTS = 4
_ID, _CONTENT, _VECTOR = "id", "content", "vector"
_GENERATION = re.compile(r"(?P<name>.+)_(?P<generation>[0-9a-f]{8})")


@dataclass(frozen=True)
class Swept:
    """Generations of an index that do not count: those that were removed, and drafts that somebody writes to now."""

    removed: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()

    __repr__ = short_repr


def address_in(place: Path | str) -> Address:
    """Milvus's address of a place; refuses a place that is none.

    >>> str(address_in("milvus://localhost/pets"))
    'milvus://localhost:19530/pets'
    """
    if (address := Address.of(place)) is None:
        raise UserError(f"{place}: is no address of Milvus; write milvus://HOST:PORT/NAME")
    return address


def collection_at(server: Server, name: str) -> str:
    """Milvus's name of the collection of a store; the server's address is that of an index or of a store alone."""
    return f"{_root(server) or server.address.name}_{name}"


def drafted(address: Address) -> Path:
    """Make a new generation of an index, which nobody sees until :func:`publish`; gives its place.

    Refuses a name that somebody else's collection or alias has.
    """
    with closing(Server(address)) as server:
        before = server.behind(address.name)
        if server.has(address.name) if before is None else not _is_ours(server, before):
            raise UserError(f"{address}: a collection of somebody else stands here; choose another name")
        fresh = replace(address, generation=uuid4().hex[:8])
        name = f"{address.name}_{fresh.generation}"

        def made(client: Any, wait: float) -> None:
            from pymilvus import DataType

            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field(_ID, DataType.VARCHAR, is_primary=True, max_length=256)
            schema.add_field(_CONTENT, DataType.VARCHAR, max_length=65_535)
            schema.add_field(_VECTOR, DataType.FLOAT_VECTOR, dim=2)  # which every collection must have
            client.create_collection(
                name, schema=schema, num_shards=1, consistency_level="Strong",
                properties={_GENERATION_OF: address.name, _WRITTEN_AT: str(int(time.time()))}, timeout=wait,
            )  # fmt: skip
            index = client.prepare_index_params()
            index.add_index(_VECTOR, index_type="FLAT", metric_type="IP", params={})
            client.create_index(name, index, timeout=wait)

        server.call(made)
    settings = "&".join(
        f"{name}={value}" for name, value in (("partition", address.partition), ("shards", address.shards)) if value
    )
    return Path(f"{address}@{fresh.generation}?{settings}")


@contextmanager
def being_written(draft: Path) -> Iterator[None]:
    """Say within the block that this draft is written to, so that nobody removes it as a left one."""
    address, ended = address_in(draft), Event()
    name = f"{address.name}_{address.generation}"

    def say_so() -> None:
        while not ended.wait(_BEAT_SECONDS):
            # A server that is away now is told the next time.
            with suppress(UserError), closing(Server(address)) as server:
                _mark(server, name, str(int(time.time())))

    beat = Thread(target=say_so, name="rungwise draft", daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        beat.join()


def publish(draft: Path) -> None:
    """Let a generation count from now on, in one step; the one before stays, and all older ones are removed."""
    address = address_in(draft)
    name = f"{address.name}_{address.generation}"
    with closing(Server(address)) as server:
        before = server.behind(address.name)

        def moved(client: Any, wait: float) -> None:
            move = client.create_alias if before is None else client.alter_alias
            move(name, address.name, timeout=wait)

        server.call(moved)
        _mark(server, name, "")
        _drop_others(server, {name, before})


def sweep(place: Path | str, *, clock: Callable[[], float] = time.time) -> Swept:
    """Remove all generations but the one that counts and drafts that are written to now.

    Those who still search an earlier one open the index anew. ``clock`` gives seconds since 1970.
    """
    with closing(Server(address_in(place))) as server:
        return _drop_others(server, set(), clock)


def drop(place: Path | str) -> None:
    """Remove a generation, or the whole index where none is named; nothing happens where there is none."""
    address = address_in(place)
    with closing(Server(address)) as server:
        if address.generation:
            _drop(server, f"{address.name}_{address.generation}")
            return
        if server.behind(address.name) is not None:
            server.call(lambda client, wait: client.drop_alias(address.name, timeout=wait))
        for name in _generations(server):
            _drop(server, name)


def read_file(place: Path | str, name: str) -> bytes | None:
    """A small file of an index, None if there is no such file, or no index; refuses a damaged one."""
    with closing(Server(address_in(place))) as server:
        for _ in range(_ATTEMPTS):
            root = _root(server)
            head = None if root is None else _head(server, root, name)
            if root is None or head is None:
                return None
            content = _content(server, root, head)
            if digest_of_parts([content]) == head["sha256"]:
                return content
        raise damaged(f"{server.address}/{name}", "its parts are not as they were written")  # and nobody replaced it


def write_file(place: Path | str, name: str, content: bytes) -> None:
    """Put a small file in the place of the one before, in one step; refuses one that is too large."""
    with closing(Server(address_in(place))) as server:
        root = _root(server)
        if root is None:
            raise UserError(f"{server.address}: no index here; build one with `rungwise index`")
        if len(content) > _MOST_BYTES:
            raise UserError(f"{server.address}/{name}: larger than the {_MOST_BYTES >> 20} MB that Milvus is given")
        before = _head(server, root, name)
        head: dict[str, Any] = {"sha256": digest_of_parts([content])}
        if len(content) <= _SMALL:
            head["content"] = base64.b64encode(content).decode()
        else:
            version = uuid4().hex
            parts = [content[at : at + _PART_BYTES] for at in range(0, len(content), _PART_BYTES)]
            head["rows"] = [f"{name}/{version}/{at}" for at in range(len(parts))]
            for row, part in zip(head["rows"], parts, strict=True):
                stored = {_ID: row, _CONTENT: base64.b64encode(part).decode(), _VECTOR: [0.0, 0.0]}
                _put(server, root, stored)
        properties = {f"{_FILE}{name}": json.dumps(head)}
        server.call(lambda client, wait: client.alter_collection_properties(root, properties, timeout=wait))
        if gone := (before or {}).get("rows"):
            server.call(lambda client, wait: client.delete(root, filter=one_of(_ID, gone), timeout=wait))


def is_index(place: Path | str) -> bool:
    """Whether an index stands at a place."""
    with closing(Server(address_in(place))) as server:
        return _root(server) is not None


def _root(server: Server) -> str | None:
    """Collection of the generation that the address means; None if there is no index."""
    address = server.address
    return f"{address.name}_{address.generation}" if address.generation else server.behind(address.name)


def _head(server: Server, root: str, name: str) -> dict[str, Any] | None:
    """Entry of a small file in the properties of a generation; None if there is no such file, or no generation."""
    try:
        stored = server.described(root).get("properties", {}).get(f"{_FILE}{name}")
    except MissingError:
        return None
    if stored is None:
        return None
    try:
        head = json.loads(stored)
        if isinstance(head["sha256"], str) and isinstance(head.get("rows", []), list):
            return dict(head)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise damaged(f"{server.address}/{name}", "what is said of it is no description")


def _content(server: Server, root: str, head: dict[str, Any]) -> bytes:
    """Content of the file with this entry; empty if the entry is malformed."""
    try:
        if "rows" not in head:
            return base64.b64decode(head.get("content", ""), validate=True)
        rows = [str(one) for one in head["rows"]]
        if len(rows) * _PART_BYTES > 2 * _MOST_BYTES:
            return b""

        def read(client: Any, wait: float) -> list[dict[str, Any]]:
            client.load_collection(root, timeout=wait)
            found = []
            for row in rows:
                found += client.query(root, filter=one_of(_ID, [row]), output_fields=[_CONTENT], timeout=wait)
            return found

        return b"".join(base64.b64decode(row[_CONTENT], validate=True) for row in server.call(read, patience=60.0))
    except (ValueError, TypeError):
        return b""


def _put(server: Server, root: str, row: dict[str, Any]) -> None:
    server.call(lambda client, wait: client.upsert(root, [row], timeout=wait))


def _mark(server: Server, root: str, when: str) -> None:
    properties = {_WRITTEN_AT: when}
    server.call(lambda client, wait: client.alter_collection_properties(root, properties, timeout=wait))


def _drop_others(server: Server, kept: set[str | None], clock: Callable[[], float] = time.time) -> Swept:
    """Remove the generations of an index except some, the one that counts, and drafts that are written to."""
    removed, drafts = [], []
    for name in _generations(server):
        if name in kept:
            continue
        with suppress(MissingError):  # somebody else removed it
            if _is_written_to(server, name, clock()):
                drafts.append(name)
            # Asked only now: a draft is marked as whole after the name leads to it.
            elif server.behind(server.address.name) != name:
                _drop(server, name)
                removed.append(name)
    return Swept(tuple(removed), tuple(drafts))


def _generations(server: Server) -> list[str]:
    """Collections of the generations of an index."""
    return [
        name
        for name in _collections(server)
        if (found := _GENERATION.fullmatch(name)) and found["name"] == server.address.name and _is_ours(server, name)
    ]


def _is_written_to(server: Server, root: str, now: float) -> bool:
    said = server.described(root).get("properties", {}).get(_WRITTEN_AT, "")
    return said.isdecimal() and len(said) < 20 and abs(now - int(said)) < _SILENT_SECONDS


def _drop(server: Server, root: str) -> None:
    for name in _collections(server):
        if name.startswith(f"{root}_") and _is_ours(server, name):
            server.drop(name)
    server.drop(root)  # the last one: until it is gone, whoever comes next finds what is left


def _collections(server: Server) -> list[str]:
    return list(server.call(lambda client, wait: client.list_collections(timeout=wait)))


def _is_ours(server: Server, collection: str) -> bool:
    """Whether a collection is there, and rungwise made it."""
    try:
        return any(name.startswith(OURS) for name in server.described(collection).get("properties", {}))
    except MissingError:
        return False
