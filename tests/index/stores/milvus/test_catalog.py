"""An index under an address of Milvus does what one in a folder does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from rungwise.core import UserError
from rungwise.index import Index, Searcher, parse_where
from rungwise.index.layout import location
from rungwise.index.maintenance import compact_index, verify_index
from rungwise.index.stores.milvus import catalog
from rungwise.index.stores.milvus._server import Server
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


def test_compacting_removes_earlier_generations_and_nothing_of_others(either_milvus: str, tmp_path: Path) -> None:
    name, model = f"swept_{uuid4().hex}", ColourModel()
    where = Path(f"{either_milvus}/{name}")
    data = colour_pictures(tmp_path / "photos", ["red", "blue"])
    for _ in range(2):
        Index.build(data, model, where, store="milvus", overwrite=True)
    server = Server(catalog.address_in(where))
    counts = server.behind(name)
    stranger, neighbour = f"{name}_0123abcd", Path(f"{either_milvus}/{name}_2")
    server.call(lambda client, wait: client.create_collection(stranger, dimension=2, timeout=wait))
    Index.build(data, model, neighbour, store="milvus")
    draft = catalog.address_in(catalog.drafted(catalog.address_in(where)))
    drafted = f"{name}_{draft.generation}"
    before = [one for one in catalog._generations(server) if one not in (counts, drafted)]
    assert len(before) == 1, "the one that counted before stays for those who search it"

    done = compact_index(where)
    assert (done.removed, done.drafts) == (tuple(before), (drafted,))
    assert (done.before, done.after, done.spaces) == (None, None, ()), "Milvus does not say how much it takes"
    assert "MiB" not in "".join(done.lines())
    assert len(done.lines()) == 2
    assert sorted(catalog._generations(server)) == sorted([counts, drafted])
    assert server.has(stranger)
    assert len(Index.open(where)) == len(Index.open(neighbour)) == 2

    later = catalog.sweep(where, clock=lambda: 4e9)  # nobody has written to the draft for an hour
    assert (later.removed, later.drafts) == ((drafted,), ())
    assert catalog.sweep(where) == catalog.Swept()
    server.drop(stranger)


def test_a_draft_that_counts_by_now_is_not_taken_for_a_left_one(
    milvus_in_memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is published between two questions of the one who sweeps."""
    where, model = Path(f"{milvus_in_memory}/pets"), ColourModel()
    data = colour_pictures(tmp_path / "photos", ["red"])
    Index.build(data, model, where, store="milvus")
    draft, listed = catalog.drafted(catalog.address_in(where)), catalog._generations

    def published(server: Server) -> list[str]:
        found = listed(server)
        monkeypatch.setattr(catalog, "_generations", listed)
        catalog.publish(draft)
        return found

    monkeypatch.setattr(catalog, "_generations", published)
    done = catalog.sweep(where)
    server = Server(catalog.address_in(where))
    assert server.behind("pets") == f"pets_{catalog.address_in(draft).generation}"
    assert server.behind("pets") not in done.removed
    assert len(done.removed) == 1


def test_who_writes_a_draft_says_so_again_and_again(milvus_in_memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = catalog.drafted(catalog.address_in(Path(f"{milvus_in_memory}/pets")))
    said, mark = Event(), catalog._mark

    def marked(*words: Any) -> None:
        mark(*words)
        said.set()

    monkeypatch.setattr(catalog, "_mark", marked)
    monkeypatch.setattr(catalog, "_BEAT_SECONDS", 0.0)
    with catalog.being_written(draft):
        said.wait()
    catalog.publish(draft)
    assert catalog.sweep(draft.parent / "pets") == catalog.Swept()
