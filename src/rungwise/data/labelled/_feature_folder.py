"""Labelled features with a file for each part and side, as work on cross-modal retrieval publishes them.

**Layout** of a folder: for each split of any name ``{split}_images`` and ``{split}_texts`` with one row for each
document, and ``{split}_labels`` if there are labels (see :mod:`rungwise.data.labelled._class_labels`). The extension is
``.npy``, ``.csv`` or ``.mat`` (see :mod:`rungwise.data.files._number_files`). Releases also call them ``{split}_img``,
``{split}_txt`` and ``{split}_img_lab``, ``{split}_txt_lab``, ``{split}_lab`` or ``{split}_label``. ``{split}_ids.txt``
may name the documents, one a line.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from pathlib import Path

from rungwise.core import UserError, is_regular, unreadable
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.files import ENDINGS, is_words, read_numbers
from rungwise.data.labelled._class_labels import class_names, named, read_labels
from rungwise.data.labelled._labelled_features import FeatureArray, FeatureSplit, collection_of, documents_of
from rungwise.data.layouts import PictureFolder, folder_name, read_ids, split_name

_NAMES = {
    "_images": "images", "_img": "images", "_texts": "texts", "_txt": "texts", "_labels": "labels",
    "_img_lab": "labels", "_txt_lab": "labels", "_lab": "labels", "_label": "labels",
}  # fmt: skip
_LONGEST_FIRST = sorted(_NAMES, key=len, reverse=True)
_ORDER = ("train", "val", "test")

_Files = dict[str, dict[str, list[Path]]]
"""The files of a folder by split and by kind of content."""


def feature_folders(files: PictureFolder) -> list[Path]:
    r"""The folders nearest to the top that hold rows of images and of texts of some split; tables do not count."""
    folders = {path.parent for path in files.others if _kind(path)[1] == "images" and path.suffix.lower() in ENDINGS}
    found = [folder for folder in folders if any(map(_is_whole, _files_in(files.root / folder).values()))]
    depth = min((len(folder.parts) for folder in found), default=0)
    return sorted(files.root / folder for folder in found if len(folder.parts) == depth)


def folders_of_rows(files: PictureFolder) -> list[Path]:
    """The folders that hold rows of images or of texts of some split, complete or not."""
    kinds = ("images", "texts")
    return sorted(
        {
            files.root / path.parent
            for path in files.others
            if _kind(path)[1] in kinds and path.suffix.lower() in ENDINGS
        }
    )


def split_of_rows(path: Path) -> str | None:
    """The split that a file of rows or labels belongs to, with both sides beside it; None if it is no such file."""
    split, kind = _kind(path)
    if not kind or path.suffix.lower() not in ENDINGS:
        return None
    try:
        sides = _files_in(path.parent).get(split, {})
    except UserError:  # a file may be readable where its folder is not
        return None
    return split if _is_whole(sides) and any(path.name == one.name for one in sides[kind]) else None


def read_feature_folder(folder: Path, captions_only: bool = False, split: str | None = None) -> ImageCaptions:
    r"""Images and texts of all splits as one collection, each document an image with one caption.

    Ids are those of ``{split}_ids.txt``, with the split's name before them where two splits use the same id, and
    without such a file ``"test/0"``, ``"test/1"`` and so on. They name image and caption alike and stand for the words,
    of which there are none. The split ``dev`` becomes ``val``.

    Args:
        folder: Folder that holds the files.
        captions_only: Leave the rows of the images out.
        split: Read only this split, by the name in its files.

    Raises:
        UserError: If a split lacks a side or has it twice, a file cannot be read as what its extension says, or the
            numbers of rows, labels and ids do not go together; the message names the files and the remedy.

    >>> import tempfile, numpy
    >>> root = Path(tempfile.mkdtemp())
    >>> numpy.save(root / "test_images.npy", numpy.ones((2, 4), numpy.float32))
    >>> _ = (root / "test_texts.csv").write_text("1,0,2\n0,1,0\n")
    >>> _ = (root / "test_labels.csv").write_text("sky|sea\nsky\n")
    >>> data = read_feature_folder(root)
    >>> data.image_ids, data.labels, data.texts.shape
    (('test/0', 'test/1'), (('sky', 'sea'), ('sky',)), (2, 3))
    """
    found = _files_in(folder)
    chosen = {one: found[one] for one in sorted(found, key=_place) if split in (None, one) and _has_rows(found[one])}
    pairs = {one: (_side(one, "images", of, folder), _side(one, "texts", of, folder)) for one, of in chosen.items()}
    sizes = {one: documents_of(*pair, folder) for one, pair in pairs.items()}
    labels = _labels(chosen, sizes, folder)
    parts = [
        FeatureSplit(split_name(one), *pair, labels.get(one, ()), _document_ids(folder / f"{one}_ids.txt", pair[0]))
        for one, pair in pairs.items()
    ]
    for before, part in itertools.pairwise(parts):
        if before.split == part.split:
            raise UserError(
                f"{folder}: {before.images.name} and {part.images.name} are both of the split {part.split}; keep one"
            )
    issues = [
        Issue("labels without rows", str(path), f"neither {one}_images nor {one}_texts lies beside it")
        for one, sides in found.items()
        if split is None and not _has_rows(sides)
        for path in sides["labels"]
        if path.suffix.lower() in ENDINGS
    ]
    return collection_of(
        parts,
        folder,
        name=folder_name(folder),
        layout="labelled_features",
        captions_only=captions_only,
        issues=issues,
    )


def _kind(path: Path) -> tuple[str, str]:
    """The split and the kind of content by a file's name; two empty texts if the name has neither."""
    stem = path.stem
    end = next((end for end in _LONGEST_FIRST if stem.lower().endswith(end)), "")
    return (stem[: -len(end)], _NAMES[end]) if end and len(stem) > len(end) else ("", "")


def _place(split: str) -> tuple[int, str]:
    """Sort key of a split: training, validation and test come first."""
    name = split_name(split)
    return _ORDER.index(name) if name in _ORDER else len(_ORDER), name


def _files_in(folder: Path) -> _Files:
    found: _Files = defaultdict(lambda: defaultdict(list))
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error
    for path in paths:
        split, kind = _kind(path)
        if kind and not path.name.startswith(".") and is_regular(path):
            found[split][kind].append(path)
    return found


def _known(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.suffix.lower() in ENDINGS]


def _has_rows(sides: dict[str, list[Path]]) -> bool:
    return any(_known(sides.get(kind, [])) for kind in ("images", "texts"))


def _is_whole(sides: dict[str, list[Path]]) -> bool:
    both = [_known(sides.get(kind, [])) for kind in ("images", "texts")]
    return all(both) and not any(path.suffix.lower() == ".csv" and is_words(path) for side in both for path in side)


def _side(split: str, kind: str, sides: dict[str, list[Path]], folder: Path) -> FeatureArray:
    paths = _known(sides.get(kind, []))
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths[:4])
        raise UserError(f"{folder}: {len(paths)} files of the {kind} of {split} ({names}); keep one")
    if not paths and (unknown := sides.get(kind)):
        raise UserError(f"{unknown[0]}: rows are not read from files of this ending; save them as {', '.join(ENDINGS)}")
    if not paths:
        other = "texts" if kind == "images" else "images"
        raise UserError(
            f"{_known(sides[other])[0]}: there is no {split}_{kind} ({', '.join(ENDINGS)}) beside it; add the rows of"
            f" the {kind}, or move it away"
        )
    values = read_numbers(paths[0])
    if not values.size:
        raise UserError(f"{paths[0]}: an array of shape {values.shape} holds no features; write it again")
    return FeatureArray(paths[0].name, values)


def _labels(chosen: _Files, sizes: dict[str, int], folder: Path) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The labels of each split that has some; files of one split must agree."""
    # One of another ending is refused, unless there is one that can be read.
    there = {one: sides.get("labels", []) for one, sides in chosen.items()}
    files = [(one, path) for one, paths in there.items() for path in _known(paths) or paths]
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    read = named([read_labels(path, sizes[one]) for one, path in files], class_names(folder))
    for (one, path), labels in zip(files, read, strict=True):
        if found.setdefault(one, labels) != labels:
            row = next(at for at, pair in enumerate(zip(found[one], labels, strict=True)) if pair[0] != pair[1])
            raise UserError(f"{path}, row {row}: not the label that another file of {one} gives; keep one of them")
    return found


def _document_ids(path: Path, rows: FeatureArray) -> tuple[str, ...]:
    if not os.path.lexists(path):
        return ()
    return tuple(read_ids(path, len(rows.values), path.with_name(rows.name)))
