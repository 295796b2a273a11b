"""Tensors in safetensors files: no other module reads or writes them, and errors are lines for the user.

torch is loaded when a file is read or written, so that importing these functions is cheap.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from rungwise.core._digests import digest_of_parts
from rungwise.core._errors import UserError
from rungwise.core._untrusted_files import MissingFileError, require_regular

if TYPE_CHECKING:
    from torch import Tensor

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file; for one that appears as a whole, within :func:`rungwise.core.disk.replacing`.

    Args:
        path: Path of the file.
        tensors: Tensors by name, on any device.
        metadata: Texts for the file's header.

    Raises:
        OSError: If the disk is full or the place cannot be written.

    >>> import tempfile, torch
    >>> file = Path(tempfile.mkdtemp()) / "a.safetensors"
    >>> write_tensors(file, {"weight": torch.ones(2)}, {"epoch": "3"})
    >>> read_tensors(file)["weight"]
    tensor([1., 1.])
    """
    from safetensors.torch import save_file

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with system_errors(path):
        save_file(plain, path, metadata=dict(metadata) if metadata is not None else None)


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Raise the operating system's error where a library in Rust hides it in a text; ``path`` is what it writes.

    >>> with system_errors(Path("a.json")):
    ...     raise Exception("No space left on device (os error 28)")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'a.json'
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # tokenizers have no class of their own for it
        if found := _SYSTEM_ERROR.search(str(error)):
            code = int(found[1])
            raise OSError(code, os.strerror(code), str(path)) from error
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, by name; a UserError if the file is missing or is not safetensors."""
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping


def read_metadata(path: Path) -> dict[str, str]:
    """The texts in the header of a safetensors file, by name, as its writer left them; errors as :func:`read_tensors`.

    >>> import tempfile, torch
    >>> file = Path(tempfile.mkdtemp()) / "a.safetensors"
    >>> write_tensors(file, {"weight": torch.ones(2)}, {"epoch": "3"})
    >>> read_metadata(file)
    {'epoch': '3'}
    """
    with _opened(path) as file:
        return dict(file.metadata() or {})


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            yield file
    except MissingFileError:
        raise UserError(f"{path}: no such weights file") from None
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _damaged(path, error) from error


def digest_of_tensors(tensors: Mapping[str, Tensor], *said: str) -> str:
    """SHA-256 of the names and numbers of tensors in the order of their names, after the texts in ``said``."""
    named = ((name, tensor.detach().cpu().numpy()) for name, tensor in sorted(tensors.items()))
    return digest_of_parts(chain(said, chain.from_iterable(named)))


def _damaged(path: Path, error: Exception) -> UserError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return UserError(f"{path}: not a readable safetensors file ({reason})")


def tensor_form(tensor: Tensor) -> str:
    """Shape of a tensor, with the type of whole numbers; the precision of floating-point numbers is left out."""
    return f"{tuple(tensor.shape)}{'' if tensor.is_floating_point() else f' of {tensor.dtype}'}"
