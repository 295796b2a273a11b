"""Rows that stand for pictures, as a model reads them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError, from_plain
from rungwise.data.files import FeatureRows
from rungwise.data.files._feature_rows import map_rows
from rungwise.encoders import FeatureConfig, FeatureInput, ReadFeatures


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f4"])
def test_every_type_of_number_becomes_float32(dtype: object) -> None:
    values = np.array([[0.5, -1.0], [2.0, 3.0], [4.0, 0.25]]).astype(dtype)
    side = FeatureInput(2)
    rows = side.read(FeatureRows(values)).take(np.array([2, 0, 2]))
    answer = side(rows)
    assert answer.dtype == torch.float32
    assert answer.tolist() == [[4.0, 0.25], [0.5, -1.0], [4.0, 0.25]]


def test_regions_stay_apart() -> None:
    regions = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float16)
    side = FeatureInput(3)
    answer = side(side.read(FeatureRows(regions)).take(np.array([3, 1])))
    np.testing.assert_array_equal(answer.numpy(), regions[[3, 1]].astype(np.float32))


def test_rows_are_read_from_the_file_when_they_are_taken(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.arange(8, dtype=np.float16).reshape(4, 2))
    rows = ReadFeatures(FeatureRows(map_rows(tmp_path / "features.npy")).take([3, 0]))
    assert (len(rows), rows.kept.tolist(), rows.issues, rows.computed) == (2, [0, 1], (), 0)
    with (tmp_path / "features.npy").open("r+b") as file:
        file.seek(-4, 2)
        file.write(np.array([9, 11], np.float16).tobytes())
    assert rows.take(np.array([0])).tolist() == [[9.0, 11.0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_row_that_is_not_finite_is_named_by_file_and_row(bad: float, tmp_path: Path) -> None:
    first, second = np.zeros((2, 3)), np.zeros((4, 3))
    second[2, 1] = bad
    np.save(tmp_path / "one.npy", first)
    np.save(tmp_path / "two.npy", second)
    maps = [map_rows(tmp_path / name) for name in ("one.npy", "two.npy")]
    rows = ReadFeatures(FeatureRows(*maps, positions=[5, 4, 0]))
    assert rows.take(np.array([0, 2])).isfinite().all()
    with pytest.raises(UserError) as caught:
        rows.take(np.array([0, 1]))
    assert f"{tmp_path / 'two.npy'}, row 2 (from 0)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_length_is_refused_with_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.zeros((2, 5, 7), np.float32))
    with pytest.raises(UserError, match=r"features.npy: features of length 7, but the model reads .* of length 5"):
        FeatureInput(5).read(FeatureRows(map_rows(tmp_path / "features.npy")))


@pytest.mark.parametrize("width", [0, -1, 1 << 40, float("nan"), "wide"])
def test_a_width_that_cannot_be_is_refused(width: object) -> None:
    with pytest.raises(UserError, match=r"run.yaml: .*width"):
        from_plain(FeatureConfig, {"width": width}, "run.yaml")
