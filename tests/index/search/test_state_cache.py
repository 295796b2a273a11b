from types import SimpleNamespace
from typing import Any, cast

from rungwise.index.search import StateCache
from rungwise.index.stores import WORDS
from rungwise.similarity import Cosine
from tests.index.toy_store import ToyStore


class Asked(ToyStore):
    words: tuple[str, ...] = ()

    def find_words(self, words: str, *rest: Any, **others: Any) -> Any:
        self.words += (words,)
        return super().find_words(words, *rest, **others)


def test_whether_the_collection_has_a_word_is_asked_once() -> None:
    store = Asked(2, Cosine())
    store.upsert(["a", "b"], [[1, 0], [0, 1]], [{WORDS: "a red car"}, {WORDS: "Cafés"}])
    state = StateCache(cast("Any", SimpleNamespace(picture_store=store)))
    assert state.has_word("red")
    assert state.has_word("CAFÉS")
    assert not store.words, "the texts that were read say it"
    assert not state.has_word("boat")
    assert not state.has_word("boat")
    assert store.words == ("boat",)
