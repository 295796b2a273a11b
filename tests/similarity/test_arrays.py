import numpy as np
import pytest
import torch

from rungwise.similarity import order
from rungwise.similarity._arrays import order_array


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize(("n", "m", "dimension"), [(1, 1, 3), (5, 7, 6), (70, 90, 130), (1000, 1, 300), (0, 4, 3)])
def test_equals_the_tensor_form(n, m, dimension, root):
    draw = np.random.default_rng(0)
    images, texts = (draw.standard_normal((count, dimension)).astype(np.float32) for count in (n, m))
    wanted = order(torch.from_numpy(images), torch.from_numpy(texts), root=root).numpy()
    found = order_array(images, texts, root)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_equal_rows_have_equal_scores_wherever_they_stand():
    draw = np.random.default_rng(0)
    texts = draw.standard_normal((3, 67)).astype(np.float32)
    images = np.repeat(draw.standard_normal((1, 67)).astype(np.float32), 5000, axis=0)
    assert (np.ptp(order_array(images, texts), axis=0) == 0).all()


def test_rows_of_a_memory_map_are_read(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((2, 4), np.float32))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert order_array(rows, np.full((1, 4), 3, np.float32)).tolist() == [[-16.0], [-16.0]]
