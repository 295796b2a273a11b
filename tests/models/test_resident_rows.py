from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.data import Issue
from rungwise.models import _resident_rows as module
from rungwise.models import resident
from rungwise.models._resident_rows import ResidentRows


@dataclass(frozen=True)
class Held:
    """Rows in memory."""

    values: Tensor
    issues: tuple[Issue, ...] = (Issue("missing picture", "b.jpg"),)
    computed: int = 3
    seconds: float = 0.5

    @property
    def kept(self) -> NDArray[np.int64]:
        return np.arange(len(self.values)) * 2

    def __len__(self) -> int:
        return len(self.values)

    def take(self, positions: NDArray[np.int64]) -> Tensor:
        return self.values[torch.from_numpy(positions)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_copied_rows_are_the_same(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COPIED", 4)
    rows = Held(torch.arange(30).reshape(10, 3).to(dtype))
    copied = ResidentRows.of(rows, torch.device("cpu"))
    chosen = np.array([7, 0, 7, 3])
    assert torch.equal(copied.take(chosen), rows.take(chosen))
    assert (len(copied), copied.kept.tolist()) == (10, rows.kept.tolist())
    assert (copied.issues, copied.computed, copied.seconds) == (rows.issues, 3, 0.5)


def test_a_gpu_takes_what_fits_into_the_share_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, gpu = Held(torch.zeros(10, 25)), torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (4000, 8000))
    monkeypatch.setattr(ResidentRows, "of", lambda rows, device: (len(rows), device))
    assert resident(rows, gpu, 0.25) == (10, gpu)
    assert resident(rows, gpu, 0.24) is rows
    assert resident(Held(torch.zeros(0, 25)), gpu, 0.25).take is not None
    assert resident(rows, torch.device("cpu"), 1.0) is rows
