"""Entries are whole or absent, known by their key, and nothing in them is believed before it was looked at."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk import write_seal
from rungwise.relevance.storage import HEADER, CachedSource, KeptFolder

KEY, OTHER = "ab" * 32, "cd" * 32
ENTRY = CachedSource(
    {"source": "TfIdf", "options": {"orders": 1}}, {"weights": np.arange(6, dtype=np.float32).reshape(2, 3)}
)


@pytest.fixture
def cache(tmp_path: Path) -> KeptFolder:
    cache = KeptFolder(tmp_path / "relevance")
    cache.keep("tfidf", KEY, ENTRY)
    return cache


def test_an_entry_comes_back(cache: KeptFolder) -> None:
    found = cache.find("tfidf", KEY)
    assert found is not None
    assert found.facts == ENTRY.facts
    np.testing.assert_array_equal(found.arrays["weights"], ENTRY.arrays["weights"])
    assert cache.find("tfidf", OTHER) is None
    assert cache.find("cider", KEY) is None


def header(place: Path, **changes: object) -> None:
    said = json.loads((place / HEADER).read_text()) | changes
    (place / HEADER).write_text(json.dumps(said))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 0}, "is of another entry or version; remove the folder"),
        ({"key": OTHER}, "is of another entry or version"),
        ({"facts": []}, "damaged; remove the folder"),
        ({"arrays": None}, "damaged; remove the folder"),
        ({"arrays": ["../../secret"]}, "names an array '../../secret'"),
        ({"arrays": ["nothing"]}, "nothing.npy: damaged"),
    ],
)
def test_a_header_that_is_none_is_refused(change: dict, message: str, cache: KeptFolder) -> None:
    place = cache.place("tfidf", KEY)
    header(place, **change)
    with pytest.raises(UserError, match="altered or damaged since it was written"):
        cache.find("tfidf", KEY)
    (place / "SHA256SUMS").unlink()
    write_seal(place)  # as a stranger would
    with pytest.raises(UserError, match=message) as caught:
        cache.find("tfidf", KEY)
    assert "\n" not in str(caught.value)


def test_arrays_of_other_types_are_refused(cache: KeptFolder) -> None:
    place = cache.place("tfidf", KEY)
    np.save(place / "weights.npy", np.zeros(3, np.complex128))
    (place / "SHA256SUMS").unlink()
    write_seal(place)
    with pytest.raises(UserError, match="weights.npy: holds complex128"):
        cache.find("tfidf", KEY)


@pytest.mark.parametrize("damage", ["cut", "bit", "gone", "more"])
def test_damage_is_found(damage: str, cache: KeptFolder) -> None:
    place = cache.place("tfidf", KEY)
    file = place / "weights.npy"
    data = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(data[:-1])
    elif damage == "bit":
        data[-1] ^= 1
        file.write_bytes(data)
    elif damage == "gone":
        file.unlink()
    else:
        (place / "notes.txt").write_text("mine")
    with pytest.raises(UserError):
        cache.find("tfidf", KEY)


def test_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = KeptFolder(tmp_path / "relevance")
    keys = [f"{number:064x}"[::-1] for number in range(1, 5)]
    for age, key in enumerate(keys[:3]):
        cache.keep("tfidf", key, ENTRY)
        os.utime(cache.place("tfidf", key) / HEADER, (100 + age, 100 + age))
    assert cache.find("tfidf", keys[0]) is not None  # used now, so the second one is the oldest
    size = sum(file.stat().st_size for file in cache.place("tfidf", keys[0]).iterdir())
    stranger = tmp_path / "relevance" / ("tfidf-" + "0" * 16)
    stranger.mkdir()
    (stranger / HEADER).write_text("{}")
    (stranger / "thesis.txt").write_text("mine")
    os.utime(stranger / HEADER, (1, 1))
    KeptFolder(tmp_path / "relevance", 3 * size + 100).keep("tfidf", keys[3], ENTRY)
    assert [cache.find("tfidf", key) is not None for key in keys] == [True, False, True, True]
    assert (stranger / "thesis.txt").read_text() == "mine"


def test_one_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="GiB, more than the 0.0 kept in all"):
        KeptFolder(tmp_path / "relevance", 10).keep("tfidf", KEY, ENTRY)
    assert not (tmp_path / "relevance").exists()


def test_a_strangers_file_is_never_replaced(tmp_path: Path) -> None:
    cache = KeptFolder(tmp_path / "relevance")
    place = cache.place("tfidf", KEY)
    place.mkdir(parents=True)
    (place / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="holds 'thesis.txt', which is no part of kept relevance"):
        cache.keep("tfidf", KEY, ENTRY)
    assert (place / "thesis.txt").read_text() == "mine"
