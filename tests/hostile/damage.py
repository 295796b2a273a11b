"""Corrupt forms of the bytes of a good file: cut, flipped, blanked, lying about sizes, packed with bombs."""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from random import Random
from typing import Literal, NamedTuple

from tests.hostile.damage_texts import altered_json, altered_table, altered_text, altered_yaml

Kind = Literal["structure", "content", "bomb"]


class Damage(NamedTuple):
    """One corrupt form.

    Attributes:
        name: Of the attack; with the seed it says everything.
        data: All bytes of the file.
        kind: ``"structure"`` where the format's own counts or sizes no longer hold, so that any reader can know;
            ``"content"`` where the file may well have been written so; ``"bomb"`` where it unpacks to more than the
            limits that the kit sets, and must be refused.
    """

    name: str
    data: bytes
    kind: Kind = "content"


BOMB = 1 << 28
"""Bytes that a bomb unpacks to: more than the limits that the kit sets."""


def damages(name: str, data: bytes, draw: Random) -> Iterator[Damage]:
    """All forms of a file; those of its kind are known by its name."""
    if not data:  # a list of nothing
        yield Damage("garbage", draw.randbytes(64), "structure")
        return
    yield from _of_any_file(data, draw)
    suffix = name.rpartition(".")[2].lower()
    if suffix == "npy":
        yield from _lying_npy(data)
    elif suffix == "npz":
        yield from _lying_archive(data)
    elif suffix == "gz":
        yield from _lying_gzip(data)
    elif suffix == "safetensors":
        yield from _lying_tensors(data)
    elif suffix == "png":
        yield from _lying_png(data)
    elif suffix == "parquet":
        yield Damage("the footer says 2 GiB", data[:-8] + struct.pack("<I", 2**31 - 1) + data[-4:], "structure")
        yield Damage("the footer says 0 bytes", data[:-8] + struct.pack("<I", 0) + data[-4:], "structure")
    elif suffix in ("json", "jsonl"):
        yield from (Damage(*one) for one in altered_json(data.decode(), suffix == "jsonl", draw))
    elif suffix in ("csv", "tsv", "txt", "trec"):
        yield from (Damage(*one) for one in altered_table(data.decode()))
    elif suffix == "yaml":
        yield from (Damage(*one) for one in altered_yaml(data.decode()))
    if suffix in ("json", "jsonl", "csv", "tsv", "txt", "trec", "yaml"):
        yield from (Damage(*one) for one in altered_text(data.decode()))


def _of_any_file(data: bytes, draw: Random) -> Iterator[Damage]:
    size = len(data)
    yield Damage("empty", b"", "structure")
    for length in sorted({1, 7, 8, 9, 10, 64, 128, size // 2, size - 1, size - 8, draw.randrange(size)}):
        if 0 < length < size:
            yield Damage(f"cut to {length} of {size} bytes", data[:length], "structure")
    for _ in range(8):
        at, bit = draw.randrange(size), draw.randrange(8)
        yield Damage(f"bit {bit} of byte {at} flipped", data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
    for at in {draw.randrange(min(size, 128)) for _ in range(4)}:
        yield Damage(f"byte {at} is 255", data[:at] + b"\xff" + data[at + 1 :])
    start = draw.randrange(size)
    length = min(512, size - start)
    yield Damage(f"{length} zeros from byte {start}", data[:start] + bytes(length) + data[start + length :])
    yield Damage("all zeros", bytes(size), "structure")
    yield Damage("all random", draw.randbytes(size), "structure")
    yield Damage("twice", data + data)
    yield Damage("4 KiB of garbage after the end", data + draw.randbytes(4096))
    yield Damage("4 KiB of garbage before the beginning", draw.randbytes(4096) + data, "structure")
    yield Damage("a PNG's beginning", b"\x89PNG\r\n\x1a\n" + data[8:], "structure")
    yield Damage("an executable's beginning", b"\x7fELF" + data, "structure")


def _lying_npy(data: bytes) -> Iterator[Damage]:
    length = struct.unpack("<H", data[8:10])[0]
    header, rest = data[10 : 10 + length].decode("latin-1"), data[10 + length :]

    def with_header(text: str) -> bytes:
        fitted = text.rstrip().ljust(length - 1)[: max(length - 1, len(text.rstrip()))] + "\n"
        return data[:8] + struct.pack("<H", len(fitted)) + fitted.encode("latin-1") + rest

    shapes = ("(99999999999, 4)", "(-1, 4)", "(0, 4)", "(8,)", "(2, 2, 2, 2)", f"({'9' * 5000}, 4)", "()", "(8.5, 4)",
              "('a', 4)", "None", "(10**9, 4)", "(True, 4)")  # fmt: skip
    for shape in shapes:
        lie = re.sub(r"'shape': \([^)]*\)", lambda _, shape=shape: f"'shape': {shape}", header)
        yield Damage(f"shape {shape[:30]}", with_header(lie), "structure")
    for kind in ("|O", "<U4", "<M8[s]", "<c8", "|V16", "<f2", ">f4", "nonsense", "|b1", "<i1", "<f16"):
        lie = re.sub(r"'descr': '[^']*'", f"'descr': '{kind}'", header)
        yield Damage(f"type {kind}", with_header(lie))
    yield Damage("a header that is code", with_header("__import__('os').abort()"), "structure")
    yield Damage("a header of 9000 brackets", with_header("[" * 9000), "structure")
    yield Damage("a header length of 65535", data[:8] + b"\xff\xff" + data[10:], "structure")
    yield Damage("version 9.9", data[:6] + b"\x09\x09" + data[8:], "structure")
    yield Damage("a pickle", b"\x80\x04cos\nabort\n)R.", "structure")
    yield Damage("not a number", data[:-4] + struct.pack("<f", float("nan")))
    yield Damage("infinity", data[:-4] + struct.pack("<f", float("inf")))
    yield Damage("an archive", _zip({"vectors.npy": data}), "structure")


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _lying_archive(data: bytes) -> Iterator[Damage]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    first = next(iter(members))
    for lie in _lying_npy(members[first]):
        yield Damage(f"{first}: {lie.name}", _zip({**members, first: lie.data}), lie.kind)
    for name in members:
        yield Damage(f"without {name}", _zip({k: v for k, v in members.items() if k != name}), "structure")
    yield Damage("without members", _zip({}), "structure")
    header = members[first][:128]
    bomb = re.sub(rb"\([^)]*\), \}", f"({BOMB // 32}, 8), }}".encode(), header).rstrip()[:127].ljust(127) + b"\n"
    yield Damage("a bomb", _zip({**members, first: bomb + bytes(BOMB)}), "bomb")
    central = data.find(b"PK\x01\x02")
    for at, what in ((24, "unpacked"), (20, "packed"), (42, "offset"), (16, "checksum")):
        lie_ = bytearray(data)
        lie_[central + at : central + at + 4] = struct.pack("<I", 0xFFFFFFF0)
        yield Damage(f"the directory lies about {what}", bytes(lie_), "structure")


def _lying_gzip(data: bytes) -> Iterator[Damage]:
    yield Damage("a bomb of zeros", gzip.compress(bytes(BOMB), 9, mtime=0), "bomb")
    yield Damage("a bomb of one line", gzip.compress(b"word" + b" 1.0" * (BOMB // 4), 9, mtime=0), "bomb")
    yield Damage("a wrong checksum", data[:-8] + bytes(4) + data[-4:], "structure")
    yield Damage("a wrong length", data[:-4] + bytes(4), "structure")
    yield Damage("no packed text at all", gzip.compress(b""), "structure")
    yield Damage("a name without end in the header", b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 5000, "structure")


def _lying_tensors(data: bytes) -> Iterator[Damage]:
    length = struct.unpack("<Q", data[:8])[0]
    header, rest = data[8 : 8 + length], data[8 + length :]

    def with_header(text: bytes) -> bytes:
        return struct.pack("<Q", len(text)) + text + rest

    for lie in (0, 1, length - 1, length + 1, 2**40, 2**63, 2**64 - 1):
        yield Damage(f"a header of {lie} bytes", struct.pack("<Q", lie) + data[8:], "structure")
    for name, text, _ in altered_json(header.decode(), False, Random(0)):
        if text != header:
            yield Damage(f"header: {name}", with_header(text), "content")
    ends = [int(one) for one in re.findall(rb'"data_offsets":\[\d+,(\d+)\]', header)]
    if ends:
        beyond = header.replace(f",{max(ends)}]".encode(), f",{max(ends) + 4096}]".encode())
        yield Damage("offsets beyond the end", with_header(beyond), "structure")
    yield Damage("another type", with_header(header.replace(b'"F32"', b'"I32"')))
    yield Damage("bfloat16 at half the size", with_header(header.replace(b'"F32"', b'"BF16"')), "structure")
    yield Damage("no header", with_header(b"{}"), "structure")


def _lying_png(data: bytes) -> Iterator[Damage]:
    def with_size(width: int, height: int) -> bytes:
        head = struct.pack(">II", width, height) + data[24:29]
        return data[:16] + head + struct.pack(">I", zlib.crc32(b"IHDR" + head)) + data[33:]

    for width, height in ((0, 24), (24, 0), (2**31 - 1, 2**31 - 1), (65535, 65535), (24, 2**31 - 1), (1, 10_000_000)):
        yield Damage(f"says {width} x {height}", with_size(width, height), "structure")
    ihdr = struct.pack(">IIBBBBB", 12000, 12000, 1, 0, 0, 0, 0)
    packed = zlib.compress(bytes(1501 * 12000), 9)
    bomb = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", ihdr) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")
    yield Damage("a bomb of 12000 x 12000", bomb, "bomb")
    text = _chunk(b"zTXt", b"key\0\0" + zlib.compress(bytes(1 << 26), 9))
    yield Damage("a bomb in its text", data[:33] + text + data[33:])
    yield Damage("a chunk of 2 GiB", data[:33] + struct.pack(">I", 2**31 - 1) + data[37:], "structure")
    yield Damage("a profile of garbage", data[:33] + _chunk(b"iCCP", b"x\0\0garbage") + data[33:])


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
