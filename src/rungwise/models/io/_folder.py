"""The files of a saved model: each is checked before it is read, and read once.

A folder has a seal, ``SHA256SUMS``: the bytes that are parsed are those that were compared with it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rungwise.core import (
    MissingFileError,
    UserError,
    digest_of_parts,
    is_regular,
    opened_file,
    parse_json,
    read_bytes,
    readable,
)
from rungwise.core.disk import SEAL, has_seal, read_seal
from rungwise.core.disk.staging import sweep
from rungwise.core.formats import read_tensors
from rungwise.core.network import hub_folder
from rungwise.core.output import short_repr

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
IMAGE_GRAPH, TEXT_GRAPH = "image.onnx", "text.onnx"
"""In place of weights, where a model was exported."""
CARD = "README.md"
TOKENIZER = "tokenizer.json"
CALIBRATION = "calibration.json"
"""Calibration of the model's scores, where one was fitted; see :mod:`rungwise.models.io._calibration_file`."""
PATTERNS = ("*.json", "*.txt", WEIGHTS, IMAGE_GRAPH, TEXT_GRAPH, SEAL, CARD)
"""Files that are downloaded from a repository of the hub; none of them could be unpickled."""


_EXPORTED = frozenset({CALIBRATION, CONFIG, CARD, TOKENIZER, IMAGE_GRAPH, TEXT_GRAPH})


def parts_of_export(folder: Path) -> Collection[str]:
    """Names of the files in a folder that a new export may replace: those of another exported model."""
    sweep(folder)  # what a killed run had moved aside comes back
    return _EXPORTED if (folder / IMAGE_GRAPH).is_file() else ()


class AlteredModelError(UserError):
    """A file of a model is not as it was saved.

    Attributes:
        reason: The file, and how the change was noticed.
    """

    __module__ = "rungwise.models.io"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}; get the model anew, or take it as it is with altered=True")


_WIDEST, _HEADER = 8, 128 << 20
"""Bytes of the longest number in a tensor, and of the longest header of the format."""


@dataclass(frozen=True)
class ModelFolder:
    """The opened folder of a saved model.

    Attributes:
        path: Path of the folder.
        seal: SHA-256 by file name; None where files are taken without comparison.
    """

    path: Path
    seal: Mapping[str, str] | None = None
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    __repr__ = short_repr

    @classmethod
    def open(cls, source: Path | str, *, altered: bool = False) -> Self:
        """Open a model's folder, or download a repository of the hub.

        Args:
            source: The folder, or the name of the repository.
            altered: Whether to take the files without comparing them with the seal.
        """
        path = Path(source)
        if path.is_file():
            raise UserError(f"{source}: a file, no folder of a model; give the folder that training wrote, DIR/model")
        if not path.is_dir():
            path = hub_folder(str(source), PATTERNS)
        if not os.access(path, os.R_OK | os.X_OK):
            raise UserError(f"{source}: may not be read; change its permissions")
        if not (path / CONFIG).is_file():
            raise UserError(
                f"{source}: no model here (config.json is missing); give the folder that training wrote, DIR/model"
            )
        if altered or not has_seal(path):
            return cls(path)
        try:
            return cls(path, read_seal(path))
        except UserError as error:
            raise AlteredModelError(str(error)) from None

    @property
    def calibration_file(self) -> Path | None:
        """Path of the model's calibration; None if it has none.

        Raises:
            UserError: If the path is a link that leaves the folder.
        """
        return self._place(CALIBRATION) if os.path.lexists(self.path / CALIBRATION) else None

    def text(self, name: str) -> str:
        """The text of a file, which is read once.

        Raises:
            UserError: If it is missing, unreadable, or larger than its limit.
            AlteredModelError: If it is not as it was saved.
        """
        if name in self._texts:
            return self._texts[name]
        path = self._place(name)
        try:
            data = read_bytes(path, "json_bytes")
        except MissingFileError:
            raise UserError(f"{path}: missing; the model folder is incomplete") from None
        self._compare(name, digest_of_parts([data]))
        try:
            self._texts[name] = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: cannot be read ({error}); copy the model folder anew") from None
        return self._texts[name]

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file.

        Raises:
            UserError: As :meth:`text`, and if it holds something else.
        """
        values = parse_json(self.text(name), self.path / name)
        if not isinstance(values, dict):
            raise UserError(f"{self.path / name}: expected a JSON object")
        return values

    def data(self, name: str, most: int) -> bytes:
        """The bytes of a file of at most ``most`` bytes.

        Raises:
            UserError: If it is missing, unreadable, or larger.
            AlteredModelError: If it is not as it was saved.
        """
        path = self._place(name)
        try:
            with opened_file(path, None) as file:
                if (size := os.fstat(file.fileno()).st_size) > most:
                    raise UserError(f"{path}: {readable(size)}, where at most {readable(most)} are read")
                data = file.read()
        except MissingFileError:
            raise UserError(f"{path}: missing; the model folder is incomplete") from None
        self._compare(name, digest_of_parts([data]))
        return data

    @contextmanager
    def weights(self, asked: Mapping[str, Tensor] | None = None) -> Iterator[dict[str, Tensor]]:
        """The tensors by name, mapped from the file, so that they must be copied before the block ends.

        Args:
            asked: Tensors that the model needs, if known: a file that is much larger is not read through.

        Raises:
            UserError: If the file is missing, is not safetensors, or is too large.
            AlteredModelError: If it is not as it was saved, or changed while it was read.
        """
        path = self._place(WEIGHTS)
        if asked is not None:
            needed = sum(tensor.numel() * _WIDEST for tensor in asked.values()) + _HEADER
            if is_regular(path) and path.stat().st_size > needed:
                raise UserError(
                    f"{path}: {readable(path.stat().st_size)}, more than the tensors take that config.json asks for;"
                    " the files belong to different models"
                )
        if self.seal is None:
            yield read_tensors(path)
            return
        try:
            with opened_file(path, None) as file:
                before = _state(os.fstat(file.fileno()))
                self._compare(WEIGHTS, hashlib.file_digest(file, "sha256").hexdigest())
        except MissingFileError:
            raise UserError(f"{path}: no such weights file") from None
        yield read_tensors(path)
        if _state(path.stat()) != before:
            raise AlteredModelError(f"{path}: changed while it was read")

    def _place(self, name: str) -> Path:
        """Path of a file; a link may only lead to another file of the folder, or into the blobs of the hub's cache."""
        path = self.path / name
        try:
            target, home = path.resolve(), self.path.resolve()
        except (OSError, RuntimeError) as error:  # a link to itself
            raise UserError(f"{path}: a link that leads nowhere; put the file itself there") from error
        stores = [home, home.parents[1] / "blobs"] if home.parent.name == "snapshots" else [home]
        if not any(target.is_relative_to(store) for store in stores):
            raise UserError(f"{path}: a link that leaves the model folder; put the file itself there")
        return path

    def _compare(self, name: str, digest: str) -> None:
        if self.seal is None:
            return
        if name not in self.seal:
            raise AlteredModelError(f"{self.path / name}: was put here after the model was saved ({SEAL} has it not)")
        if self.seal[name] != digest:
            raise AlteredModelError(
                f"{self.path / name}: altered or damaged since it was saved ({SEAL} says otherwise)"
            )


def _state(about: os.stat_result) -> tuple[int, ...]:
    """Stamp that changes when a file is written or replaced."""
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
