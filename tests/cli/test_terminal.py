import pytest
import torch

from rungwise.cli.terminal import chosen_device


def test_a_gpu_that_nobody_asked_for_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert chosen_device(None) == "cuda"
    assert capsys.readouterr().out == "computing on cuda; --device cpu computes on the processor instead\n"
    assert chosen_device("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen_device(None) == "cpu"
    assert capsys.readouterr().out == ""
