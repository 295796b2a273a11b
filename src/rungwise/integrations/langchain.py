"""LangChain: a retriever over an index or a server of ours, and one that ends the lists of any other."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from pydantic import Field, PrivateAttr

from rungwise.calibration import UNRELATED
from rungwise.core import MissingExtraError, UserError

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain_core", "rungwise.integrations.langchain") from error

from rungwise.integrations._list_cutter import ListCutter
from rungwise.integrations._search_place import SearchPlace

__all__ = ["LangChainEnds", "LangChainRetriever"]


class LangChainRetriever(BaseRetriever):
    """Pictures of an index or of a server of ours, up to the end of relevance.

    The text of a document is the captions of the picture, or the name of its file; its metadata hold ``id``, ``score``,
    ``degree``, ``rung``, ``rung_name``, ``path``, ``columns`` and ``alike``. A filter can be given with each query:
    ``retriever.invoke("a dog", where="year >= 2020")``.

    Attributes:
        place: Index, its folder, a searcher, a client, or the address of a server.
        k: Largest number of documents.
        where: Filter of every query.
        beyond: Whether documents after the end are given, too.
        model: The model of the index, or its location, if it has moved.
        token: Token of the server; else that of the environment variable ``RUNGWISE_TOKEN``.
        device: Device of the model.

    Raises:
        UserError: If there is no such index or server, or the filter is invalid.
    """

    place: Any
    k: int = 10
    where: str | None = None
    beyond: bool = False
    model: Any = None
    token: str | None = Field(default=None, repr=False)
    device: str | None = None
    _search: SearchPlace = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the place; an index is opened by the first query."""
        super().model_post_init(context)
        self._search = SearchPlace(self.place, token=self.token, model=self.model, device=self.device)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, where: str | None = None
    ) -> list[Document]:
        filters = [one for one in (self.where, where) if one]
        both = " and ".join(f"({one})" for one in filters) if len(filters) > 1 else "".join(filters)
        found = self._search.search(query, self.k, where=both or None, beyond=self.beyond)
        return [Document(page_content=hit.text, metadata=hit.metadata, id=hit.id) for hit in found.hits]


class LangChainEnds(BaseRetriever):
    """The lists of any vector store or retriever, up to the end of relevance.

    Documents get ``degree``, ``rung`` and ``rung_name`` in their metadata. Unless ``ends`` are given, the store is
    asked once for the 48 texts of ``UNRELATED``, before the first query.

    Attributes:
        source: A vector store, which is asked for hits with scores, or a retriever of at least ``depth`` documents.
        ends: What judges: ``ListEnds``, or a ``Calibration`` of judged lists or its file; lists of unrelated texts if
            None.
        depth: Number of documents that a vector store is asked for.
        k: Largest number of documents that are given; all before the end if None.
        distances: Whether scores are distances, as those of many vector stores are: less is nearer.
        score_key: Entry of the metadata that holds a retriever's score.
        embeddings: Encodes queries for ends that were made of vectors. For a retriever without scores, it encodes
            documents as well, and the cosine is the score.
        search: Further arguments of the vector store's search, such as a filter.
        texts: Texts that fit nothing of the store.

    Raises:
        UserError: If a document has no score, all texts get the same scores, or what judges does not fit.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
    >>> _ = store.add_texts([f"a page about {number}" for number in range(300)])
    >>> [one.metadata["rung_name"] for one in LangChainEnds(source=store).invoke("a page about 7")]
    ['best']
    """

    source: VectorStore | BaseRetriever
    ends: Any = None
    depth: int = 100
    k: int | None = None
    distances: bool = False
    score_key: str = "score"
    embeddings: Embeddings | None = None
    search: dict[str, Any] = Field(default_factory=dict)
    texts: tuple[str, ...] = UNRELATED
    _cutter: ListCutter[Document] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check what judges; nothing is asked for yet."""
        super().model_post_init(context)
        if self.search and isinstance(self.source, BaseRetriever):
            raise UserError("search: a retriever takes no arguments of a vector store's search; set them on it")
        embeddings = self.embeddings
        self._cutter = ListCutter(
            lambda text: self._found(text, {}),
            self.ends,
            embed=None if embeddings is None else embeddings.embed_query,
            depth=self.depth,
            texts=self.texts,
            negated=self.distances,
        )

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self._found(query, {"callbacks": run_manager.get_child()})
        return [
            Document(page_content=hit.thing.page_content, metadata=hit.thing.metadata | hit.metadata, id=hit.thing.id)
            for hit in self._cutter.cut(query, found, self.k)
        ]

    def _found(self, query: str, config: Any) -> list[tuple[Document, float | None]]:
        if isinstance(self.source, VectorStore):
            found = self.source.similarity_search_with_score(query, k=self.depth, **self.search)
            return [(document, float(score)) for document, score in found]
        documents = self.source.invoke(query, config)
        scores = [one.metadata.get(self.score_key) for one in documents]
        if documents and self.embeddings is not None and None in scores:
            rows = np.array(self.embeddings.embed_documents([one.page_content for one in documents]), np.float64)
            vector = np.array(self.embeddings.embed_query(query), np.float64)
            lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
            scores = (rows @ vector / np.maximum(lengths, 1e-30)).tolist()
        return list(zip(documents, cast("list[float | None]", scores), strict=True))
