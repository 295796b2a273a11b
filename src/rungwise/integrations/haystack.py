"""Haystack: a retriever over an index or a server of ours, and components that end the lists of any other.

Haystack's own telemetry is off once rungwise was imported, unless HAYSTACK_TELEMETRY_ENABLED is set.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from rungwise.calibration import ListEnds
from rungwise.core import MissingExtraError, UserError

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.component import Component
    from haystack.core.serialization import component_from_dict, component_to_dict, import_class_by_name
    from haystack.utils import Secret
except ModuleNotFoundError as error:
    raise MissingExtraError("haystack", "rungwise.integrations.haystack") from error

from rungwise.integrations._list_cutter import Found, Judge, ListCutter
from rungwise.integrations._search_place import SearchPlace

__all__ = ["HaystackEnds", "HaystackEndsRetriever", "HaystackRetriever"]


@component
class HaystackRetriever:
    """Pictures of an index or of a server of ours, up to the end of relevance.

    The content of a document is the captions of the picture, or the name of its file; its ``meta`` hold ``id``,
    ``degree``, ``rung``, ``rung_name``, ``path``, ``columns`` and ``alike``.

    Args:
        place: Index, its folder, a searcher, a client, or the address of a server. A pipeline that is written down
            takes a folder or an address.
        top_k: Largest number of documents.
        where: Filter of every query, such as ``year >= 2020``.
        beyond: Whether documents after the end are given, too.
        model: The model of the index, or its location, if it has moved.
        token: Token of the server; else that of the environment variable ``RUNGWISE_TOKEN``.
        device: Device of the model.

    Raises:
        UserError: If there is no such index or server, or the filter is invalid.
    """

    def __init__(
        self,
        place: Any,
        top_k: int = 10,
        where: str | None = None,
        beyond: bool = False,
        model: Any = None,
        token: Secret | None = None,
        device: str | None = None,
    ) -> None:
        self.place, self.top_k, self.where, self.beyond = place, top_k, where, beyond
        self.model, self.token, self.device = model, token, device
        resolved = None if token is None else token.resolve_value()
        self._search = SearchPlace(place, token=resolved, model=model, device=device)

    @component.output_types(documents=list[Document])
    def run(self, query: str, where: str | None = None, top_k: int | None = None) -> dict[str, list[Document]]:
        """Search.

        Args:
            query: Text as people type it.
            where: Filter in place of that of every query.
            top_k: Largest number of documents in place of the usual one.
        """
        k = self.top_k if top_k is None else top_k
        found = self._search.search(query, k, where=where or self.where, beyond=self.beyond)
        documents = []
        for hit in found.hits:
            meta = {name: value for name, value in hit.metadata.items() if name != "score"}
            documents.append(Document(id=hit.id, content=hit.text, meta=meta, score=hit.score))
        return {"documents": documents}

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack writes it down; the token by the name of its variable alone.

        Raises:
            UserError: If the place or the model is no text.
        """
        for name, value in (("place", self.place), ("model", self.model)):
            if value is not None and not isinstance(value, str | os.PathLike):
                raise UserError(f"{name}: a {type(value).__name__} cannot be written down; give its folder or address")
        return default_to_dict(
            self,
            place=str(self.place),
            top_k=self.top_k,
            where=self.where,
            beyond=self.beyond,
            model=None if self.model is None else str(self.model),
            token=self.token.to_dict() if self.token else None,
            device=self.device,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackRetriever:
        """The component that was written down."""
        token = data.get("init_parameters", {}).get("token")
        if isinstance(token, dict):
            data["init_parameters"]["token"] = Secret.from_dict(token)
        made: HaystackRetriever = default_from_dict(cls, data)
        return made


@component
class HaystackEnds:
    """Ends the list of the retriever before it in a pipeline; documents get ``degree``, ``rung`` and ``rung_name``.

    Args:
        ends: What judges: ``ListEnds``, such as those of a :class:`HaystackEndsRetriever`, or a ``Calibration`` of
            judged lists or its file.
        top_k: Largest number of documents that are given; all before the end if None.
        distances: Whether scores are distances: less is nearer.

    Raises:
        UserError: If a document has no score, or what judges does not fit.
    """

    def __init__(self, ends: Judge, top_k: int | None = None, distances: bool = False) -> None:
        self.ends, self.top_k, self.distances = ends, top_k, distances
        self._cutter: ListCutter[Document] = ListCutter(None, ends, embed=_given, negated=distances)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], query_embedding: list[float] | None = None) -> dict[str, list[Document]]:
        """End a list.

        Args:
            documents: Documents with scores, of about a hundred hits.
            query_embedding: Vector of the query, for ends that were made of vectors.
        """
        return {"documents": _cut(self._cutter, query_embedding, documents, self.top_k)}

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack writes it down.

        Raises:
            UserError: If what judges is not the file of a calibration.
        """
        return default_to_dict(self, ends=_written(self.ends), top_k=self.top_k, distances=self.distances)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackEnds:
        """The component that was written down."""
        made: HaystackEnds = default_from_dict(cls, data)
        return made


@component
class HaystackEndsRetriever:
    """Wraps any retriever, and ends its lists; documents get ``degree``, ``rung`` and ``rung_name``.

    Unless ``ends`` are given, the retriever is asked once for the 48 texts of ``UNRELATED``, before the first query.

    Args:
        retriever: A retriever that takes a text as ``query``, or a vector as ``query_embedding``.
        text_embedder: Encodes queries, for a retriever that takes a vector, and for ends that were made of vectors.
        ends: What judges: ``ListEnds``, or a ``Calibration`` of judged lists or its file; lists of unrelated texts if
            None.
        top_k: Largest number of documents that are given; all before the end if None.
        depth: Number of documents that the retriever is asked for.
        distances: Whether scores are distances: less is nearer.

    Raises:
        UserError: If a document has no score, all texts get the same scores, or what judges does not fit.
    """

    def __init__(
        self,
        retriever: Component,
        text_embedder: Component | None = None,
        ends: Judge = None,
        top_k: int | None = None,
        depth: int = 100,
        distances: bool = False,
    ) -> None:
        self.retriever, self.text_embedder = retriever, text_embedder
        self.judge, self.top_k, self.depth, self.distances = ends, top_k, depth, distances
        self._cutter: ListCutter[Document] = ListCutter(
            lambda text: _scored(self._found(text, None)[0]),
            ends,
            embed=_given if text_embedder is not None else None,
            depth=depth,
            negated=distances,
        )

    @property
    def ends(self) -> ListEnds:
        """What judges, for a :class:`HaystackEnds`; asks for the lists of unrelated texts where they are needed."""
        return self._cutter.ends

    def warm_up(self) -> None:
        """Load what the retriever and the embedder load."""
        for one in (self.retriever, self.text_embedder):
            if one is not None and hasattr(one, "warm_up"):
                one.warm_up()

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Search, and end the list.

        Args:
            query: Text of the query.
            filters: Filters of the retriever.
            top_k: Largest number of documents in place of the usual one.
        """
        documents, vector = self._found(query, filters)
        return {"documents": _cut(self._cutter, vector, documents, self.top_k if top_k is None else top_k)}

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack writes it down.

        Raises:
            UserError: If what judges is given, and not the file of a calibration.
        """
        return default_to_dict(
            self,
            retriever=component_to_dict(self.retriever, "retriever"),
            text_embedder=self.text_embedder and component_to_dict(self.text_embedder, "text_embedder"),
            ends=None if self.judge is None else _written(self.judge),
            top_k=self.top_k,
            depth=self.depth,
            distances=self.distances,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackEndsRetriever:
        """The component that was written down."""
        inside = data.get("init_parameters", {})
        for name in ("retriever", "text_embedder"):
            if isinstance(inside.get(name), dict):
                inside[name] = component_from_dict(import_class_by_name(inside[name]["type"]), inside[name], name)
        made: HaystackEndsRetriever = default_from_dict(cls, data)
        return made

    def _found(self, query: str, filters: dict[str, Any] | None) -> tuple[list[Document], list[float] | None]:
        """Documents, and the vector of the query where there is an embedder."""
        vector = None if self.text_embedder is None else self.text_embedder.run(text=query)["embedding"]
        takes_vector = "query_embedding" in vars(self.retriever)["__haystack_input__"]
        asked: dict[str, Any] = {"query_embedding": vector} if takes_vector else {"query": query}
        if filters is not None:
            asked["filters"] = filters
        return self.retriever.run(**asked, top_k=self.depth)["documents"], vector


def _given(vector: Any) -> Any:
    """The vector of a query, which stands in the place of its text."""
    if vector is None:
        raise UserError("query_embedding: the ends were made of vectors; connect the embedder of the query")
    return vector


def _cut(cutter: ListCutter[Document], vector: Any, documents: list[Document], most: int | None) -> list[Document]:
    return [
        replace(hit.thing, meta=hit.thing.meta | hit.metadata) for hit in cutter.cut(vector, _scored(documents), most)
    ]


def _scored(documents: list[Document]) -> Found[Document]:
    return [(one, one.score) for one in documents]


def _written(judge: Judge) -> str:
    if isinstance(judge, str | os.PathLike):
        return str(judge)
    raise UserError("ends: they cannot be written down; give the file of a calibration, or none to a retriever")
