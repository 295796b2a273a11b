import asyncio
import sys

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import ImageNode, QueryBundle, TextNode

from rungwise.calibration import UNRELATED, ListEnds
from rungwise.core import MissingExtraError, UserError
from rungwise.index import Index, Searcher
from rungwise.integrations.llama_index import LlamaIndexEnds, LlamaIndexPostprocessor, LlamaIndexRetriever
from tests.colour_model import ColourModel
from tests.integrations.word_vectors import PAGES, pages_about, vector_of
from tests.serving.conftest import TOKEN


class Words(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return vector_of(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector_of(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector_of(text)


@pytest.fixture(scope="module")
def pages() -> VectorStoreIndex:
    return VectorStoreIndex([TextNode(text=page, metadata={}) for page in PAGES], embed_model=Words())


def test_pictures_of_an_index_and_of_a_server_up_to_the_end(colours: Index, served: str) -> None:
    expected = Searcher(colours, ColourModel()).search("red", 12)
    assert expected.end is not None
    shown = [hit.id for hit, rung in zip(expected.hits, expected.end.rungs, strict=True) if rung < 4]
    for retriever in (
        LlamaIndexRetriever(colours, model=ColourModel(), similarity_top_k=12),
        LlamaIndexRetriever(served, token=TOKEN, similarity_top_k=12),
    ):
        nodes = retriever.retrieve("red")
        assert [one.node.node_id for one in nodes] == shown
        assert [one.score for one in nodes] == pytest.approx([hit.score for hit in expected.hits[: len(shown)]])
        assert isinstance(nodes[0].node, ImageNode)
        assert nodes[0].node.text == "a red square"
        assert nodes[0].node.metadata["degree"] == expected.end.degrees[0]
        assert [one.node.node_id for one in asyncio.run(retriever.aretrieve("red"))] == shown
    assert nodes[0].node.image_url.startswith(served)
    assert LlamaIndexRetriever(colours, model=ColourModel()).retrieve("red")[0].node.image_path.endswith(shown[0])
    of_2020 = LlamaIndexRetriever(colours, model=ColourModel(), where="year == 2020", beyond=True).retrieve("red")
    assert {one.node.metadata["columns"]["year"] for one in of_2020} == {2020}


def test_any_retriever_is_ended(pages: VectorStoreIndex) -> None:
    retriever = LlamaIndexEnds(pages.as_retriever(similarity_top_k=100))
    found = retriever.retrieve("owls")
    assert {one.node.text for one in found} == pages_about("owls")
    assert all(set(one.node.metadata) == {"degree", "rung", "rung_name"} for one in found)
    assert retriever.retrieve("the ministry of finance") == []
    assert {one.node.text for one in asyncio.run(retriever.aretrieve("chess"))} == pages_about("chess")
    assert len(LlamaIndexEnds(pages.as_retriever(similarity_top_k=100), similarity_top_k=2).retrieve("owls")) == 2
    own = pages.as_retriever(similarity_top_k=1).retrieve("owls")[0]
    assert own.node.metadata == {}, "nodes of the store stay as they are"


def test_a_postprocessor_ends_lists_by_ends_that_were_learnt_before(pages: VectorStoreIndex) -> None:
    retriever = pages.as_retriever(similarity_top_k=100)
    ends = LlamaIndexEnds(retriever)._cutter.ends
    for query, expected in (("bread", pages_about("bread")), ("the ministry of finance", set())):
        found = LlamaIndexPostprocessor(ends=ends).postprocess_nodes(retriever.retrieve(query), query_str=query)
        assert {one.node.text for one in found} == expected
    vectors = np.array([vector_of(page) for page in PAGES])
    of_vectors = ListEnds.of_vectors(vectors, len(PAGES), unrelated=[vector_of(text) for text in UNRELATED])
    post = LlamaIndexPostprocessor(ends=of_vectors, embed_model=Words(), top_k=3)
    found = asyncio.run(post.apostprocess_nodes(retriever.retrieve("owls"), QueryBundle("owls")))
    assert len(found) == 3
    assert {one.node.text for one in found} <= pages_about("owls")


def test_mistakes_are_told_in_one_line(pages: VectorStoreIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="give ListEnds"):
        LlamaIndexPostprocessor(ends=None)
    with pytest.raises(UserError, match="give what encodes a query"):
        LlamaIndexPostprocessor(ends=ListEnds.of_vectors(np.eye(3), 3))
    monkeypatch.setitem(sys.modules, "llama_index.core.base.base_retriever", None)
    monkeypatch.delitem(sys.modules, "rungwise.integrations.llama_index")
    with pytest.raises(MissingExtraError, match=r"rungwise\[llama-index\]"):
        import rungwise.integrations.llama_index  # noqa: F401
