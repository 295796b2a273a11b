r"""Word vectors from files: GloVe's text, word2vec's text and word2vec's binary layout, any of them gzipped.

* GloVe text: ``word x1 ... xD`` on every line, parted by blanks or tabs, no header.
* word2vec text: the same after a first line ``count D``.
* word2vec binary: a first line ``count D``, then for each word its UTF-8 bytes, a blank, D little-endian float32, and
  after some programs a line end.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, beyond_limit, digest_of_parts, limits, opened_file, user_path
from rungwise.core.output import short_repr

_HEADER = re.compile(rb"\s*([0-9]+)\s+([0-9]+)\s*")
_GZIP = b"\x1f\x8b"
_LONGEST_WORD = 4096
"""Largest number of bytes of a word; a file with a longer one is no file of word vectors."""
_MOST_DIGITS = 18
_MOST_DIMENSIONS = 1 << 16
"""Largest dimension; no published vectors are nearly as long, and a header that claims more is none."""

_GZIP_FORMAT = 16 + zlib.MAX_WBITS
"""Option of zlib for data with a header and a checksum of gzip."""

_CHUNK = 1 << 17


@dataclass(frozen=True)
class WordVectors:
    """A vector for each word.

    Attributes:
        row: Row of each word in the table.
        table: (words, dimension) float32.
        name: Origin of the vectors, for messages and descriptions.
    """

    row: dict[str, int]
    table: NDArray[np.float32]
    name: str = "word vectors"

    __repr__ = short_repr

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.table.shape[1])

    @property
    def fingerprint(self) -> str:
        """Hash of the words and their vectors."""
        return digest_of_parts([json.dumps(self.row), np.asarray(self.table, "<f4")])


def load_word_vectors(path: Path | str, words: Collection[str] | None = None) -> WordVectors:
    r"""Read a file of word vectors; its layout is recognised from its beginning.

    Args:
        path: The file, gzipped or not.
        words: Keep these words only, so that memory holds the vectors that are needed and not the file.

    Returns:
        The vectors. Of a word that stands several times, or of several that are equal because they are no UTF-8, the
        first one counts.

    Raises:
        UserError: If the file is missing or is no file of word vectors, a vector is broken (the place is named), or
            a line or what is unpacked is larger than the limits ``line_bytes`` and ``unpacked_bytes``.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = file.write_text("dog 1 0\ncat 0 1\n")
    >>> load_word_vectors(file, {"cat", "unicorn"}).row
    {'cat': 0}
    """
    path = user_path(path)
    wanted = None if words is None else {word.encode("utf-8", "surrogatepass") for word in words}
    with _reading(path) as file:
        return _gather(path, file, wanted)


def word_vector_dimension(path: Path | str) -> int:
    r"""Length of the vectors in a file of word vectors; only its beginning is read."""
    path = user_path(path)
    with _reading(path) as file:
        return _beginning(path, file)[1]


@contextmanager
def _reading(path: Path) -> Iterator[BufferedReader[Any]]:
    try:
        with _opened(path) as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise UserError(f"{path}: cannot be read as word vectors ({reason}); correct the path or the file") from error


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader[Any]]:
    with opened_file(path, None) as file:
        packed = file.peek(2)[:2] == _GZIP
        yield io.BufferedReader(_Unpacked(path, file), 1 << 17) if packed else file


class _Unpacked(io.RawIOBase):
    """The content of a gzipped file, up to the limit: a thousand times its size may be packed into it."""

    def __init__(self, path: Path, packed: BufferedReader[Any]) -> None:
        self._path, self._packed, self._ahead, self._count = path, packed, b"", 0
        self._member = zlib.decompressobj(_GZIP_FORMAT)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > limits().unpacked_bytes:
            raise beyond_limit(f"{self._path}, unpacked", "unpacked_bytes")
        return len(data)

    def _next(self, most: int) -> bytes:
        """Some bytes, none at the end; Python's gzip would take padding a byte at a time, and minutes for much."""
        while True:
            if self._member.eof:
                self._ahead = self._ahead.lstrip(b"\0")
                if self._ahead:  # another file was appended
                    self._member = zlib.decompressobj(_GZIP_FORMAT)
            if not self._ahead:
                self._ahead = self._packed.read(_CHUNK)
                if not self._ahead and self._member.eof:
                    return b""
                if not self._ahead:
                    raise EOFError("the packed file is cut off")
                continue
            data = self._member.decompress(self._ahead, most)
            self._ahead = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                return data


def _lines(path: Path, file: BufferedReader[Any], first: int) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; one that does not end within the limit is refused before it fills the memory."""
    most = limits().line_bytes
    for number, line in enumerate(iter(lambda: file.readline(most + 1), b""), start=first):
        if len(line) > most:
            raise beyond_limit(f"{path}, line {number}", "line_bytes")
        yield number, line


def _beginning(path: Path, file: BufferedReader[Any]) -> tuple[bytes, int, int | None]:
    """The first line, the length of a vector, and the number of vectors that a header claims; None without a header."""
    _, first = next(_lines(path, file, 1), (1, b""))
    if not first.strip():
        raise UserError(f"{path}: the file is empty; re-download it or give another one")
    if header := _HEADER.fullmatch(first):
        count, dimension = (int(claimed[:_MOST_DIGITS]) for claimed in header.groups())
        if not 1 <= dimension <= _MOST_DIMENSIONS:
            raise UserError(
                f"{path}, line 1: claims vectors of {dimension} numbers, where 1..{_MOST_DIMENSIONS} are read;"
                " give a file of word vectors"
            )
        return first, dimension, count
    if not (dimension := _trailing_numbers(first)):
        raise UserError(
            f"{path}, line 1: neither a word with numbers (GloVe) nor 'count dimension' (word2vec);"
            " give a file of word vectors"
        )
    return first, dimension, None


def _gather(path: Path, file: BufferedReader[Any], wanted: set[bytes] | None) -> WordVectors:
    first, dimension, count = _beginning(path, file)
    if count is None:
        entries = _text(path, _with_first(path, first, file), dimension, wanted)
    elif _begins_binary(file, dimension):
        entries = _binary(path, file, count, dimension, wanted)
    else:
        entries = _text(path, _lines(path, file, 2), dimension, wanted)
    found: dict[str, NDArray[np.float32]] = {}
    for place, word, vector in entries:
        if not np.isfinite(vector).all():
            raise UserError(f"{path}, {place}: nan or infinite numbers in a vector; re-download the file or correct it")
        found.setdefault(word.decode("utf-8", "replace"), vector)
    table = np.stack(list(found.values())) if found else np.zeros((0, dimension), np.float32)
    return WordVectors({word: row for row, word in enumerate(found)}, table, path.name)


def _with_first(path: Path, first: bytes, file: BufferedReader[Any]) -> Iterator[tuple[int, bytes]]:
    yield 1, first
    yield from _lines(path, file, 2)


def _begins_binary(file: BufferedReader[Any], dimension: int) -> bool:
    """Whether the data after the header are binary: in text, the first word is followed by that many numbers."""
    head = file.peek(1 << 14).lstrip(b"\n")
    line, end, _ = head.partition(b"\n")
    if end:
        return _trailing_numbers(line) < dimension
    # A line longer than what can be looked at: its numbers, but for the last that may be cut, must be numbers.
    cells = line.split()[1:-1]
    return not cells or not all(_is_number(cell) for cell in cells)


def _trailing_numbers(line: bytes) -> int:
    """Number of numbers that end a line; its first cell is the word even where it looks like a number."""
    count = 0
    for cell in reversed(line.split()[1:]):
        if not _is_number(cell):
            break
        count += 1
    return count


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _text(
    path: Path, lines: Iterator[tuple[int, bytes]], dimension: int, wanted: set[bytes] | None
) -> Iterator[tuple[str, bytes, NDArray[np.float32]]]:
    for number, written in lines:
        line = written.replace(b"\t", b" ")
        # Some published words hold blanks (". . ."), so the numbers are counted from the end; a wanted word is a
        # token and holds none, which spares splitting the lines of all others.
        if wanted is not None and line[: line.find(b" ")] not in wanted:
            continue
        cells = line.rstrip().rsplit(b" ", dimension)
        if len(cells) <= dimension:
            if not line.strip():
                continue
            raise UserError(
                f"{path}, line {number}: {len(cells) - 1} numbers where {dimension} belong; re-download the file"
            )
        try:
            vector = np.array(cells[1:], dtype=np.float32)
        except ValueError as error:
            raise UserError(
                f"{path}, line {number}: holds something that is no number; re-download the file"
            ) from error
        if wanted is None or cells[0] in wanted:
            yield f"line {number}", cells[0], vector


def _binary(
    path: Path, file: BufferedReader[Any], count: int, dimension: int, wanted: set[bytes] | None
) -> Iterator[tuple[str, bytes, NDArray[np.float32]]]:
    size = 4 * dimension
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(word) > _LONGEST_WORD:
                raise UserError(
                    f"{path}: word {number + 1} of {count} is broken or missing; the file is cut off: re-download it"
                )
            word += byte
        values = file.read(size)
        if len(values) < size:
            raise UserError(f"{path}: the vector of word {number + 1} of {count} is cut off; re-download the file")
        key = bytes(word).lstrip(b"\n")
        if wanted is None or key in wanted:
            yield f"word {number + 1} of {count}", key, np.frombuffer(values, "<f4").astype(np.float32)


def nouns_from(tagger: Callable[[Sequence[str]], Sequence[str]]) -> Callable[[Sequence[str]], list[bool]]:
    """Turn a part-of-speech tagger into a function that marks the nouns among tokens.

    ``tagger`` gives each token of a caption its tag; the names of nouns of the Penn Treebank (``NN``, ``NNS``, ``NNP``)
    and of Universal Dependencies (``NOUN``, ``PROPN``) are known.

    >>> nouns_from(lambda tokens: ["DT", "NN"])(["a", "dog"])
    [False, True]
    """
    return lambda tokens: [tag.startswith("NN") or tag in ("NOUN", "PROPN") for tag in tagger(tokens)]
