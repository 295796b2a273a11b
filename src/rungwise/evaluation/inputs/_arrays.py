"""Readers of what an auditor brings: embeddings, similarities, degrees and captions' images from common file types.

Nothing is guessed from a file's size. A file that cannot hold what it should is refused with its name, the place and
the remedy. Arrays are memory-mapped where the file type allows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, parse_json, require_there
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions
from rungwise.data.files import read_lines, read_text
from rungwise.evaluation.inputs._array_files import read_json_rows, read_numpy, read_parquet, read_safetensors
from rungwise.evaluation.inputs._degree_lines import DEGREE_ENDINGS, read_degree_lines
from rungwise.metrics import as_slice

_NORM_SLACK = 1e-3
_BLOCK_VALUES = 1 << 22
_LAST_POSITION = np.iinfo(np.int64).max
_POSITION_DIGITS = 19


@dataclass(frozen=True)
class Embeddings:
    """Vectors of a file, with ids where the file has them.

    Attributes:
        vectors: (items, D) array, memory-mapped where the file allows it; or its
            :class:`~rungwise.core.formats.NpyRows`.
        ids: (items,) ids of the vectors, or empty.
        path: The file, named in messages.
        norms: Smallest and largest norm of a vector.
    """

    vectors: Any
    ids: tuple[str, ...]
    path: Path
    norms: tuple[float, float]

    __repr__ = short_repr

    @property
    def warning(self) -> str | None:
        """One line if the vectors are not normalised, with the range of their lengths.

        >>> Embeddings(np.array([[3.0, 4.0]]), (), Path("i.npy"), (5.0, 5.0)).warning
        'i.npy: the vectors are not normalised (lengths 5 to 5); inner products are taken as they come'
        """
        if all(abs(norm - 1) <= _NORM_SLACK for norm in self.norms):
            return None
        low, high = (f"{norm:.4g}" for norm in self.norms)
        return (
            f"{self.path}: the vectors are not normalised (lengths {low} to {high});"
            " inner products are taken as they come"
        )

    def ordered(self, ids: Sequence[str], what: str) -> Embeddings:
        """The vectors in the order of a collection's ``ids``, where the file has ids; unchanged otherwise.

        Raises:
            UserError: If an id is missing or the counts differ.

        >>> found = Embeddings(np.array([[1.0], [2.0]]), ("b", "a"), Path("i.parquet"), (1.0, 2.0))
        >>> found.ordered(["a", "b"], "images").vectors.ravel()
        array([2., 1.])
        """
        rows = rows_by_id(self.path, len(self.vectors), self.ids, ids, what)
        if rows is None:
            return self
        vectors = self.vectors[as_slice(rows)]
        norms = self.norms if len(rows) == len(self.vectors) else _norms(self.path, vectors)
        return replace(self, vectors=vectors, ids=tuple(ids), norms=norms)


def rows_by_id(
    where: Path | str, count: int, own: Sequence[str], ids: Sequence[str], what: str, item: str = "vector"
) -> NDArray[np.int64] | None:
    """Position of each of a collection's ``ids`` among the ids of vectors; None of vectors without ids.

    Args:
        where: The file or parameter that holds the vectors, for messages.
        count: Number of vectors.
        own: Their ids, or empty.
        ids: (items,) ids of the collection.
        what: What the items are, such as ``"images"``.
        item: What an id stands for.

    Raises:
        UserError: If an id is missing or stands twice, or the counts of vectors without ids differ.

    >>> rows_by_id("image_embeddings", 3, ("b", "c", "a"), ["a", "b"], "images")
    array([2, 0])
    """
    if not own:
        if count != len(ids):
            raise UserError(f"{where}: {count} {item}s for {len(ids)} {what}; give one each, in their order")
        return None
    refuse_twice(where, own, item)
    place = {one: row for row, one in enumerate(own)}
    missing = [one for one in ids if one not in place]
    if missing:
        raise UserError(
            f"{where}: has no {item} for {len(missing)} of {len(ids)} {what}, the first is {missing[0]!r};"
            f" give {item}s of these data"
        )
    return np.array([place[one] for one in ids], dtype=np.int64)


def refuse_twice(where: Path | str, ids: Sequence[str], item: str = "vector") -> None:
    """Refuse ids of which one stands twice."""
    twice = next((one for one, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise UserError(f"{where}: id {twice!r} stands twice; give each one {item}")


def read_embeddings(path: Path, key: str | None = None, *, stays_in_file: bool = False) -> Embeddings:
    """Embeddings of a ``.npy``, ``.npz``, ``.safetensors`` or ``.parquet`` file.

    Args:
        path: The file. Parquet has a column of lists (``embedding``, ``vector``, ...) and may have one of ids.
        key: Name of the array, tensor or column, where there are several.
        stays_in_file: Read vectors of a ``.npy`` file anew whenever they are asked for, so that none stays in memory.

    Raises:
        UserError: If the file cannot be read, has no such key, is no table of finite numbers, or an id stands twice.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "images.npy"
    >>> np.save(file, np.eye(3, dtype=np.float32))
    >>> read_embeddings(file).vectors.shape, read_embeddings(file).norms
    ((3, 3), (1.0, 1.0))
    """
    require_there(path)
    suffix = path.suffix.lower()
    ids: tuple[str, ...] = ()
    vectors: Any
    if suffix in (".npy", ".npz"):
        vectors = read_numpy(path, key, stays_in_file)
    elif suffix == ".safetensors":
        vectors = read_safetensors(path, key)
    elif suffix == ".parquet":
        vectors, ids = read_parquet(path, key)
    else:
        raise UserError(f"{path}: embeddings come as .npy, .npz, .safetensors or .parquet; convert the file")
    _check_table(path, vectors, "embeddings, (items, D)", values=False)
    refuse_twice(path, ids)
    return Embeddings(vectors, ids, path, _norms(path, vectors))


def read_similarity(path: Path, key: str | None = None, *, stays_in_file: bool = False) -> Any:
    """Similarity matrix (images, captions) of a ``.npy`` or ``.npz`` file, or of JSON with one list per image.

    ``key`` and ``stays_in_file`` are those of :func:`read_embeddings`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "similarity.json"
    >>> _ = file.write_text("[[0.9, 0.1], [0.2]]")
    >>> read_similarity(file)
    Traceback (most recent call last):
    rungwise.core.UserError: ...similarity.json, row 1: has 1 values where row 0 has 2; give every pair a value
    """
    require_there(path)
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        matrix: Any = read_numpy(path, key, stays_in_file)
    elif suffix in (".json", ".jsonl"):
        matrix = read_json_rows(path)
    else:
        raise UserError(f"{path}: a similarity matrix comes as .npy, .npz or .json rows; convert the file")
    _check_table(path, matrix, "a similarity matrix, (images, captions)")
    return matrix


def read_relevance(
    path: Path,
    shape: tuple[int, int],
    key: str | None = None,
    *,
    data: ImageCaptions | None = None,
    ids: tuple[Sequence[str], Sequence[str]] | None = None,
    stays_in_file: bool = False,
) -> Any:
    """Degrees from a folder that ``rungwise relevance`` wrote, a ``.npy`` or ``.npz`` file, or lines of text.

    Lines are those of :func:`read_degree_lines`, which also takes qrels of others.

    Args:
        path: Folder or file.
        shape: Number of images and captions that are evaluated.
        key: Name of the array, where there are several.
        data: The evaluated collection, where its captions are known; a folder made from other captions is refused.
        ids: Ids of the images and of the captions, which lines of text name. Default: those of ``data``.
        stays_in_file: Read rows of a ``.npy`` file anew whenever they are asked for. The degrees of a folder stay there
            in any case.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "degrees.npy"
    >>> np.save(file, np.eye(3)[:2])
    >>> read_relevance(file, (3, 2))
    Traceback (most recent call last):
    rungwise.core.UserError: ...degrees.npy: shape (2, 3) for 3 images x 2 captions: it is transposed...
    """
    require_there(path)
    if ids is None and data is not None:
        ids = (data.image_ids, data.caption_ids)
    if path.is_dir():
        from rungwise.relevance import load

        stored = load(path, data=data)
        found: Any = stored
        size = stored.shape
    elif path.suffix.lower() in (".npy", ".npz"):
        found = read_numpy(path, key, stays_in_file)
        _check_table(path, found, "relevance degrees, (images, captions)", values=False)
        size = (found.shape[0], found.shape[1])
    elif path.suffix.lower() in DEGREE_ENDINGS and ids is not None:
        found = read_degree_lines(path, *ids)
        size = (found.shape[0], found.shape[1])
    else:
        raise UserError(
            f"{path}: relevance is a folder that `rungwise relevance` wrote, a .npy, a .npz, or lines of ids and"
            f" degrees ({', '.join(DEGREE_ENDINGS)}); give one"
        )
    if size != shape:
        turned = ": it is transposed; give its .T" if size == shape[::-1] else "; give degrees of these data"
        raise UserError(f"{path}: shape {size} for {shape[0]} images x {shape[1]} captions{turned}")
    return found


def read_owners(path: Path) -> NDArray[np.int64]:
    r"""(captions,) positions of images from a ``.npy`` of integers, a JSON list, or a text with one number a line.

    Raises:
        UserError: If a value is no position.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "owners.txt"
    >>> _ = file.write_text("0\n0\n1\n")
    >>> read_owners(file)
    array([0, 0, 1])
    """
    require_there(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        owners = read_numpy(path, None)
        if owners.ndim != 1 or owners.dtype.kind not in "iu":
            raise UserError(f"{path}: shape {owners.shape} of {owners.dtype}; give one whole number a caption")
        values = [int(one) for one in owners]
    elif suffix == ".json":
        content = parse_json(read_text(path), path, finite=False)
        if not isinstance(content, list) or not all(type(one) is int for one in content):
            raise UserError(f"{path}: is not a list of whole numbers; give each caption's image position")
        values = content
    else:
        values = []
        for number, line in read_lines(path):
            if not (line.strip().isdecimal() and len(line.strip()) <= _POSITION_DIGITS):
                raise UserError(f"{path}, line {number}: {line.strip()!r} is no position; write a whole number from 0")
            values.append(int(line))
    for caption, value in enumerate(values):
        if value < 0:
            raise UserError(f"{path}, caption {caption}: {value} is negative; positions start at 0")
        if value > _LAST_POSITION:
            raise UserError(f"{path}, caption {caption}: there is no image so far up; correct the position")
    return np.array(values, dtype=np.int64)


def owners_by_count(per_image: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """(captions,) positions of images where each image has equally many captions, one image after another.

    Raises:
        UserError: If the counts do not agree; the message says so if the transposed matrix would fit.

    >>> owners_by_count(2, (2, 4))
    array([0, 0, 1, 1])
    >>> owners_by_count(5, (25, 5))
    Traceback (most recent call last):
    rungwise.core.UserError: 25 images and 5 captions with 5 captions an image: images and captions ...
    """
    images, captions = shape
    if per_image < 1:
        raise UserError(f"captions per image must be at least 1, got {per_image}")
    if images * per_image == captions:
        return np.repeat(np.arange(images), per_image)
    if captions * per_image == images:
        raise UserError(
            f"{images} images and {captions} captions with {per_image} captions an image: images and captions are"
            " exchanged; exchange the files, or where it is one matrix give its .T"
        )
    raise UserError(
        f"{images} images with {per_image} captions each make {images * per_image}, but {captions} were given; correct"
        " the number, or say of every caption which image it belongs to"
    )


def _check_table(path: Path, table: Any, what: str, values: bool = True) -> None:
    if table.ndim != 2 or table.dtype.kind not in "fiu" or not table.size:
        raise UserError(f"{path}: shape {table.shape} of {table.dtype} is not {what}; give a table of numbers")
    run = max(1, _BLOCK_VALUES // table.shape[1])
    for start in range(0, len(table) if values else 0, run):
        _refuse_gaps(path, start, table[start : start + run])


def _refuse_gaps(path: Path, start: int, rows: NDArray[Any]) -> None:
    wrong = ~np.isfinite(rows).all(axis=1)
    if wrong.any():
        raise UserError(
            f"{path}, row {start + int(np.argmax(wrong))}: has a value that is not finite; give finite numbers"
        )


def _norms(path: Path, vectors: Any) -> tuple[float, float]:
    """Smallest and largest norm of the vectors; values that are not finite are refused."""
    low, high = float("inf"), 0.0
    run = max(1, _BLOCK_VALUES // vectors.shape[1])
    for start in range(0, len(vectors), run):
        block = np.asarray(vectors[start : start + run], dtype=np.float64)
        _refuse_gaps(path, start, block)
        lengths = np.sqrt(np.einsum("nd,nd->n", block, block))
        low, high = min(low, float(lengths.min())), max(high, float(lengths.max()))
    return low, high


def split_key(argument: str) -> tuple[Path, str | None]:
    """Split ``FILE:KEY`` into path and key; a colon in the name of an existing file does not count.

    >>> split_key("vectors.safetensors:image")
    (PosixPath('vectors.safetensors'), 'image')
    >>> split_key("vectors.npy")
    (PosixPath('vectors.npy'), None)
    """
    name, colon, key = argument.rpartition(":")
    if not colon or os.path.lexists(argument) or not Path(name).suffix:
        return Path(argument), None
    return Path(name), key
