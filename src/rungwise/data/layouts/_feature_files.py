"""A file of features beside the captions, one row for each image, in place of picture files.

**Layout**: ``features.npy`` with (images, D) vectors or (images, R, D) regions, and beside it ``ids.txt`` with the id
of each row's image, one a line. Without ``ids.txt`` the rows are in the order in which the captions first name the
images. The rows may be in several files, ``features-00000-of-00004.npy`` and so on (see
:mod:`rungwise.data.files._numbered_parts`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rungwise.core import UserError
from rungwise.data._collection import NO_SPLIT, ImageCaptions, Issue
from rungwise.data.files import first_parts, map_parts, read_every_line, whole_name
from rungwise.data.layouts._folder import PictureFolder, folder_name
from rungwise.data.layouts._gatherer import left_out

FEATURES_FILE = "features.npy"
IDS_FILE = "ids.txt"


def features_file(files: PictureFolder) -> Path | None:
    """The ``features.npy`` of a folder or below, if there is one; the first of its parts where it is in several.

    Raises:
        UserError: If there are several, and no pictures, which would be read in place of them.
    """
    found = first_parts(path for path in files.others if whole_name(path.name) == FEATURES_FILE)
    if len(found) > 1 and not files.pictures:
        names = ", ".join(path.as_posix() for path in found[:4])
        raise UserError(f"{files.root}: {len(found)} files of features ({names}); give the one to read")
    return files.root / found[0] if found else None


def with_features(data: ImageCaptions, path: Path) -> ImageCaptions:
    r"""Give each image of a collection its row of a file; the rows stay in the file.

    With ``ids.txt`` beside the file, images without a row are left out and become issues, and rows that no caption
    names follow as images without captions.

    Args:
        data: Captions without pictures.
        path: File of rows.

    Raises:
        UserError: If the file is no array of features, or rows, ids and images do not go together; the message names
            the files, the numbers and the remedy.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "features.npy"
    >>> np.save(file, np.arange(6, dtype=np.float32).reshape(3, 2))
    >>> _ = file.with_name("ids.txt").write_text("c\nb\na\n")
    >>> data = with_features(ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1])), file)
    >>> data.image_ids, data.features[:].tolist()
    (('a', 'b', 'c'), [[4.0, 5.0], [2.0, 3.0], [0.0, 1.0]])
    """
    rows = map_parts(path)
    ids_file = path.with_name(IDS_FILE)
    if not os.path.lexists(ids_file):
        if len(rows) != len(data):
            raise UserError(
                f"{path}: {len(rows)} rows, but the captions name {len(data)} images; write {IDS_FILE} beside it with"
                " the id of each row's image, one a line"
            )
        return replace(data, features=rows)
    row_of_id = {image_id: row for row, image_id in enumerate(read_ids(ids_file, len(rows), path))}
    known = [image for image, image_id in enumerate(data.image_ids) if image_id in row_of_id]
    if len(data) and not known:
        raise UserError(
            f"{ids_file}: none of its ids (the first is {next(iter(row_of_id))!r}) is that of an image with captions"
            f" (the first is {data.image_ids[0]!r}); write the ids as the captions have them"
        )
    # Selecting would group the captions by image, so that the collection would hash otherwise than without features.
    kept = data if len(known) == len(data) else data.select(known)
    named = set(kept.image_ids)
    unnamed = tuple(image_id for image_id in row_of_id if image_id not in named)
    image_ids = kept.image_ids + unnamed
    return replace(
        kept,
        image_ids=image_ids,
        splits=kept.splits + (NO_SPLIT,) * len(unnamed) if kept.splits else (),
        labels=kept.labels + ((),) * len(unnamed) if kept.labels else (),
        issues=(*data.issues, *_missing_rows(data, row_of_id, ids_file)),
        features=rows.take([row_of_id[image_id] for image_id in image_ids]),
    )


def _missing_rows(data: ImageCaptions, row_of_id: Mapping[str, int], ids_file: Path) -> Iterator[Issue]:
    """An issue for each image without a row."""
    if all(image_id in row_of_id for image_id in data.image_ids):
        return
    for image_id, captions in zip(data.image_ids, data.captions_of_image, strict=True):
        if image_id not in row_of_id:
            lost = left_out(data.captions[caption] for caption in captions)
            yield Issue("missing row", image_id, f"its id is not in {ids_file}{lost}")


def read_features(path: Path) -> ImageCaptions:
    r"""Rows without captions, enough to index, like a bare folder of pictures; ids are those of ``ids.txt``.

    Raises:
        UserError: For the reasons of :func:`with_features`, and if there is no ``ids.txt``.
    """
    if not os.path.lexists(path.with_name(IDS_FILE)):
        raise UserError(
            f"{path}: neither captions nor {IDS_FILE} beside it; add one of them, so that each row has an id"
        )
    ids = read_ids(path.with_name(IDS_FILE), len(map_parts(path)), path)
    bare = ImageCaptions(
        image_ids=tuple(ids),
        captions=(),
        image_of_caption=np.empty(0, np.int64),
        splits=(NO_SPLIT,) * len(ids),
        name=folder_name(path.parent),
        layout="features",
    )
    return with_features(bare, path)


def read_ids(path: Path, rows: int, rows_file: Path) -> list[str]:
    """The ids of the rows of a file, one a line.

    Args:
        path: The file of ids.
        rows: Number of ids that there must be.
        rows_file: The file of the rows, for messages.
    """
    ids = read_every_line(path)
    if len(ids) != rows:
        raise UserError(f"{path}: {len(ids)} ids, but {rows_file.name} has {rows} rows; write one id for each row")
    seen: dict[str, int] = {}
    for line, image_id in enumerate(ids, start=1):
        if not image_id.strip():
            raise UserError(f"{path}, line {line}: an empty line; write one id a line")
        if seen.setdefault(image_id, line) != line:
            raise UserError(
                f"{path}, line {line}: id {image_id!r} stands already in line {seen[image_id]}; ids are unique"
            )
    return ids
