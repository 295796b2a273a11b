import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from rungwise.core.compute import _products as module
from rungwise.core.compute import _threads as threads
from rungwise.core.compute import lengths, products, steady_products


@pytest.mark.parametrize("queries", [1, 4, 5])
@pytest.mark.parametrize("rows", [0, 1, 40_000])
def test_products_and_lengths_are_those_in_double_precision(queries: int, rows: int) -> None:
    draw = np.random.default_rng(0)
    asked, vectors = (draw.standard_normal((count, 37)).astype(np.float32) for count in (queries, rows))
    found = products(asked, vectors)
    assert (found.dtype, found.shape) == (np.float32, (queries, rows))
    np.testing.assert_allclose(found, asked.astype(float) @ vectors.astype(float).T, atol=1e-5)
    np.testing.assert_allclose(lengths(vectors), np.linalg.norm(vectors.astype(float), axis=1), rtol=1e-6)


def test_equal_rows_have_equal_products_wherever_they_stand() -> None:
    vectors = np.tile(np.random.default_rng(0).standard_normal(513).astype(np.float32), (1003, 1))
    assert len(np.unique(products(vectors[:1] * 3, vectors))) == 1


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_no_number_is_not_made_one(odd: float) -> None:
    vectors = np.ones((3, 8), np.float32)
    vectors[1, 4] = odd
    assert np.isfinite(products(np.ones((1, 8), np.float32), vectors)[0]).tolist() == [True, False, True]
    assert np.isfinite(lengths(vectors)).tolist() == [True, False, True]


def test_a_memory_map_is_read_as_it_is(tmp_path) -> None:
    np.save(tmp_path / "rows.npy", np.eye(3, dtype=np.float32))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert products(np.ones((1, 3), np.float32), mapped[1:]).tolist() == [[1, 1]]


def test_steady_products_have_the_same_bits_on_any_number_of_threads(monkeypatch) -> None:
    # Each share is still large enough for the libraries to divide it among threads.
    monkeypatch.setattr(module, "_SHARE", 512)
    draw = np.random.default_rng(3)
    first, second = (draw.normal(size=(rows, 300)).astype(np.float32) for rows in (700, 1401))
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        with threadpool_limits(count, "blas"):
            before = [library["num_threads"] for library in threadpool_info()]
            found.append(steady_products(first, second))
            assert [library["num_threads"] for library in threadpool_info()] == before
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
    np.testing.assert_allclose(found[0], first.astype(np.float64) @ second.astype(np.float64).T, atol=1e-4)


def test_steady_products_of_nothing() -> None:
    nothing, some = np.empty((0, 3), np.float32), np.ones((2, 3), np.float32)
    assert steady_products(nothing, some).shape == (0, 2)
    assert steady_products(some, nothing).shape == (2, 0)


def test_products_are_those_of_numpy_1_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    asked, vectors = (draw.standard_normal((count, 37)).astype(np.float32) for count in (2, 30))
    found = products(asked, vectors), lengths(vectors)
    monkeypatch.delattr(np, "vecdot", raising=False)
    np.testing.assert_allclose(products(asked, vectors), found[0], atol=1e-5)
    np.testing.assert_allclose(lengths(vectors), found[1], rtol=1e-6)
    assert len(np.unique(products(vectors[:1], np.tile(vectors[0], (1003, 1))))) == 1
