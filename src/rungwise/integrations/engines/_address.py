"""Addresses of engines, as they are written on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from rungwise.core import UserError, require
from rungwise.core.output import printable
from rungwise.data.files import read_lines
from rungwise.integrations.engines._hits import asking

if TYPE_CHECKING:
    from rungwise.quality import Engine

ENGINES = {
    "faiss": "faiss:FILE?ids=LINES.txt",
    "lancedb": "lancedb://FOLDER/TABLE?vector=COLUMN&id=COLUMN",
    "qdrant": "qdrant://HOST:PORT/COLLECTION?id=FIELD (or qdrant:FOLDER/COLLECTION)",
    "postgresql": "postgresql://HOST/DATABASE?table=TABLE&vector=COLUMN&id=COLUMN",
    "elasticsearch": "elasticsearch+https://HOST:PORT/INDEX?vector=FIELD&id=FIELD",
    "opensearch": "opensearch+https://HOST:PORT/INDEX?vector=FIELD&id=FIELD",
}
"""How the address of each engine is written, by its beginning."""

_FIELDS = {
    "faiss": {"ids"},
    "lancedb": {"vector", "id", "metric"},
    "qdrant": {"vector", "id"},
    "postgresql": {"table", "vector", "id", "metric"},
    "elasticsearch": {"vector", "id"},
    "opensearch": {"vector", "id"},
}
"""Names that may stand behind the question mark."""


def open_engine(address: str) -> Engine:
    """Open an engine by its address, in one of the forms of :data:`ENGINES`.

    Vectors stand in ``vector``, ids in ``id``; the distance of LanceDB and PostgreSQL is ``metric``: cosine, l2 or
    inner. Names that are left out are those that the engine's class takes by itself.

    Raises:
        MissingExtraError: If the engine's client is not installed.
        UserError: If the address is malformed, or the engine cannot be opened.

    >>> open_engine("solr://localhost/pets")
    Traceback (most recent call last):
    rungwise.core.UserError: solr://localhost/pets: no address of an engine; write faiss:FILE?ids=LINES.txt, ...
    """
    kind, separator, _ = address.partition(":")
    kind = kind.partition("+")[0]
    kind = "postgresql" if kind == "postgres" else kind
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        kind = ""
    if not separator or kind not in ENGINES:
        raise UserError(f"{_safe(address)}: no address of an engine; write {', '.join(ENGINES.values())}")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    named = {name: given.pop(name) for name in _FIELDS[kind] if name in given}
    if given and kind != "postgresql":  # which takes settings of its own there
        raise UserError(f"{_safe(address)}: unknown {', '.join(sorted(given))}; write {ENGINES[kind]}")
    if named.get("metric", "cosine") not in ("cosine", "l2", "inner"):
        raise UserError(f"{_safe(address)}: metric={named['metric']} is unknown; take cosine, l2 or inner")
    folder, _, last = unquote(f"{parts.netloc}{parts.path}").rpartition("/")
    place = parts.path.strip("/")
    options: dict[str, Any] = named
    match kind:
        case "faiss":
            from rungwise.integrations.engines._faiss import FaissEngine

            ids = named.get("ids")
            return FaissEngine(Path(f"{folder}/{last}" if folder else last), ids and _lines(Path(ids)))
        case "lancedb":
            from rungwise.integrations.engines._lancedb import LanceDBEngine

            return LanceDBEngine(_named(folder, address, kind), _named(last, address, kind), **options)
        case "qdrant":
            from rungwise.integrations.engines._qdrant import QdrantEngine

            require("qdrant_client", "this engine")
            from qdrant_client import QdrantClient

            if host is None and not Path(folder).is_dir():
                raise UserError(f"{folder}: no such folder; write {ENGINES[kind]}")
            collection = _named(last, address, kind)
            with asking(f"Qdrant, {collection}"):
                if host is None:
                    client = QdrantClient(path=folder)
                else:  # whose version is asked for with a warning, which a refusal makes needless
                    client = QdrantClient(host=host, port=port or 6333, check_compatibility=False)
            return QdrantEngine(client, collection, **options)
        case "postgresql":
            from rungwise.integrations.engines._pgvector import PgvectorEngine

            table = _named(options.pop("table", ""), address, kind)
            return PgvectorEngine(str(urlunsplit(parts._replace(query=urlencode(given)))), table, **options)
        case _:
            from rungwise.integrations.engines import _elasticsearch as elastic

            of = elastic.OpenSearchEngine if kind == "opensearch" else elastic.ElasticsearchEngine
            scheme = parts.scheme.partition("+")[2] or "http"
            return of(f"{scheme}://{parts.netloc}", _named(place, address, kind), **options)


def _named(part: str, address: str, kind: str) -> str:
    if not part:
        raise UserError(f"{_safe(address)}: a part is missing; write {ENGINES[kind]}")
    return part


def _lines(path: Path) -> list[str]:
    return [line for _, line in read_lines(path)]


def _safe(address: str) -> str:
    """The address without a password."""
    before, at, after = address.rpartition("@")
    return printable(f"{before.partition('://')[0]}://{after}" if at else address)
