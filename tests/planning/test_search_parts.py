from pathlib import Path
from typing import Any

import pytest

from rungwise.index import Answer, Searcher, SearchOptions
from rungwise.planning import PARTS, search_parts
from rungwise.planning._drawn_index import drawn_index, drawn_texts


def test_every_part_of_a_search_has_a_time(tmp_path: Path) -> None:
    index, model = drawn_index(tmp_path / "index", 80, 0.5, 8)
    found = search_parts(index, model, drawn_texts(3, seed=2))
    assert set(found) == {*PARTS, "encoding", "store"}
    assert all(value >= 0 for value in found.values())
    assert found["vectors"] > 0
    assert found["store"] > 0


def test_parts_are_added_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, model = drawn_index(tmp_path / "index", 80, 0.5, 8)
    asked: list[tuple[bool, bool, bool]] = []
    real = Searcher.search

    def noted(self: Searcher, query: str, k: int, *, options: SearchOptions, vectors: Any) -> Answer:
        way = (options.words != "off", options.fold_duplicates, options.end)
        asked.extend([way] if way not in asked else [])
        return real(self, query, k, options=options, vectors=vectors)

    monkeypatch.setattr(Searcher, "search", noted)
    search_parts(index, model, drawn_texts(2, seed=2))
    assert asked == [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
