import errno
from pathlib import Path

import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.core.locks import LOCK, writing_alone
from rungwise.index.files import open_vectors, read_description, read_lines, write_lines


def test_lines_are_ascii_and_come_back(tmp_path: Path) -> None:
    records = [{"id": "犬\n"}, {"id": "\udcff", "n": [1, None, {"x": 0.5}]}]
    write_lines(tmp_path / "a.jsonl", records)
    assert (tmp_path / "a.jsonl").read_bytes().isascii()
    assert list(read_lines(tmp_path / "a.jsonl")) == records


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


def test_a_description_is_of_the_expected_format_and_version(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    with pytest.raises(FileNotFoundError):
        read_description(path, "thing", 1)
    path.write_text('{"format": "thing", "version": 2}')
    assert read_description(path, "thing", (1, 2))["version"] == 2
    with pytest.raises(UserError, match="of version 2, but this rungwise reads version 1"):
        read_description(path, "thing", 1)
    with pytest.raises(UserError, match="not the description of a 'other'"):
        read_description(path, "other", 2)


def test_refusals_while_writing_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="disk is full"), writing_alone(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with writing_alone(tmp_path):
        assert (tmp_path / LOCK).exists()
