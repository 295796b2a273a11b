import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import MissingFileError, UserError
from rungwise.core.disk.locks import LOCK, writing_alone
from rungwise.index.stores import _vector_files as vector_files
from rungwise.index.stores import read_description, read_lines, write_description, write_lines
from rungwise.index.stores._vector_files import digest_of_vectors, open_vectors


def test_lines_are_ascii_and_come_back(tmp_path: Path) -> None:
    records = [{"id": "犬\n"}, {"id": "\udcff", "n": [1, None, {"x": 0.5}]}]
    digest = write_lines(tmp_path / "a.jsonl", records)
    assert (tmp_path / "a.jsonl").read_bytes().isascii()
    assert list(read_lines(tmp_path / "a.jsonl", digest)) == records


def test_the_line_that_is_damaged_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n[2]\n')
    with pytest.raises(UserError, match=r"a\.jsonl, line 2: damaged \(not a JSON object\)"):
        list(read_lines(tmp_path / "a.jsonl"))


def test_vectors_must_have_the_expected_shape_and_type(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    np.save(path, np.ones((2, 3), np.float32))
    assert open_vectors(path, 2, 3).shape == (2, 3)
    assert open_vectors(tmp_path / "nowhere.npy", 0, 3).shape == (0, 3)
    for rows, dimension in ((3, 3), (2, 2)):
        with pytest.raises(UserError, match=r"float32 of shape \(2, 3\) where"):
            open_vectors(path, rows, dimension)
    np.save(path, np.ones((2, 3), np.float64))
    with pytest.raises(UserError, match="float64"):
        open_vectors(path, 2, 3)


def test_a_description_is_of_the_expected_format_and_version_and_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    with pytest.raises(MissingFileError):
        read_description(path, "thing", 1)
    path.write_text('{"format": "thing", "version": 2}')
    with pytest.raises(UserError, match="checksums differ"):
        read_description(path, "thing", 2)
    with pytest.raises(UserError, match="of version 2, but this rungwise reads version 1"):
        read_description(path, "thing", 1)
    with pytest.raises(UserError, match="not the description of a 'other'"):
        read_description(path, "other", 2)
    fields = {
        "format": "thing",
        "version": 3,
        "size": 0.1 + 0.2,
        "names": ["\udcff", "犬"],
        "side": {"b": 1, "a": None},
    }
    write_description(path, fields)
    assert read_description(path, "thing", 3) == fields
    text = path.read_text()
    path.write_text(json.dumps(json.loads(text), indent=4, sort_keys=True))
    assert read_description(path, "thing", 3) == fields, "spaces and order are free"
    for old, new in (("null", "1"), ("0.30000000000000004", "0.3"), ("checksum", "sum")):
        path.write_text(text.replace(old, new))
        with pytest.raises(UserError, match=r"it\.json: damaged .*checksums differ.*; build the index again"):
            read_description(path, "thing", 3)
    path.write_text('{"a":' * 10_000)
    with pytest.raises(UserError, match="nested too deeply"):
        read_description(path, "thing", 3)


def test_refusals_while_writing_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="disk is full"), writing_alone(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with writing_alone(tmp_path):
        assert (tmp_path / LOCK).exists()


def test_lines_that_were_changed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    digest = write_lines(path, [{"id": 1}, {"id": 2}])
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [one["id"] for one in read_lines(path, digest)] == [1, 2]
    for text in ('{"id": 2}\n{"id": 1}\n', '{"id": 1}\n', '{"id": 1}\n{"id": 2}\n\n'):
        path.write_text(text)
        with pytest.raises(UserError, match=r"a\.jsonl.*damaged"):
            list(read_lines(path, digest))


def test_vectors_that_were_changed_or_hold_no_number_are_refused(tmp_path: Path) -> None:
    path, vectors = tmp_path / "v.npy", np.arange(60, dtype=np.float32).reshape(20, 3)
    np.save(path, vectors)
    digest = digest_of_vectors(vectors)
    np.testing.assert_array_equal(open_vectors(path, 20, 3, digest), vectors)
    np.save(path, vectors[::-1].copy())
    with pytest.raises(UserError, match=r"v\.npy: damaged .*checksums differ.*; build the index again"):
        open_vectors(path, 20, 3, digest)
    assert open_vectors(path, 20, 3).shape == (20, 3), "nobody asked to look"
    vectors[7, 1] = np.nan
    np.save(path, vectors)
    with pytest.raises(UserError, match=r"v\.npy: damaged \(row 7 \(from 0\) holds NaN or infinity\)"):
        open_vectors(path, 20, 3, digest)
    large = np.full((20, 3), 3e38, np.float32)
    np.save(path, large)
    assert open_vectors(path, 20, 3, digest_of_vectors(large)).max() > 1e38, "large numbers are numbers"


def test_a_file_that_is_taken_away_while_it_is_opened_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.ones((20, 3), np.float32))

    def mapped_and_gone(path: Path) -> np.ndarray:
        vectors = np.load(path, mmap_mode="r")
        path.unlink()
        return vectors

    monkeypatch.setattr(vector_files, "mapped", mapped_and_gone)
    with pytest.raises(UserError, match=r"v\.npy: damaged"):
        open_vectors(path, 20, 3, "5e")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    for read in (
        lambda: list(read_lines(path)),
        lambda: open_vectors(path, 1, 1),
        lambda: read_description(path, "thing", 1),
    ):
        with pytest.raises(UserError, match="is a pipe, not a file"):
            read()
