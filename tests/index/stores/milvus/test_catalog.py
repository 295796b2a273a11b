"""An index under an address of Milvus does what one in a folder does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from rungwise.core import UserError
from rungwise.index import Index, Searcher, parse_where
from rungwise.index.layout import location
from rungwise.index.maintenance import verify_index
from tests.colour_model import ColourModel, colour_pictures


def test_an_index_in_milvus(either_milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "_SECONDS", -1.0)  # what is known of a file is asked again at once
    where, model = Path(f"{either_milvus}/made_{uuid4().hex}"), ColourModel()
    data = colour_pictures(tmp_path / "photos", ["red", "blue", "green"])
    data = replace(data, columns={"year": (2020, 2021, 2022)})
    with pytest.raises(UserError, match=r"milvus://.*: no index here"):
        Index.open(where)
    with pytest.raises(UserError, match="small copies"):
        Index.create(where, model, thumbnails=True)
    for other in ("exact", "lance"):
        with pytest.raises(UserError, match=f"not the place of a store {other}; choose the store milvus"):
            Index.create(where, model, store=other)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="full precision"):
        Index.create(where, model, half=True)
    with pytest.raises(UserError, match="milvus://HOST:PORT/NAME"):
        Index.create(tmp_path / "folder", model, store="milvus")

    index = Index.create(where, model)
    index.update(data.select(range(2)), model)
    other = Index.open(where)
    assert (len(other), sorted(item.id for item in other.items())) == (2, sorted(data.image_ids[:2]))
    with pytest.raises(UserError, match="an index stands here already"):
        Index.create(where, model)
    changes = index.update(data, model)
    assert (changes.added, changes.unchanged) == (1, 2)
    assert other.is_replaced()
    other = Index.open(where)
    assert not other.is_replaced()
    searcher = Searcher(other, model)
    assert searcher.search_text("green", k=1)[0].id == "2-green"
    year = parse_where("year >= 2021 and not captions contains 'blue'")
    assert [hit.id for hit in searcher.search("a red square", 3, where=year).hits] == ["2-green"]
    assert list(other.picture_store.newest(2)) == ["2-green", "1-blue"]
    assert other.remove(data.image_ids[:1]) == 1
    assert len(Index.open(where)) == 2
    assert [check.wrong for check in verify_index(where) if check.wrong] == []
    assert not list(Path.cwd().glob("milvus:*"))
