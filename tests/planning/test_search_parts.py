from pathlib import Path

from rungwise.index import Searcher
from rungwise.planning import PARTS, search_parts
from rungwise.planning._drawn_index import drawn_index, drawn_texts


def test_every_part_of_a_search_has_a_time(tmp_path: Path) -> None:
    index, model = drawn_index(tmp_path / "index", 80, 0.5, 8)
    found = search_parts(index, model, drawn_texts(3, seed=2))
    assert set(found) == {*PARTS, "encoding", "store"}
    assert all(value >= 0 for value in found.values())
    assert found["vectors"] > 0
    assert found["store"] > 0


def test_parts_are_added_in_their_order(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    index, model = drawn_index(tmp_path / "index", 80, 0.5, 8)
    asked = []
    real = Searcher.search

    def noted(self, query, k, *, options, vectors):  # type: ignore[no-untyped-def]
        way = (options.words != "off", options.fold_duplicates, options.end)
        asked.extend([way] if way not in asked else [])
        return real(self, query, k, options=options, vectors=vectors)

    monkeypatch.setattr(Searcher, "search", noted)
    search_parts(index, model, drawn_texts(2, seed=2))
    assert asked == [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
