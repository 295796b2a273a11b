"""The precomputed layout of VSE++ and SCAN: for each split a file of feature rows and a file of captions.

**Layout** of a folder such as ``f30k_precomp``: ``train_ims.npy`` with (rows, D) vectors or (rows, R, D) regions and
``train_caps.txt`` with one caption a line, likewise ``dev``, ``test``, ``testall`` or any other name. The captions of
one image follow each other. There is either one row for each image, or one row for each caption, the row of an image
standing once for each of its captions (so in the 10-crop features). How many captions an image has is worked out from
the counts and the rows, never assumed. ``train_ids.txt`` may name the image of each row or of each caption, one a line.
Where it names those of captions and there is one row for each image, the rows are in the order in which it first names
the images. The rows may be in several files, ``train_ims-00000-of-00004.npy`` and so on (see
:mod:`rungwise.data.files._numbered_parts`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, is_regular
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.files import FeatureRows, first_parts, map_parts, read_every_line, whole_name
from rungwise.data.layouts._folder import PictureFolder, folder_name
from rungwise.data.layouts._gatherer import clean_caption, left_out, split_name

_ROWS, _CAPTIONS, _IDS = "_ims.npy", "_caps.txt", "_ids.txt"
_ORDER = ("train", "dev", "val", "test", "testall")
# Where rows may repeat, these are compared: some at the beginning, and runs of some at places drawn at random.
_BEGINNING, _RUNS, _RUN = 64, 32, 8
_COMPARED = 256
"""Number of rows that are compared where one id names several."""


def precomputed_splits(path: Path) -> list[Path]:
    """The files of rows that have captions beside them: those of a folder, or the one that a file is or belongs to.

    The splits train, dev, test and testall come first, others follow by name.
    """
    folder = path if path.is_dir() else path.parent
    names = sorted(_splits_with_rows(folder)) if path.is_dir() else []
    names += [
        whole_name(path.name).removesuffix(end) for end in (_ROWS, _CAPTIONS) if whole_name(path.name).endswith(end)
    ]
    rows = {name: first for name, first in _splits_with_rows(folder).items() if name in names}
    there = [name for name in rows if name and is_regular(folder / f"{name}{_CAPTIONS}")]
    there.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    return [rows[name] for name in there]


def _splits_with_rows(folder: Path) -> dict[str, Path]:
    """The first file of the rows of each split of a folder, by name of the split.

    Raises:
        UserError: If the rows of a split are there in one piece and in parts.
    """
    files = [file for file in folder.glob("*_ims*.npy") if whole_name(file.name).endswith(_ROWS)]
    found: dict[str, Path] = {}
    for first in first_parts(file for file in files if is_regular(file)):
        name = whole_name(first.name).removesuffix(_ROWS)
        if name in found:
            raise UserError(f"{found[name]}: the rows of {name} are in {first.name}, too; keep one of them")
        found[name] = first
    return dict(sorted(found.items()))


def folders_of_splits(files: PictureFolder) -> list[str]:
    """Relative paths of the folders below one that hold files of rows."""
    return sorted({path.parent.as_posix() for path in files.others if whole_name(path.name).endswith(_ROWS)})


def read_precomputed(path: Path, captions_only: bool = False) -> ImageCaptions:
    r"""Rows and captions of the splits of a folder, or of one split, as one collection; the rows stay in their files.

    Image ids are those of ``{split}_ids.txt``, with the split's name before them (``"test/12"``) if two splits use the
    same id, and without such a file ``"test/0"``, ``"test/1"`` and so on. The split ``dev`` becomes ``val``;
    ``testall`` stays ``testall``. An image that is in ``test`` and in ``testall`` stands in both. Caption n of an image
    is called ``"<image id>#<n>"``, from 0.

    Args:
        path: The folder, or a file of the split to read.
        captions_only: Leave the rows out; their number still tells which captions belong to one image.

    Raises:
        UserError: If a file is no array of features, or the numbers of rows, captions and ids do not go together; the
            message names the files, the numbers and the remedy.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> np.save(root / "dev_ims.npy", np.arange(8, dtype=np.float32).reshape(2, 4))
    >>> _ = (root / "dev_caps.txt").write_text("a dog\na pup\na cat\na kitten\n")
    >>> data = read_precomputed(root)
    >>> data.image_ids, data.caption_ids, data.features.shape
    (('val/0', 'val/1'), ('val/0#0', 'val/0#1', 'val/1#0', 'val/1#1'), (2, 4))
    """
    splits = [_read_split(file) for file in precomputed_splits(path)]
    given = Counter(image_id for split in splits for image_id in set(split.ids or ()))
    shared = any(count > 1 for count in given.values())
    image_ids: list[str] = []
    captions: list[str] = []
    caption_ids: list[str] = []
    owners: list[int] = []
    positions: list[NDArray[np.int64]] = []
    issues = _incomplete_splits(path) if path.is_dir() else []
    rows_before = 0
    for split in splits:
        first = len(image_ids)
        if split.ids is None:
            image_ids += [f"{split.name}/{number}" for number in range(len(split.row_of_image))]
        else:
            image_ids += [f"{split.name}/{image_id}" if shared else image_id for image_id in split.ids]
        numbers: Counter[int] = Counter()
        for line, (text, owner) in enumerate(zip(split.captions, split.image_of_caption.tolist(), strict=True), 1):
            clean, odd = clean_caption(text)
            if clean:
                captions.append(clean)
                caption_ids.append(f"{image_ids[first + owner]}#{numbers[owner]}")
                owners.append(first + owner)
            if odd or not clean:
                kind = "malformed text" if odd else "empty caption"
                lost = left_out(() if clean else [text])
                issues.append(Issue(kind, f"{split.file}, line {line}", f"{odd}{lost}"))
            numbers[owner] += 1
        positions.append(split.row_of_image + rows_before)
        rows_before += len(split.rows)
    rows = FeatureRows(*(part for split in splits for part in split.rows.parts), positions=np.concatenate(positions))
    return ImageCaptions(
        image_ids=tuple(image_ids),
        captions=tuple(captions),
        image_of_caption=np.array(owners, np.int64),
        caption_ids=tuple(caption_ids),
        splits=tuple(split.name for split in splits for _ in split.row_of_image),
        name=folder_name(path if path.is_dir() else path.parent),
        layout="precomputed",
        issues=tuple(issues),
        features=None if captions_only else rows,
    )


def _incomplete_splits(folder: Path) -> list[Issue]:
    rows = _splits_with_rows(folder)
    captions = {file.name.removesuffix(_CAPTIONS): file for file in sorted(folder.glob(f"*{_CAPTIONS}"))}
    issues = []
    for own, others, end in ((rows, captions, _CAPTIONS), (captions, rows, _ROWS)):
        for name, path in own.items():
            if name not in others or not is_regular(others[name]):
                issues.append(Issue("incomplete split", str(path), f"there is no {name}{end} beside it"))
    return issues


@dataclass(frozen=True)
class _Split:
    """One split: (images,) rows and ids, (captions,) texts and positions of their images."""

    name: str
    file: Path
    rows: FeatureRows
    row_of_image: NDArray[np.int64]
    ids: tuple[str, ...] | None
    captions: list[str]
    image_of_caption: NDArray[np.int64]


def _read_split(rows_file: Path) -> _Split:
    name = whole_name(rows_file.name).removesuffix(_ROWS)
    file, ids_file = rows_file.with_name(f"{name}{_CAPTIONS}"), rows_file.with_name(f"{name}{_IDS}")
    rows, captions = map_parts(rows_file), read_every_line(file)
    ids = _read_ids(ids_file, len(rows), len(captions)) if os.path.lexists(ids_file) else None
    if ids is not None and len(ids) == len(captions) and len(set(ids)) < len(ids):
        row_of_image, image_of_caption = _by_ids(ids, rows, file)
    else:
        row_of_image, image_of_caption = _by_counts(rows, len(captions), file, has_ids=ids is not None)
    image_ids = None
    if ids is not None:
        # Ids stand for each row, or for each caption; the image's first one is at the same place in either case.
        first_of_image = row_of_image if len(ids) == len(rows) else np.unique(image_of_caption, return_index=True)[1]
        image_ids = tuple(ids[place] for place in first_of_image)
        if len(set(image_ids)) < len(image_ids):
            twice = Counter(image_ids).most_common(1)[0][0]
            raise UserError(f"{ids_file}: id {twice!r} stands for two images; give each image an id of its own")
    return _Split(split_name(name), file, rows, row_of_image, image_ids, captions, image_of_caption)


def _read_ids(path: Path, rows: int, captions: int) -> list[str]:
    ids = [line.strip() for line in read_every_line(path)]
    if "" in ids:
        raise UserError(f"{path}, line {ids.index('') + 1}: an empty line; write one id a line")
    if len(ids) not in (rows, captions):
        raise UserError(
            f"{path}: {len(ids)} ids, but the split has {rows} rows and {captions} captions;"
            " write one id for each row or for each caption"
        )
    return ids


def _by_ids(ids: Sequence[str], rows: FeatureRows, file: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row of each image and image of each caption, where each caption has the id of its image."""
    position = {image_id: number for number, image_id in enumerate(dict.fromkeys(ids))}
    image_of_caption = np.array([position[image_id] for image_id in ids], np.int64)
    if len(rows) == len(position):
        return np.arange(len(rows)), image_of_caption
    if len(rows) == len(ids):
        first = np.unique(image_of_caption, return_index=True)[1].astype(np.int64)
        _refuse_different_rows(ids, rows, first[image_of_caption], file)
        return first, image_of_caption
    raise UserError(
        f"{_of(file, _ROWS)}: {len(rows)} rows, but {_of(file, _IDS).name} names {len(position)} images for"
        f" {len(ids)} captions; give one row for each image or for each caption"
    )


def _refuse_different_rows(ids: Sequence[str], rows: FeatureRows, first: NDArray[np.int64], file: Path) -> None:
    """Compare some of the rows with the first one of the same id, which stands for all of them."""
    again = np.flatnonzero(first != np.arange(len(first)))
    for row in again[:: max(1, len(again) // _COMPARED)].tolist():
        if not np.array_equal(rows[row], rows[int(first[row])], equal_nan=True):
            raise UserError(
                f"{_of(file, _IDS)}: {ids[row]!r} names the rows {first[row]} and {row} of {_of(file, _ROWS).name},"
                " which differ; give each image an id of its own"
            )


def _by_counts(
    rows: FeatureRows, captions: int, file: Path, has_ids: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row of each image and image of each caption, where every image has the same number of captions."""
    if captions % len(rows):
        raise UserError(
            f"{_of(file, _ROWS)}: {len(rows)} rows, but {file.name} has {captions} captions, no whole number for each"
            f" row; copy both again, or write {_of(file, _IDS).name} with the id of each caption's image"
        )
    if captions > len(rows):
        return np.arange(len(rows)), np.arange(captions) // (captions // len(rows))
    repeated, uneven = _repetition(rows)
    if has_ids and repeated > 1:
        raise UserError(
            f"{_of(file, _IDS)}: all ids differ, but each row of {_of(file, _ROWS).name} stands {repeated} times;"
            " write the same id for all rows of an image"
        )
    if uneven and not has_ids:
        raise UserError(
            f"{_of(file, _ROWS)}: some rows stand several times, but not all of them equally often, so that the"
            f" captions of an image cannot be told; write {_of(file, _IDS).name} with the id of each row's image"
        )
    return np.arange(0, len(rows), repeated), np.arange(captions) // repeated


def _repetition(rows: FeatureRows) -> tuple[int, bool]:
    """How many times the row of each image stands, estimated from some of the rows, and whether that is uneven."""
    starts = np.random.default_rng(0).integers(0, len(rows), _RUNS)
    changes, equal = [len(rows)], False
    for run in [range(_BEGINNING), *(range(start, start + _RUN) for start in starts.tolist())]:
        some = rows[run.start : run.stop]
        for place, before, row in zip(run[1:], some[:-1], some[1:], strict=False):
            if np.array_equal(before, row, equal_nan=True):
                equal = True
            else:
                changes.append(place)
    repeated = int(np.gcd.reduce(changes))
    return repeated, equal and repeated == 1


def _of(captions_file: Path, end: str) -> Path:
    return captions_file.with_name(captions_file.name.removesuffix(_CAPTIONS) + end)
