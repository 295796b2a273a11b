"""Readers of the VSE++ program's files (Faghri et al. 2018): the only place where pickles are read.

A checkpoint goes through torch's reader of weights, which runs nothing; it may hold tensors, plain containers and the
``argparse.Namespace`` of its options. A vocabulary is a pickle of one class; only the pickle instructions that it needs
are accepted, and none that calls anything.
"""

from __future__ import annotations

import argparse
import io
import os
import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from rungwise.core import UserError, opened_file, parse_json, read_bytes, readable
from rungwise.core.output import printable

PAD, START, END, UNKNOWN = "<pad>", "<start>", "<end>", "<unk>"
"""What the program calls the words that are none."""

_MOST_WORDS = 1 << 22
_LARGEST_MEMO = 1 << 24
_INSTRUCTIONS = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"),
        *("GET", "BINGET", "LONG_BINGET", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2"),
        *("LONG", "LONG1", "FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE"),
        *("SHORT_BINUNICODE", "BINUNICODE8", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_TUPLE", "TUPLE"),
        *("TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "GLOBAL", "STACK_GLOBAL"),
        *("NEWOBJ", "BUILD"),
    }
)
_UNKNOWN_GLOBAL = re.compile(r"GLOBAL (\S+)")


@dataclass(frozen=True)
class VSEPPCheckpoint:
    """A checkpoint of the VSE++ program.

    Attributes:
        options: Options of the run, by name.
        image: Tensors of the image side, under the program's names.
        text: Tensors of the text side.
        facts: The epoch and the best sum of recalls, where the file has them.
    """

    options: Mapping[str, Any]
    image: dict[str, Tensor]
    text: dict[str, Tensor]
    facts: Mapping[str, Any]


def read_checkpoint(path: Path) -> VSEPPCheckpoint:
    """Read a ``.pth.tar`` file of the program, in either of torch's formats.

    Raises:
        UserError: If it is missing or damaged, or holds anything but tensors, plain values and options.
    """
    with opened_file(path, None) as file:
        size = os.fstat(file.fileno()).st_size
        _refuse_packed(path, file, size)
        try:
            with torch.serialization.safe_globals([argparse.Namespace]), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # whatever the reader stumbles over in a damaged file
            raise UserError(f"{path}: {_why(error)}") from None
    if not isinstance(said, dict) or not isinstance(said.get("opt"), argparse.Namespace):
        raise _other(path, "no dictionary with the options of a run (opt)")
    sides = said.get("model")
    if not isinstance(sides, list | tuple) or len(sides) != 2:
        raise _other(path, "no model of two sides")
    image, text = (_tensors(path, name, side, size) for name, side in zip(("image", "text"), sides, strict=True))
    facts = {name: said[name] for name in ("epoch", "best_rsum") if name in said}
    return VSEPPCheckpoint(dict(vars(said["opt"])), image, text, facts)


def read_words(path: Path) -> dict[str, int]:
    """Read the program's vocabulary: a pickle of ``vocab.Vocabulary``, or JSON, as later programs write it.

    Returns:
        Number of each word, 0, 1, 2...; ``<pad>`` is 0.

    Raises:
        UserError: If it is missing, is any other pickle, or its words are not numbered as the program does.
    """
    data = read_bytes(path, "json_bytes")
    if data.lstrip()[:1] == b"{":
        said = parse_json(data, path)
        words = said.get("word2idx")
    else:
        words = _unpickled(path, data)
    if not isinstance(words, dict) or not all(type(word) is str and type(n) is int for word, n in words.items()):
        raise UserError(f"{path}: has no word2idx that numbers words; give the vocabulary of the VSE++ program")
    if len(words) > _MOST_WORDS or sorted(words.values()) != list(range(len(words))):
        raise UserError(f"{path}: its {len(words)} words are not numbered 0..{len(words) - 1}; copy the file anew")
    if missing := [word for word in (PAD, START, END, UNKNOWN) if word not in words]:
        raise UserError(f"{path}: has no word {missing[0]}; give the vocabulary of the VSE++ program")
    if words[PAD] != 0:
        raise UserError(f"{path}: {PAD} is number {words[PAD]}, which the program pads with 0; copy the file anew")
    return words


class _Vocabulary:
    """Stand-in for the program's class, without its methods."""


class _Unpickler(pickle.Unpickler):
    """Unpickler that knows one class; the instructions were checked before."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != ("vocab", "Vocabulary"):
            raise _OtherClassError(f"{module}.{name}")
        return _Vocabulary


class _OtherClassError(Exception):
    """A pickle names another class."""


def _unpickled(path: Path, data: bytes) -> Any:
    try:
        for instruction, value, _ in pickletools.genops(data):
            name = instruction.name
            if name == "GLOBAL" and value != "vocab Vocabulary":
                raise _OtherClassError(str(value).replace(" ", "."))
            if name not in _INSTRUCTIONS:
                raise _OtherClassError(f"an instruction {name}")
            if name.endswith("PUT") and int(value or 0) > _LARGEST_MEMO:  # would take memory by the number it names
                raise ValueError("a number out of range")
        found = _Unpickler(io.BytesIO(data), encoding="utf-8").load()
    except _OtherClassError as error:
        what = printable(str(error))[:80]
        raise UserError(
            f"{path}: a pickle with {what}; of pickles the class vocab.Vocabulary alone is taken; write the vocabulary"
            ' as JSON {"word2idx": {...}} where you trust the file'
        ) from None
    except Exception as error:  # the standard reader raises nearly anything on a damaged file
        raise UserError(f"{path}: a damaged pickle ({_line(error)}); copy the file anew") from None
    return vars(found).get("word2idx") if type(found) is _Vocabulary else None


def _refuse_packed(path: Path, file: BinaryIO, size: int) -> None:
    """Refuse an archive whose parts are compressed, or overlap."""
    if zipfile.is_zipfile(file):
        try:
            with zipfile.ZipFile(file) as archive:
                parts = archive.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise UserError(f"{path}: a damaged archive ({_line(error)}); copy the file anew") from None
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(p.file_size for p in parts) > size:
            raise UserError(f"{path}: an archive whose parts are packed, as torch never writes it; save it anew")
    file.seek(0)


def _tensors(path: Path, side: str, said: Any, size: int) -> dict[str, Tensor]:
    if not isinstance(said, dict) or not said:
        raise _other(path, f"the {side} side is no table of tensors")
    for name, tensor in said.items():
        if not isinstance(name, str) or type(tensor) is not Tensor or tensor.layout != torch.strided:
            raise _other(path, f"the {side} side holds {printable(repr(name))[:60]}, which is no plain tensor")
        if tensor.device.type != "cpu" or tensor.is_quantized:
            raise _other(path, f"{printable(name)[:60]} of the {side} side has no plain numbers")
        if tensor.numel() * tensor.element_size() > size:
            raise UserError(
                f"{path}: {printable(name)[:60]} claims {readable(tensor.numel() * tensor.element_size())}, more than"
                " the file has; copy it anew"
            )
    return dict(said)


def _why(error: Exception) -> str:
    if isinstance(error, pickle.UnpicklingError) and (found := _UNKNOWN_GLOBAL.search(str(error))):
        what = printable(found[1])[:80]
        return f"holds {what}; of a VSE++ checkpoint tensors, plain values and argparse.Namespace alone are taken"
    return f"not a checkpoint that can be read ({_line(error)}); copy the file anew"


def _other(path: Path, why: str) -> UserError:
    return UserError(f"{path}: not a checkpoint of the VSE++ program ({why}); give its model_best.pth.tar")


def _line(error: BaseException) -> str:
    return printable((str(error).strip().splitlines() or [type(error).__name__])[0])[:160]
