from threading import Thread

import numpy as np
import pytest

from rungwise.calibration import UNRELATED, Calibration, ListEnds
from rungwise.core import UserError
from rungwise.integrations._list_cutter import ListCutter
from tests.integrations.word_vectors import PAGES, cosines, pages_about, vector_of


def found(query: str) -> list[tuple[str, float | None]]:
    scores = cosines(query)
    return [(page, scores[page]) for page in sorted(scores, key=lambda page: -scores[page])[:100]]


def test_the_list_ends_after_what_fits_and_is_empty_where_nothing_does():
    cutter = ListCutter(found)
    hits = cutter.cut("owls", found("owls"))
    assert {hit.thing for hit in hits} == pages_about("owls")
    assert [hit.metadata["rung_name"] for hit in hits] == [hit.name for hit in hits]
    assert {hit.rung for hit in hits} <= {1, 2, 3}
    assert cutter.cut("the ministry of finance", found("the ministry of finance")) == []
    assert len(cutter.cut("owls", found("owls"), most=2)) == 2
    assert cutter.cut("owls", []) == []


def test_unrelated_texts_are_asked_for_once_and_not_before_they_are_needed():
    asked: list[str] = []
    cutter = ListCutter(lambda text: asked.append(text) or found(text))
    assert asked == []
    threads = [Thread(target=lambda: cutter.ends) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == list(UNRELATED)
    ours = PAGES[:12]
    ListCutter(lambda text: asked.append(text) or found(text), texts=ours).ends  # noqa: B018
    assert asked[len(UNRELATED) :] == ours


def test_distances_and_an_order_of_the_retrievers_own():
    cutter = ListCutter(lambda text: [(page, 1 - score) for page, score in found(text)], negated=True)
    shuffled = [found("chess")[at] for at in np.random.default_rng(0).permutation(100)]
    hits = cutter.cut("chess", [(page, 1 - score) for page, score in shuffled])
    assert {hit.thing for hit in hits} == pages_about("chess")
    places = [page for page, _ in shuffled]
    assert [places.index(hit.thing) for hit in hits] == sorted(places.index(hit.thing) for hit in hits)


def test_ends_of_vectors_and_a_calibration_from_a_file(tmp_path):
    vectors = np.array([vector_of(page) for page in PAGES])
    ends = ListEnds.of_vectors(vectors, len(PAGES), unrelated=[vector_of(text) for text in UNRELATED])
    hits = ListCutter(None, ends, embed=vector_of).cut("bread", found("bread"))
    assert {hit.thing for hit in hits} == pages_about("bread")
    lists = [found(f"{topic} {number}") for topic in ("owls", "bread", "chess") for number in range(20)]
    topics = [topic for topic in ("owls", "bread", "chess") for _ in range(20)]
    degrees = [[float(topic in page) for page, _ in one] for one, topic in zip(lists, topics, strict=True)]
    Calibration.fit([[score for _, score in one] for one in lists], degrees, 1).save(tmp_path / "ends.json")
    hits = ListCutter(None, tmp_path / "ends.json").cut("tides", found("tides"))
    assert {hit.thing for hit in hits} == pages_about("tides")


def test_mistakes_are_told_in_one_line(tmp_path):
    ends = ListEnds.of_vectors(np.eye(4), 4)
    for mistake, line in (
        (lambda: ListCutter(None), "there is no retriever to ask"),
        (lambda: ListCutter(None, ends), "give what encodes a query"),
        (lambda: ListCutter(None, tmp_path / "none.json"), "none.json"),
        (lambda: ListCutter(found).cut("owls", [("a page", None)]), "a document has no score"),
        (lambda: ListCutter(lambda text: [("a page", 1 / 60)] * 9).ends, "ranks are fused"),
    ):
        with pytest.raises(UserError) as refused:
            mistake()
        assert line in str(refused.value)
        assert "\n" not in str(refused.value)
