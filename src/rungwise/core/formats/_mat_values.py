"""Texts, cells and structures of MAT files of version 5, beside numbers, as plain values.

Judgements are often structures of texts. The whole array is taken into memory, as bytes first and then as values; its
size is limited like that of a file of texts.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core._errors import UserError
from rungwise.core.formats._mat import (
    CLASSES,
    INT8,
    INT32,
    MATRIX,
    MOST_DIMENSIONS,
    STORED,
    UINT32,
    Order,
    damage_explained,
    read_bodies,
)

_CELL, _STRUCTURE, _TEXT = 1, 2, 4
_COMPLEX = 0x0800
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
"""Encodings of texts, by the type of their numbers; MATLAB's own is 4, that of SciPy 16."""

_DEEPEST = 16
"""Deepest nesting of cells; each level costs a call."""


def read_values(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Some variables of a MAT file as plain values.

    Args:
        path: Path of the file.
        names: Names of the variables; those that are not there are left out.

    Returns:
        Each variable under its name: an array of numbers as an array, a text as a text, cells as a list of values, and
        structures as a list of mappings from field to value; lists run by columns, as MATLAB counts.

    Raises:
        UserError: If the file cannot be read, is no MAT file of version 5, is damaged or too large, or one of these
            holds anything else.

    >>> import tempfile, scipy.io
    >>> file = Path(tempfile.mkdtemp()) / "judged.mat"
    >>> scipy.io.savemat(file, {"pair": {"text": "a dog", "votes": [3.0, 1.0]}, "cells": np.array(["a", "b"], object)})
    >>> read_values(file, ["pair", "cells"])
    {'pair': [{'text': 'a dog', 'votes': array([[3., 1.]])}], 'cells': ['a', 'b']}
    """
    found: dict[str, Any] = {}
    for body, order in read_bodies(path):
        with damage_explained(path):
            name, value = _Values(body, order).named(0, len(body), 0, names)
        if name in names:
            if name in found:
                raise UserError(f"{path}: {name!r} stands twice; save the file anew")
            found[name] = value
    return found


@dataclass(frozen=True)
class _Values:
    """The bytes of one array, read at given places."""

    data: bytes
    order: Order

    def named(self, at: int, stop: int, deep: int, names: Collection[str] | None = None) -> tuple[str, Any]:
        """Name and value of the array from ``at`` to ``stop``; no value where the name is not in ``names``."""
        if at == stop:
            return "", []  # a cell that was never filled
        if deep > _DEEPEST:
            raise ValueError(f"cells within cells, more than {_DEEPEST} deep")
        (said,), at = self._whole(at, stop, UINT32, f"{self.order}I4x", 8)
        start, end, at = self._element(at, stop, INT32)
        if (end - start) % 4 or end - start > 4 * MOST_DIMENSIONS:
            raise ValueError(f"sizes of {end - start} bytes")
        shape = struct.unpack_from(f"{self.order}{(end - start) // 4}i", self.data, start)
        if any(size < 0 for size in shape):
            raise ValueError(f"an array of shape {shape}")
        start, end, at = self._element(at, stop, INT8)
        name = self.data[start:end].decode("ascii", "backslashreplace")
        if names is not None and name not in names:
            return name, None
        if said & _COMPLEX:
            raise ValueError("a complex array")
        return name, self._value(said & 0xFF, shape, at, stop, deep)

    def _value(self, kind: int, shape: tuple[int, ...], at: int, stop: int, deep: int) -> Any:
        count = math.prod(shape)
        if kind == _CELL:
            return self._several(count, at, stop, deep)[0]
        if kind == _STRUCTURE:
            (width,), at = self._whole(at, stop, INT32, f"{self.order}i", 4)
            start, end, at = self._element(at, stop, INT8)
            if width < 1 or (end - start) % width:
                raise ValueError(f"names of fields of {width} bytes each, {end - start} in all")
            fields = [
                self.data[each : each + width].split(b"\0")[0].decode("latin-1") for each in range(start, end, width)
            ]
            values, _ = self._several(count * len(fields), at, stop, deep)
            return [
                dict(zip(fields, values[each : each + len(fields)], strict=True))
                for each in range(0, len(values), len(fields) or 1)
            ]
        if kind == _TEXT:
            return self._text(shape, at, stop)
        if kind not in CLASSES:
            raise ValueError(f"an array of class {kind}, which is neither numbers, texts, cells nor structures")
        return self._numbers(CLASSES[kind], shape, count, at, stop)

    def _several(self, count: int, at: int, stop: int, deep: int) -> tuple[list[Any], int]:
        if count > (stop - at) // 8:  # an array has a tag of 8 bytes at least
            raise ValueError(f"it ends before its {count} parts")
        values = []
        for _ in range(count):
            start, end, at = self._element(at, stop, MATRIX)
            values.append(self.named(start, end, deep + 1)[1])
        return values, at

    def _text(self, shape: tuple[int, ...], at: int, stop: int) -> str:
        kind, start, end, _ = self._tag(at, stop)
        if kind not in _ENCODINGS:
            raise ValueError(f"letters of type {kind}")
        if math.prod(shape) and shape[0] != 1:
            raise ValueError("a text of several rows")
        encoding = _ENCODINGS[kind] + ("" if kind in (1, 2, 16) else "-le" if self.order == "<" else "-be")
        return self.data[start:end].decode(encoding)

    def _numbers(self, name: str, shape: tuple[int, ...], count: int, at: int, stop: int) -> Any:
        kind, start, end, _ = self._tag(at, stop)
        if kind not in STORED:
            raise ValueError(f"numbers of type {kind}")
        stored = np.dtype(STORED[kind]).newbyteorder(self.order)
        if end - start != count * stored.itemsize:
            raise ValueError(f"{end - start} bytes of {stored.name} for an array of shape {shape}")
        numbers = np.frombuffer(self.data, stored, count, start)
        return numbers.reshape(shape, order="F").astype(name, order="C")

    def _whole(self, at: int, stop: int, kind: int, form: str, size: int) -> tuple[tuple[Any, ...], int]:
        """Numbers of one form from an element that holds nothing else, and the place after it."""
        start, end, at = self._element(at, stop, kind)
        if end - start != size:
            raise ValueError(f"an element of {end - start} bytes where {size} should be")
        return struct.unpack_from(form, self.data, start), at

    def _element(self, at: int, stop: int, wanted: int) -> tuple[int, int, int]:
        """Begin and end of the next element's bytes, and the place of the one after it."""
        kind, start, end, after = self._tag(at, stop)
        if kind != wanted:
            raise ValueError(f"an element of type {kind} where one of type {wanted} should be")
        return start, end, after

    def _tag(self, at: int, stop: int) -> tuple[int, int, int, int]:
        if at + 8 > stop:
            raise ValueError(f"it ends {at + 8 - stop} bytes early")
        kind, size = struct.unpack_from(f"{self.order}II", self.data, at)
        if kind >> 16:
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise ValueError(f"a short element of {size} bytes")
            return kind, at + 4, at + 4 + size, at + 8
        start, end = at + 8, at + 8 + size
        if end > stop:
            raise ValueError(f"it ends {end - stop} bytes early")
        return kind, start, end, end + -size % 8
