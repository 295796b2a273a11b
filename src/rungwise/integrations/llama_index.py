"""LlamaIndex: a retriever over an index or a server of ours, and what ends the lists of any other."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import PrivateAttr

from rungwise.calibration import UNRELATED
from rungwise.core import MissingExtraError

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise MissingExtraError("llama_index", "rungwise.integrations.llama_index") from error

from rungwise.integrations._list_cutter import CutHit, Judge, ListCutter
from rungwise.integrations._search_place import PlaceHit, SearchPlace

__all__ = ["LlamaIndexEnds", "LlamaIndexPostprocessor", "LlamaIndexRetriever"]


class LlamaIndexRetriever(BaseRetriever):
    """Pictures of an index or of a server of ours, up to the end of relevance.

    A picture with a file is an ``ImageNode`` with its path or address, another a ``TextNode``. The text is the
    captions, or the name of the file; metadata hold ``id``, ``score``, ``degree``, ``rung``, ``rung_name``, ``path``,
    ``columns`` and ``alike``.

    Args:
        place: Index, its folder, a searcher, a client, or the address of a server.
        similarity_top_k: Largest number of nodes.
        where: Filter of every query, such as ``year >= 2020``.
        beyond: Whether nodes after the end are given, too.
        model: The model of the index, or its location, if it has moved.
        token: Token of the server; else that of the environment variable ``RUNGWISE_TOKEN``.
        device: Device of the model.
        callback_manager: Callbacks of LlamaIndex.

    Raises:
        UserError: If there is no such index or server, or the filter is invalid.
    """

    def __init__(
        self,
        place: Any,
        *,
        similarity_top_k: int = 10,
        where: str | None = None,
        beyond: bool = False,
        model: Any = None,
        token: str | None = None,
        device: str | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._search = SearchPlace(place, token=token, model=model, device=device)
        self._k, self._where, self._beyond = similarity_top_k, where, beyond
        super().__init__(callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._search.search(query_bundle.query_str, self._k, where=self._where, beyond=self._beyond)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in found.hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class LlamaIndexEnds(BaseRetriever):
    """The lists of any retriever, up to the end of relevance.

    Nodes get ``degree``, ``rung`` and ``rung_name`` in their metadata. Unless ``ends`` are given, the retriever is
    asked once for the 48 texts of ``UNRELATED``, before the first query.

    Args:
        retriever: A retriever that gives scores; its ``similarity_top_k`` should be about a hundred.
        ends: What judges: ``ListEnds``, or a ``Calibration`` of judged lists or its file; lists of unrelated texts if
            None.
        similarity_top_k: Largest number of nodes that are given; all before the end if None.
        embed_model: Encodes queries for ends that were made of vectors.
        distances: Whether scores are distances: less is nearer.
        depth: Number of hits of the lists of unrelated texts that are looked at.
        texts: Texts that fit nothing.
        callback_manager: Callbacks of LlamaIndex.

    Raises:
        UserError: If a node has no score, all texts get the same scores, or what judges does not fit.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        ends: Judge = None,
        *,
        similarity_top_k: int | None = None,
        embed_model: BaseEmbedding | None = None,
        distances: bool = False,
        depth: int = 100,
        texts: tuple[str, ...] = UNRELATED,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._retriever, self._k = retriever, similarity_top_k
        self._cutter: ListCutter[NodeWithScore] = ListCutter(
            lambda text: _scored(retriever.retrieve(text)),
            ends,
            embed=None if embed_model is None else embed_model.get_query_embedding,
            depth=depth,
            texts=texts,
            negated=distances,
        )
        super().__init__(callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = _scored(self._retriever.retrieve(query_bundle))
        return [_told(hit) for hit in self._cutter.cut(query_bundle.query_str, found, self._k)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class LlamaIndexPostprocessor(BaseNodePostprocessor):
    """Ends lists of nodes in a query engine, where ``SimilarityPostprocessor`` would cut by one threshold.

    Attributes:
        ends: What judges: ``ListEnds``, such as those of a :class:`LlamaIndexEnds`, or a ``Calibration`` or its file.
        top_k: Largest number of nodes that are given; all before the end if None.
        embed_model: Encodes queries for ends that were made of vectors.
        distances: Whether scores are distances: less is nearer.

    Raises:
        UserError: If a node has no score, or what judges does not fit.

    >>> from rungwise.calibration import Calibration, ListEnds
    >>> scores = [0.9, 0.88, *(0.3 - at / 1000 for at in range(90))]
    >>> nodes = [NodeWithScore(node=TextNode(text="a page"), score=one) for one in scores]
    >>> len(LlamaIndexPostprocessor(ends=ListEnds(Calibration.unsupervised())).postprocess_nodes(nodes, query_str="a"))
    2
    """

    ends: Any
    top_k: int | None = None
    embed_model: Any = None
    distances: bool = False
    _cutter: ListCutter[NodeWithScore] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check what judges."""
        super().model_post_init(context)
        embed = None if self.embed_model is None else self.embed_model.get_query_embedding
        self._cutter = ListCutter(None, self.ends, embed=embed, negated=self.distances)

    @classmethod
    def class_name(cls) -> str:
        """Name by which LlamaIndex writes it down."""
        return "LlamaIndexPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = "" if query_bundle is None else query_bundle.query_str
        return [_told(hit) for hit in self._cutter.cut(query, _scored(nodes), self.top_k)]


def _node(hit: PlaceHit) -> TextNode:
    if not hit.path:
        return TextNode(id_=hit.id, text=hit.text, metadata=hit.metadata)
    place = {"image_url": hit.path} if hit.path.startswith(("http://", "https://")) else {"image_path": hit.path}
    return ImageNode(id_=hit.id, text=hit.text, metadata=hit.metadata, **place)


def _scored(nodes: list[NodeWithScore]) -> list[tuple[NodeWithScore, float | None]]:
    return [(one, one.score) for one in nodes]


def _told(hit: CutHit[NodeWithScore]) -> NodeWithScore:
    """The node with its degree, in a copy: that of a store stays as it is."""
    node = hit.thing.node.model_copy(update={"metadata": hit.thing.node.metadata | hit.metadata})
    return NodeWithScore(node=node, score=hit.thing.score)
