import errno

import pytest
import torch
from safetensors import safe_open

from rungwise.core import UserError
from rungwise.core.disk import replacing
from rungwise.core.formats import read_metadata, read_tensors, tensor_form, write_tensors


def test_there_and_back(tmp_path):
    given = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.ones(2, requires_grad=True)}
    write_tensors(tmp_path / "x", given, {"epoch": "3"})
    found = read_tensors(tmp_path / "x")
    assert all(torch.equal(found[name], given[name]) for name in given)
    with safe_open(tmp_path / "x", framework="pt") as file:
        assert file.metadata() == {"epoch": "3"}
    assert read_metadata(tmp_path / "x") == {"epoch": "3"}
    write_tensors(tmp_path / "x", given)
    assert read_metadata(tmp_path / "x") == {}


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"\x10" + b"\0" * 7 + b"{" * 16, b"\0" * 8])
@pytest.mark.parametrize("read", [read_tensors, read_metadata])
def test_what_is_no_file_of_tensors(tmp_path, content, read):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match="x: not a readable safetensors file"):
        read(tmp_path / "x")
    with pytest.raises(UserError, match="nowhere: no such weights file"):
        read(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is a folder"):
        read(tmp_path)


def test_a_full_disk_is_said_as_such(tmp_path, monkeypatch):
    from safetensors import SafetensorError

    def full(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError) as caught:
        write_tensors(tmp_path / "x", {})
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(UserError, match="the disk is full"), replacing(tmp_path / "x") as draft:
        write_tensors(draft, {})


def test_the_form_of_a_tensor_leaves_the_precision_of_floats_out():
    assert tensor_form(torch.zeros(2, 3)) == tensor_form(torch.zeros(2, 3, dtype=torch.float16)) == "(2, 3)"
    assert tensor_form(torch.arange(4)) == "(4,) of torch.int64"
