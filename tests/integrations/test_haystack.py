import os
import sys
from pathlib import Path

import numpy as np
import pytest
from haystack import Document, Pipeline, component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret

from rungwise.calibration import UNRELATED, Calibration, ListEnds
from rungwise.core import MissingExtraError, UserError
from rungwise.index import Index, Searcher
from rungwise.integrations.haystack import HaystackEnds, HaystackEndsRetriever, HaystackRetriever
from tests.colour_model import ColourModel
from tests.integrations.word_vectors import PAGES, TOPICS, pages_about, vector_of
from tests.serving.conftest import TOKEN


@component
class Words:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        return {"embedding": vector_of(text)}


@pytest.fixture(scope="module")
def store() -> InMemoryDocumentStore:
    made = InMemoryDocumentStore(embedding_similarity_function="cosine")
    made.write_documents([Document(content=page, embedding=vector_of(page), meta={"even": at % 2 == 0})
                          for at, page in enumerate(PAGES)])  # fmt: skip
    return made


def test_pictures_of_an_index_and_of_a_server_up_to_the_end(colours: Index, served: str) -> None:
    expected = Searcher(colours, ColourModel()).search("red", 12)
    assert expected.end is not None
    shown = [hit.id for hit, rung in zip(expected.hits, expected.end.rungs, strict=True) if rung < 4]
    for retriever in (
        HaystackRetriever(colours, model=ColourModel(), top_k=12),
        HaystackRetriever(served, token=Secret.from_token(TOKEN), top_k=12),
    ):
        documents = retriever.run("red")["documents"]
        assert [one.id for one in documents] == shown
        assert documents[0].content == "a red square"
        assert documents[0].meta["rung"] == expected.end.rungs[0]
        assert documents[0].score == pytest.approx(expected.hits[0].score)
    retriever = HaystackRetriever(colours, model=ColourModel(), beyond=True, where="year == 2021")
    assert {one.meta["columns"]["year"] for one in retriever.run("red")["documents"]} == {2021}
    assert {one.meta["columns"]["year"] for one in retriever.run("red", where="year == 2020")["documents"]} == {2020}
    assert len(retriever.run("red", top_k=2)["documents"]) == 2


def test_telemetry_is_off() -> None:
    assert os.environ["HAYSTACK_TELEMETRY_ENABLED"] == "False"


def test_any_retriever_is_ended(store: InMemoryDocumentStore) -> None:
    retriever = HaystackEndsRetriever(InMemoryEmbeddingRetriever(store), Words())
    retriever.warm_up()
    found = retriever.run("owls")["documents"]
    assert {one.content for one in found} == pages_about("owls")
    assert all({"degree", "rung", "rung_name"} <= set(one.meta) for one in found)
    assert retriever.run("the ministry of finance")["documents"] == []
    even = retriever.run("owls", filters={"field": "meta.even", "operator": "==", "value": True})["documents"]
    assert {one.content for one in even} == {PAGES[at] for at in (18, 20, 22)}
    assert len(retriever.run("owls", top_k=2)["documents"]) == 2


def test_a_retriever_of_words_is_ended(store: InMemoryDocumentStore) -> None:
    found = HaystackEndsRetriever(InMemoryBM25Retriever(store)).run("owls")["documents"]
    assert {one.content for one in found} == pages_about("owls")


def test_a_component_behind_a_retriever_in_a_pipeline(store: InMemoryDocumentStore) -> None:
    vectors = np.array([vector_of(page) for page in PAGES])
    of_vectors = ListEnds.of_vectors(vectors, len(PAGES), unrelated=[vector_of(text) for text in UNRELATED])
    of_lists = HaystackEndsRetriever(InMemoryEmbeddingRetriever(store), Words()).ends
    for ends in (of_vectors, of_lists):
        pipeline = Pipeline()
        pipeline.add_component("words", Words())
        pipeline.add_component("find", InMemoryEmbeddingRetriever(store, top_k=100))
        pipeline.add_component("end", HaystackEnds(ends))
        pipeline.connect("words.embedding", "find.query_embedding")
        pipeline.connect("find.documents", "end.documents")
        if ends is of_vectors:
            pipeline.connect("words.embedding", "end.query_embedding")
        for query, expected in (("chess", pages_about("chess")), ("the ministry of finance", set())):
            found = pipeline.run({"words": {"text": query}})["end"]["documents"]
            assert {one.content for one in found} == expected


def test_components_are_written_down_and_read_again(
    colours: Index, store: InMemoryDocumentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    token = Secret.from_env_var("A_TOKEN")
    given = HaystackRetriever("http://127.0.0.1:1/", top_k=3, where="year > 1", token=token, beyond=True)
    written = given.to_dict()
    assert "secret" not in str(written)
    assert HaystackRetriever.from_dict(written).to_dict() == given.to_dict()
    retriever = InMemoryEmbeddingRetriever(store)
    lists = [[(page, float(topic in page)) for page in PAGES] for topic in TOPICS for _ in range(9)]
    draw = np.random.default_rng(0)
    Calibration.fit(
        [[value + draw.normal(0, 0.1) for _, value in one] for one in lists],
        [[value for _, value in one] for one in lists],
        1,
    ).save(tmp_path / "ends.json")
    ends = HaystackEnds(str(tmp_path / "ends.json"), top_k=4)
    assert HaystackEnds.from_dict(ends.to_dict()).to_dict() == ends.to_dict()
    wrapped = HaystackEndsRetriever(InMemoryBM25Retriever(store), depth=50)
    again = HaystackEndsRetriever.from_dict(wrapped.to_dict())
    assert again.to_dict() == wrapped.to_dict()
    with pytest.raises(UserError, match="a Index cannot be written down; give its folder"):
        HaystackRetriever(colours, model=ColourModel()).to_dict()
    with pytest.raises(UserError, match="cannot be written down; give the file of a calibration"):
        HaystackEnds(HaystackEndsRetriever(retriever, Words()).ends).to_dict()


def test_mistakes_are_told_in_one_line(store: InMemoryDocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = HaystackEnds(ListEnds.of_vectors(np.eye(5), 5))
    with pytest.raises(UserError, match="connect the embedder of the query"):
        ends.run([Document(content="a", score=0.5)])
    with pytest.raises(UserError, match="a document has no score"):
        HaystackEnds(ListEnds(Calibration.unsupervised())).run([Document(content="a")])
    monkeypatch.setitem(sys.modules, "haystack.utils", None)
    monkeypatch.delitem(sys.modules, "rungwise.integrations.haystack")
    with pytest.raises(MissingExtraError, match=r"rungwise\[haystack\]"):
        import rungwise.integrations.haystack  # noqa: F401
