import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError, limited
from rungwise.core.disk import SEAL, check_seal, read_seal, write_seal
from rungwise.relevance import CIDErD, load, write_degrees
from rungwise.relevance.storage import saved

CAPTIONS = ["a dog runs", "a red dog", "the cat sleeps", "a cat", "blue sky", "a dog and a cat"]
OWNERS = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def source():
    return CIDErD(CAPTIONS, OWNERS)


def test_saving_again_replaces_but_never_something_else(source, tmp_path):
    source.save(tmp_path / "degrees", k=1)
    source.save(tmp_path / "degrees")
    assert not (tmp_path / "degrees/indices.npy").exists()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/values.npy").touch()
    with pytest.raises(UserError, match="holds no relevance degrees"):
        source.save(tmp_path / "photos")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["degrees", "photos"]


def test_damage_is_named(source, tmp_path):
    with pytest.raises(UserError, match="no relevance degrees here"):
        load(tmp_path / "nowhere")
    source.save(tmp_path / "degrees")
    header = tmp_path / "degrees/relevance.json"
    good = header.read_text()
    header.write_text(json.dumps(json.loads(good) | {"shape": [7, 6]}))
    with pytest.raises(UserError, match=r"relevance\.json: altered or damaged since it was written"):
        load(tmp_path / "degrees")
    write_seal(tmp_path / "degrees")
    with pytest.raises(UserError, match="does not fit"):
        load(tmp_path / "degrees")
    header.write_text(good[:20])
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")
    header.write_text(good)
    values = tmp_path / "degrees/values.npy"
    values.write_bytes(values.read_bytes()[:-8])
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here that is always full")
@pytest.mark.parametrize("k", [None, 2])
def test_a_full_disk_is_said_in_one_line_and_leaves_nothing(source, tmp_path, monkeypatch, k):
    real = Path.open

    def full(path, *arguments, **options):
        return real(Path("/dev/full") if path.suffix == ".npy" else path, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UserError, match="the disk is full"):
        source.save(tmp_path / "degrees", k=k)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": None}, "has no models"),
        ({"version": 99}, "of version 99, where this program reads 1"),
        ({"direction": "sideways"}, "direction 'sideways'"),
        ({"options": None}, "has no options"),
        ({"source": None}, "has no source"),
        ({"k": "many"}, "damaged"),
        ({"options": [1]}, r"damaged .*says options \[1\]"),
        ({"complete": "yes"}, "damaged .*says complete 'yes'"),
        ({"reference": "closest"}, "damaged .*says reference 'closest'"),
        ({"content_hash": 7}, "damaged .*says content_hash 7"),
    ],
)
def test_a_header_that_says_something_odd_is_refused(source, tmp_path, change, said):
    source.save(tmp_path / "degrees", k=2)
    header = tmp_path / "degrees/relevance.json"
    kept = json.loads(header.read_text()) | change
    header.write_text(json.dumps({key: value for key, value in kept.items() if key not in change or value is not None}))
    write_seal(tmp_path / "degrees")
    with pytest.raises(UserError, match=said):
        load(tmp_path / "degrees")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("indices.npy", np.full((4, 2), 77, np.int32)),
        ("indices.npy", np.full((4, 2), -1, np.int32)),
        ("indices.npy", np.zeros((4, 2), np.float32)),
        ("indices.npy", np.zeros((4, 2), np.int8)),
        ("values.npy", np.zeros((4, 2), np.int64)),
        ("values.npy", np.zeros((4, 2), np.float16)),
        ("image_of_caption.npy", np.zeros(5, np.int64)),
        ("image_of_caption.npy", np.full(6, 4)),
    ],
)
def test_an_array_that_does_not_fit_is_refused(source, tmp_path, name, array):
    source.save(tmp_path / "degrees", k=2)
    np.save(tmp_path / "degrees" / name, array)
    write_seal(tmp_path / "degrees")
    with pytest.raises(UserError, match=f"damaged .{name} .*; save the source again"):
        load(tmp_path / "degrees")


@pytest.mark.parametrize("content", [b"", b"PK\3\4 an archive that was cut off", b"\x93NUMPY\1\0\x08\0{'shape'"])
def test_a_file_of_another_kind_is_refused(source, tmp_path, content):
    source.save(tmp_path / "degrees")
    (tmp_path / "degrees/values.npy").write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")
    with pytest.raises(UserError, match="no relevance degrees here"):
        load(tmp_path / "degrees/values.npy")


def test_an_archive_in_place_of_an_array_is_refused(source, tmp_path):
    source.save(tmp_path / "degrees")
    np.savez(tmp_path / "values.npz", values=source.dense())
    (tmp_path / "values.npz").replace(tmp_path / "degrees/values.npy")
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")


def test_a_folder_with_somebody_elses_file_is_never_replaced(source, tmp_path):
    source.save(tmp_path / "degrees")
    (tmp_path / "degrees" / "notes.txt").write_text("by hand")
    with pytest.raises(UserError, match=r"holds 'notes\.txt', which is no part of saved relevance degrees"):
        source.save(tmp_path / "degrees", k=1)
    assert (tmp_path / "degrees" / "notes.txt").read_text() == "by hand"
    assert not (tmp_path / "degrees" / "indices.npy").exists()


def test_degrees_are_sealed_and_one_flipped_bit_is_noticed(source, tmp_path):
    source.save(tmp_path / "degrees", k=2)
    assert set(read_seal(tmp_path / "degrees")) == {
        "relevance.json",
        "values.npy",
        "indices.npy",
        "image_of_caption.npy",
    }
    for file in sorted((tmp_path / "degrees").iterdir()):
        good = file.read_bytes()
        file.write_bytes(good[:-4] + bytes([good[-4] ^ 1]) + good[-3:])
        with pytest.raises(UserError) as caught:
            load(tmp_path / "degrees")
        assert "\n" not in str(caught.value)
        file.write_bytes(good)
    load(tmp_path / "degrees")


def test_large_degrees_are_opened_without_reading_them_through(source, tmp_path):
    source.save(tmp_path / "degrees")
    values = np.load(tmp_path / "degrees/values.npy")
    np.save(tmp_path / "degrees/values.npy", values[::-1].copy())
    with limited(checked_bytes=values.nbytes):
        load(tmp_path / "degrees")
        with pytest.raises(UserError, match=r"values\.npy: altered or damaged"):
            check_seal(tmp_path / "degrees")
    with pytest.raises(UserError, match=r"values\.npy: altered or damaged"):
        load(tmp_path / "degrees")


def test_degrees_without_their_seal_are_refused(source, tmp_path):
    source.save(tmp_path / "degrees")
    (tmp_path / "degrees" / SEAL).unlink()
    with pytest.raises(UserError, match="SHA256SUMS: missing, so nobody knows whether the folder is whole; make"):
        load(tmp_path / "degrees")


@pytest.mark.parametrize("checked_bytes", [0, 1 << 20])
def test_a_reader_gets_all_of_one_folder_whatever_happens_between_two_files(
    source, tmp_path, monkeypatch, checked_bytes
):
    other = CIDErD(CAPTIONS[::-1], OWNERS)
    whole = {one.content_hash(): one.dense() for one in (source, other)}
    (source).save(tmp_path / "degrees")
    for at in range(100):
        done = iter(range(1000))

        def hooked(original, at=at, done=done):
            def wrapped(*args, **kwargs):
                if next(done) == at:
                    (other, source)[at % 2].save(tmp_path / "degrees")
                return original(*args, **kwargs)

            return wrapped

        with monkeypatch.context() as patch, limited(checked_bytes=checked_bytes):
            for name in ("read_json", "mapped", "check_seal", "require_regular"):
                patch.setattr(saved, name, hooked(getattr(saved, name)))
            stored = load(tmp_path / "degrees")
        np.testing.assert_array_equal(stored.dense(), whole[stored.content_hash()])
        if next(done) <= at:
            break
    assert 3 < at < 40


def test_a_second_run_that_would_write_there_is_refused_at_once(source, tmp_path):
    source.save(tmp_path / "degrees")
    with saved.replacing(tmp_path / "degrees") as draft:
        with pytest.raises(UserError, match="another process writes saved relevance degrees here now"):
            source.save(tmp_path / "degrees", k=1)
        write_degrees(source, draft, k=2)
    assert load(tmp_path / "degrees").header["k"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["degrees"]


def test_a_file_of_somebody_in_a_subfolder_is_found(source, tmp_path):
    source.save(tmp_path / "degrees")
    (tmp_path / "degrees" / "mine").mkdir()
    (tmp_path / "degrees" / "mine" / "values.npy").write_text("by hand")
    with pytest.raises(UserError, match=r"holds 'mine/values\.npy', which is no part"):
        source.save(tmp_path / "degrees", k=1)
    assert (tmp_path / "degrees" / "mine" / "values.npy").read_text() == "by hand"


def test_names_in_no_known_encoding_survive(source, tmp_path, monkeypatch):
    monkeypatch.setattr(type(source), "options", lambda _: {"of": "caf\udce9.txt"})
    source.save(tmp_path / "degrees")
    assert load(tmp_path / "degrees").options() == {"of": "caf\udce9.txt"}
