"""Folders as rungwise wrote them before there were stores."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.index import Index, Searcher, version1
from rungwise.index.items import Item
from rungwise.index.storage import VERSION
from rungwise.similarity import Cosine
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes

MIXED = ["red", "green", "blue", "red", "yellow"]


def old_record(item: Item, folder: Path) -> dict[str, object]:
    """As versions 1 to 3 wrote it."""
    captions = [{"id": i, "text": text} for i, text in zip(item.caption_ids, item.captions, strict=True)]
    return {"path": os.path.relpath(item.path, folder), "captions": captions}


@pytest.fixture
def old(tmp_path: Path) -> Index:
    """What is in the folder ``old``, as an index of today."""
    today = Index.build(
        colour_pictures(tmp_path / "photos", MIXED), ColourModel(), tmp_path / "today", model_location="m"
    )
    folder = tmp_path / "old"
    folder.mkdir()
    pictures, captions = today.picture_store, today.caption_store
    for store, name in ((pictures, "vectors.npy"), (captions, "caption_vectors.npy")):
        rows = store.get([one for one, _ in store.records()]).values()
        np.save(folder / name, np.stack([row.vector for row in rows]))
    lines = [json.dumps({"id": item.id, **old_record(item, folder)}) + "\n" for item in today.items()]
    (folder / "items.jsonl").write_text("".join(lines))
    (folder / "issues.jsonl").write_text("")
    facts = {
        "name": "colours", "model_fingerprint": ColourModel().fingerprint, "model_location": "m",
        "similarity": "cosine", "dimension": 3, "pictures": 5, "captions": 4, "skipped": 1,
        "format": "rungwise-index", "version": 1,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps(facts))
    return today


def answers(index: Index) -> list[object]:
    searcher = Searcher(index, ColourModel())
    picture = picture_bytes(COLOURS["red"])
    return [searcher.search_text("red yellow"), searcher.search_image(picture), searcher.captions_for(picture)]


def without_facts(index: Index) -> list[Item]:
    """Earlier versions wrote nothing of a picture's file but its place."""
    return [replace(item, columns={}) for item in index.items()]


def test_an_old_folder_opens_searches_and_stays_as_it_is(old: Index, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()}
    index = Index.open(tmp_path / "old")
    assert (without_facts(index), list(index.captions()), index.similarity) == (
        without_facts(old),
        list(old.captions()),
        Cosine(),
    )
    assert (index.manifest.skipped, index.manifest.model_location) == (1, "m")
    assert answers(index) == answers(old)
    assert {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()} == before
    for change in (lambda: index.picture_store.upsert(["a"], np.ones((1, 3))), lambda: index.picture_store.delete([])):
        with pytest.raises(UserError, match="read-only"):
            change()


def test_the_first_change_brings_it_up_to_date(old: Index, tmp_path: Path) -> None:
    index, reader = Index.open(tmp_path / "old"), Index.open(tmp_path / "old")
    assert index.remove(["1-green"]) == 1
    old.remove(["1-green"])
    assert sorted(file.name for file in (tmp_path / "old").iterdir()) == [
        "captions", "index.json", "issues.jsonl", "lock", "pictures",
    ]  # fmt: skip
    for one in (index, Index.open(tmp_path / "old")):
        assert (without_facts(one), list(one.captions()), one.manifest.version) == (
            without_facts(old),
            list(old.captions()),
            VERSION,
        )
        assert answers(one) == answers(old)
    assert len(list(reader.items())) == 5
    assert reader.remove(["2-blue"]) == 1
    assert len(Index.open(tmp_path / "old")) == len(reader) == 3


def test_a_death_on_the_way_leaves_the_old(old: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    opened = Index.open(tmp_path / "old")
    with monkeypatch.context() as patch:
        patch.setattr(version1.storage, "write_manifest", dies)
        with pytest.raises(KeyboardInterrupt):
            opened.remove(["1-green"])
    index = Index.open(tmp_path / "old")
    assert (index.manifest.version, answers(index)) == (1, answers(old))
    assert index.remove(["1-green"]) == 1
    assert len(Index.open(tmp_path / "old")) == 4


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "vectors.npy").unlink(), "vectors.npy"),
        (lambda folder: (folder / "caption_vectors.npy").write_bytes(b""), "caption_vectors.npy"),
        (lambda folder: (folder / "items.jsonl").write_text("{}\n" * 5), "lacks id"),
        (lambda folder: (folder / "items.jsonl").write_text(""), "0 items where index.json says 5"),
        (lambda folder: (folder / "index.json").write_text('{"format": "rungwise-index", "version": 1}'), "name"),
    ],
)
def test_damage_is_one_line(old: Index, tmp_path: Path, damage: object, message: str) -> None:
    damage(tmp_path / "old")
    with pytest.raises(UserError, match=message) as error:
        Index.open(tmp_path / "old")
    assert "\n" not in str(error.value)


def test_a_folder_of_somebody_with_the_name_of_a_store_is_kept(old: Index, tmp_path: Path) -> None:
    (tmp_path / "old" / "pictures").mkdir()
    (tmp_path / "old" / "pictures" / "holiday.jpg").write_bytes(b"the only copy")
    with pytest.raises(UserError, match=r"holds 'pictures/holiday\.jpg', which is no part of an index"):
        Index.open(tmp_path / "old").remove(["1-green"])
    assert (tmp_path / "old" / "pictures" / "holiday.jpg").read_bytes() == b"the only copy"
    assert len(Index.open(tmp_path / "old")) == 5
