import os
from itertools import product

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.relevance.storage.pair_cache import Keys, PairCache

TEXTS = ["a dog", "a cat", "a fox", ""]
FIRST, SECOND = (np.array(side) for side in zip(*product(range(4), repeat=2), strict=True))


def keys(fingerprint="model", symmetric=False):
    return Keys(TEXTS, fingerprint, symmetric=symmetric).of(FIRST, SECOND)


def test_keys_differ_by_texts_order_and_model():
    assert len(np.unique(keys())) == 16
    assert len(np.unique(keys(symmetric=True))) == 10
    assert len(np.unique(np.concatenate([keys(), keys("other"), keys(symmetric=True)]))) == 16 + 16 + 10


def test_keys_are_of_texts_and_not_of_positions():
    again = Keys(list(reversed(TEXTS)), "model", symmetric=False)
    np.testing.assert_array_equal(again.of(3 - FIRST, 3 - SECOND), keys())


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 15), max_size=6), max_size=5))
def test_finds_what_was_added_and_nothing_else(tmp_path_factory, additions):
    file = tmp_path_factory.mktemp("cache") / "scores"
    every, cache, wanted = keys(), PairCache(file), {}
    for some in additions:
        new = [one for one in dict.fromkeys(some) if one not in wanted]
        wanted |= {one: one / 7 for one in new}
        cache.add(every[new], np.array([wanted[one] for one in new], np.float32))
    for found in (cache, PairCache(file)):
        scores, known = found.look_up(every)
        assert known.tolist() == [one in wanted for one in range(16)]
        np.testing.assert_allclose(scores, [wanted.get(one, 0) for one in range(16)], rtol=1e-6)
        assert len(found) == len(wanted)


@settings(max_examples=20)
@given(st.integers(0, 24 * 5))
def test_a_file_that_was_cut_off_keeps_its_whole_records_and_grows_on(tmp_path_factory, size):
    file = tmp_path_factory.mktemp("cache") / "scores"
    every, scores = keys(), np.arange(16, dtype=np.float32)
    PairCache(file).add(every[:4], scores[:4])
    file.write_bytes(file.read_bytes()[:size])
    whole = max(0, size // 24 - 1)
    assert PairCache(file).look_up(every)[1].sum() == min(4, whole)
    PairCache(file).add(every[8:], scores[8:])
    found, known = PairCache(file).look_up(every)
    assert np.flatnonzero(known).tolist() == [*range(min(4, whole)), *range(8, 16)]
    np.testing.assert_array_equal(found[known], scores[known])


@pytest.mark.parametrize("damage", [b"\0" * 24, b"\xff" * 24])
def test_damaged_records_are_skipped_and_counted(tmp_path, damage):
    file = tmp_path / "scores"
    every, scores = keys(), np.arange(16, dtype=np.float32)
    PairCache(file).add(every, scores)
    data = file.read_bytes()
    file.write_bytes(data[:48] + damage + data[72:])
    cache = PairCache(file)
    assert cache.skipped == 1
    assert np.flatnonzero(~cache.look_up(every)[1]).tolist() == [1]


def test_a_flipped_score_is_noticed(tmp_path):
    file = tmp_path / "scores"
    PairCache(file).add(keys()[:1], np.array([1], np.float32))
    data = bytearray(file.read_bytes())
    data[24 + 18] ^= 1
    file.write_bytes(bytes(data))
    assert PairCache(file).skipped == 1


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        PairCache(tmp_path / "file" / "scores")
    with pytest.raises(UserError, match="is a folder, not a file"):
        PairCache(tmp_path)
    PairCache(tmp_path / "new" / "scores")
    assert len(PairCache(tmp_path / "new" / "scores")) == 0


def test_another_kind_of_file_is_not_touched(tmp_path):
    file = tmp_path / "thesis.txt"
    file.write_text("years of work, and no cache")
    with pytest.raises(UserError, match="is no cache of pair scores"):
        PairCache(file)
    assert file.read_text() == "years of work, and no cache"


@pytest.mark.parametrize("name", ["scores", "scores.lock"])
def test_a_planted_link_is_not_followed(tmp_path, name):
    victim = tmp_path / "thesis.txt"
    victim.write_text("")
    (tmp_path / name).symlink_to(victim)
    with pytest.raises((UserError, OSError)):
        PairCache(tmp_path / "scores").add(keys()[:1], np.array([1], np.float32))
    assert victim.read_text() == ""


def test_scores_are_on_the_disk_when_they_are_added(tmp_path, monkeypatch):
    file, synced = tmp_path / "scores", []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size) or real(handle))
    cache = PairCache(file)
    cache.add(keys()[:2], np.ones(2, np.float32))
    assert synced[-1] == file.stat().st_size == 24 * 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "scores")
    with pytest.raises(UserError, match="is a pipe, not a file"):
        PairCache(tmp_path / "scores")


def test_who_waits_too_long_gets_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr("rungwise.core.disk.locks._SECONDS_TO_WAIT", 0)  # at once, without a sleep
    cache = PairCache(tmp_path / "scores")
    with (
        FileLock(tmp_path / "scores.lock"),
        pytest.raises(UserError, match="another process has been writing here for 0 s"),
    ):
        cache.add(keys()[:1], np.ones(1, np.float32))


@pytest.mark.parametrize("rate", [49, 5000])
def test_scores_are_in_the_file_every_few_seconds(tmp_path, rate):
    """Whatever the rate is, an interruption costs little, and fast sources are not slowed by many small additions."""
    count = 10_000
    texts = [str(number) for number in range(count)]
    of_pairs = Keys(texts, "model", symmetric=False).of(np.arange(count), np.zeros(count, np.int64))
    file, now, ends, scored = tmp_path / "scores", [0.0], [0.0], [0]

    def score(places):
        now[0] += len(places) / rate
        return np.zeros(len(places), np.float32)

    def ran(pairs, to_go, seconds):
        assert seconds == pytest.approx(pairs / rate)
        ends.append(now[0])
        scored.append(scored[-1] + pairs)
        assert scored[-1] + to_go == count
        assert file.stat().st_size // 24 - 1 == scored[-1]

    PairCache(file, clock=lambda: now[0]).completed(of_pairs, np.full(count, 9), score, ran)
    assert scored[-1] == count
    assert np.diff(ends).max() < 5
    assert len(ends) < max(20, now[0])
