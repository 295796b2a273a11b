from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rungwise.core import UnavailableError
from rungwise.index import Index, Searcher, SearchOptions
from rungwise.index.query import Query, Term, Words, parse_query
from rungwise.serving.searches import PendingSearch, searched
from rungwise.serving.state import Current
from tests.colour_model import ColourModel, colour_pictures
from tests.serving.conftest import MIXED


def test_several_searches_are_encoded_in_one_call_and_each_gets_its_own(shared_index: Index) -> None:
    class Counting(ColourModel):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[list[str]] = []

        def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
            self.calls.append(list(texts))
            return super().encode_text(texts)

    model = Counting()
    served = Current(Searcher(shared_index, model)).now()
    options = SearchOptions(words="off", end=False)

    def search(text: str, k: int = 1) -> PendingSearch:
        return PendingSearch(served, Query((Term(Words(text)),)), k, 0, None, options)

    found = list(searched([search("red"), search("blue"), search("red", 2), search("green", 0)]))
    assert model.calls == [["red", "blue", "green"]]
    assert [[hit.id for hit in one.answer.hits] for one in found[:3]][:2] == [["0-red"], ["2-blue"]]
    assert [len(one.answer.hits) for one in found[:3]] == [1, 1, 2]
    assert found[0].items["0-red"].captions == ("a red square",)
    assert isinstance(found[3], Exception)


def test_searches_that_wait_together_for_a_store_that_is_away_are_told_together(shared_index: Index) -> None:
    """Each for itself would wait for the store one after the other."""
    served = Current(Searcher(shared_index, ColourModel())).now()
    asked: list[str] = []

    def away(query: object, *_: object, **__: object) -> None:
        asked.append("away")
        raise UnavailableError("milvus://pets: the server does not answer")

    served.searcher.search = away
    pending = [
        PendingSearch(served, parse_query(text), 3, 0, None, SearchOptions()) for text in ("red", "blue", "green")
    ]
    assert [type(one) for one in searched(pending)] == [UnavailableError] * 3
    assert asked == ["away"]


def test_texts_that_wait_are_encoded_by_the_model_of_their_version(tmp_path: Path, shared_index: Index) -> None:
    class Opposite(ColourModel):
        def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return -super().encode_text(texts)

    models = (ColourModel(), Opposite(fingerprint="another" * 6))
    other = Index.build(colour_pictures(tmp_path / "photos", MIXED), models[1], tmp_path / "index")
    versions = [Current(Searcher(one, model)).now() for one, model in zip((shared_index, other), models, strict=True)]
    options = SearchOptions(words="off", end=False)
    pending = [PendingSearch(one, parse_query("red"), 1, 0, None, options) for one in versions]
    found = [one.answer.hits[0] for one in searched(pending)]
    assert (found[0].id, found[0].score) == ("0-red", pytest.approx(1, abs=1e-5))
    assert found[1].id != "0-red"
