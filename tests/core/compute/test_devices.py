import pytest
import torch

from rungwise.core import UserError
from rungwise.core.compute import choose_device


@pytest.mark.parametrize(("there", "chosen"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_taken_where_there_is_one(there: bool, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert choose_device() == chosen
    assert choose_device("cpu") == "cpu"


def test_a_device_that_is_not_there_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cuda:0") == "cuda:0"
    with pytest.raises(UserError, match="device 'cuda:1' is not on this machine"):
        choose_device("cuda:1")
    with pytest.raises(UserError, match="device 'gpu' is unknown"):
        choose_device("gpu")
