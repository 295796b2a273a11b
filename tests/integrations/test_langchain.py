import asyncio
import sys

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from rungwise.calibration import UNRELATED, ListEnds
from rungwise.core import MissingExtraError, UserError
from rungwise.index import Index, Searcher
from rungwise.integrations.langchain import LangChainEnds, LangChainRetriever
from rungwise.serving import Client
from tests.colour_model import ColourModel
from tests.integrations.word_vectors import PAGES, pages_about, vector_of
from tests.serving.conftest import TOKEN


class Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(vector_of, texts))

    def embed_query(self, text: str) -> list[float]:
        return vector_of(text)


class Listing(BaseRetriever):
    """A retriever that says a score under a name of its own, or none."""

    store: InMemoryVectorStore
    name: str = ""

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        found = self.store.similarity_search_with_score(query, k=100)
        return [Document(one.page_content, metadata={self.name: score} if self.name else {}) for one, score in found]


class Far(InMemoryVectorStore):
    """A vector store that gives distances, as many do."""

    def similarity_search_with_score(self, query: str, k: int = 4, **other: object) -> list[tuple[Document, float]]:
        return [(one, 1 - score) for one, score in super().similarity_search_with_score(query, k=k, **other)]


@pytest.fixture(scope="module")
def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(Words())
    made.add_texts(PAGES, metadatas=[{"page": number} for number in range(len(PAGES))])
    return made


def test_pictures_of_an_index_and_of_a_server_up_to_the_end(colours: Index, served: str) -> None:
    expected = Searcher(colours, ColourModel()).search("red", 12)
    assert expected.end is not None
    shown = [hit.id for hit, rung in zip(expected.hits, expected.end.rungs, strict=True) if rung < 4]
    for retriever in (
        LangChainRetriever(place=colours, model=ColourModel(), k=12),
        LangChainRetriever(place=served, token=TOKEN, k=12),
        LangChainRetriever(place=Client(served, TOKEN), k=12),
    ):
        documents = retriever.invoke("red")
        assert [one.id for one in documents] == shown
        assert documents[0].page_content == "a red square"
        assert documents[0].metadata["rung"] == expected.end.rungs[0]
        assert documents[0].metadata["degree"] == expected.end.degrees[0]
        assert [one.id for one in asyncio.run(retriever.ainvoke("red"))] == shown
        assert TOKEN not in repr(retriever)
    beyond = LangChainRetriever(place=colours, model=ColourModel(), k=12, beyond=True).invoke("red")
    assert len(beyond) == len(expected.hits) > len(shown)


def test_a_filter_of_every_query_and_one_of_a_single_query(colours: Index) -> None:
    retriever = LangChainRetriever(place=colours, model=ColourModel(), k=12, beyond=True, where="year == 2020")
    assert {one.metadata["columns"]["year"] for one in retriever.invoke("red")} == {2020}
    both = retriever.invoke("red", where="file == '0-red.png' or file == '1-red.png'")
    assert [one.id for one in both] == ["0-red.png"]
    with pytest.raises(UserError, match="expected a value"):
        retriever.invoke("red", where="year >=")


def test_a_vector_store_is_asked_and_ended(store: InMemoryVectorStore) -> None:
    retriever = LangChainEnds(source=store)
    found = retriever.invoke("owls")
    assert {one.page_content for one in found} == pages_about("owls")
    assert all(set(one.metadata) == {"page", "degree", "rung", "rung_name"} for one in found)
    assert retriever.invoke("the ministry of finance") == []
    assert len(LangChainEnds(source=store, k=2).invoke("owls")) == 2
    assert {one.page_content for one in asyncio.run(retriever.ainvoke("chess"))} == pages_about("chess")
    assert "degree" not in store.similarity_search("owls", k=1)[0].metadata, "the store's own documents stay"


def test_filters_of_the_store_and_distances(store: InMemoryVectorStore) -> None:
    even = LangChainEnds(source=store, search={"filter": lambda one: one.metadata["page"] % 2 == 0})
    assert {one.page_content for one in even.invoke("owls")} == {PAGES[at] for at in (18, 20, 22)}
    far = Far(Words())
    far.add_texts(PAGES)
    assert {one.page_content for one in LangChainEnds(source=far, distances=True).invoke("tides")} == pages_about(
        "tides"
    )


def test_any_retriever_by_its_scores_or_by_embeddings(store: InMemoryVectorStore) -> None:
    by_name = LangChainEnds(source=Listing(store=store, name="closeness"), score_key="closeness")
    by_vectors = LangChainEnds(source=Listing(store=store), embeddings=Words())
    for retriever in (by_name, by_vectors):
        assert {one.page_content for one in retriever.invoke("bread")} == pages_about("bread")
    with pytest.raises(UserError, match="a document has no score; name the entry"):
        LangChainEnds(source=Listing(store=store)).invoke("bread")


def test_ends_of_vectors(store: InMemoryVectorStore) -> None:
    vectors = np.array([vector_of(page) for page in PAGES])
    ends = ListEnds.of_vectors(vectors, len(PAGES), unrelated=[vector_of(text) for text in UNRELATED])
    found = LangChainEnds(source=store, ends=ends, embeddings=Words()).invoke("chess")
    assert {one.page_content for one in found} == pages_about("chess")
    with pytest.raises(UserError, match="give what encodes a query"):
        LangChainEnds(source=store, ends=ends)


def test_a_chain_takes_it_as_any_retriever(store: InMemoryVectorStore) -> None:
    chain = LangChainEnds(source=store) | (lambda documents: len(documents))
    assert chain.batch(["owls", "the ministry of finance"]) == [6, 0]


def test_mistakes_are_told_in_one_line(store: InMemoryVectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="a retriever takes no arguments"):
        LangChainEnds(source=Listing(store=store), search={"filter": None})
    with pytest.raises(UserError, match="token is of a server"):
        LangChainRetriever(place="photos.index", token="secret")
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks", None)
    monkeypatch.delitem(sys.modules, "rungwise.integrations.langchain")
    with pytest.raises(MissingExtraError, match=r"rungwise\[langchain\]"):
        import rungwise.integrations.langchain  # noqa: F401
