"""Labelled features in one MAT file, as the Wikipedia set, NUS-WIDE, MIRFlickr and Pascal VOC are distributed.

**Layout**: a MAT file of any name with the arrays ``I_tr``, ``T_tr``, ``I_te`` and ``T_te``: one row for each document
of the training and of the test part, of its image and of its text. ``I_va`` and ``T_va`` (or ``I_val`` and ``T_val``)
may hold a validation part, ``I_db`` and ``T_db`` a database, which becomes the split ``db``. ``L_tr``, ``L_te`` and so
on may hold the labels (see :mod:`rungwise.data.labelled._class_labels`). The lists of the Wikipedia set beside the file
give its rows their ids, and labels where the file has none (see :mod:`rungwise.data.labelled._wikipedia`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.formats import read_arrays, variable_names
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.labelled._class_labels import class_names, labels_in_array, named
from rungwise.data.labelled._labelled_features import FeatureArray, FeatureSplit, collection_of, documents_of
from rungwise.data.labelled._wikipedia import DocumentList, list_file, read_list
from rungwise.data.layouts import PictureFolder, folder_name

MAT_SUFFIX = ".mat"

_PARTS = (("train", "tr"), ("val", "va"), ("val", "val"), ("test", "te"), ("db", "db"))
_NEEDED = tuple(f"{side}_{end}" for end in ("tr", "te") for side in "IT")
_KNOWN = tuple(f"{side}_{end}" for _, end in _PARTS for side in "ITL")


def labelled_mats(files: PictureFolder) -> list[Path]:
    """The MAT files below a folder that hold the features of a training and of a test part.

    A file that is no readable MAT file becomes an issue of the folder.
    """
    found = []
    for path in files.others:
        if path.suffix.lower() == MAT_SUFFIX:
            try:
                names = variable_names(files.root / path)
            except UserError as error:
                files.leave_out(path, str(error))
            else:
                found += [files.root / path] if set(_NEEDED) <= set(names) else []
    return found


def read_labelled_mat(path: Path, captions_only: bool = False) -> ImageCaptions:
    r"""Images and texts of all parts as one collection, each document an image with one caption.

    Image ids and caption ids are those of the lists, else ``"test/0"``, ``"test/1"`` and so on; labels are the names of
    the classes. There are no words: the id of a text stands for its caption, and what a model reads of it is its row in
    :attr:`~rungwise.data.ImageCaptions.text_features`. The layout is ``"wikipedia"`` with lists, else
    ``"labelled_features"``.

    Args:
        path: The MAT file.
        captions_only: Leave the rows of the images out.

    Raises:
        UserError: If an array is missing or no array of rows; if the numbers of rows, labels and lines do not go
            together; or if the labels are malformed, or not those of the lists.

    >>> import tempfile, numpy, scipy.io
    >>> file = Path(tempfile.mkdtemp()) / "nus.mat"
    >>> arrays = {"I_tr": numpy.ones((2, 8)), "T_tr": numpy.ones((2, 3)), "L_tr": numpy.array([[0, 1], [1, 1]])}
    >>> arrays |= {"I_te": numpy.ones((1, 8)), "T_te": numpy.ones((1, 3)), "L_te": numpy.array([[1, 0]])}
    >>> scipy.io.savemat(file, arrays)
    >>> _ = file.with_name("classes.txt").write_text("sky\nsea\n")
    >>> data = read_labelled_mat(file)
    >>> data.image_ids, data.labels, data.texts.shape
    (('train/0', 'train/1', 'test/0'), (('sea',), ('sky', 'sea'), ('sky',)), (3, 3))
    """
    arrays = read_arrays(path, _KNOWN)
    if lacking := [name for name in _NEEDED if name not in arrays]:
        raise UserError(f"{path}: holds no array {lacking[0]!r}; give a file with {', '.join(_NEEDED)}")
    ends = _ends(arrays, path)
    sides = {
        end: (FeatureArray(f"I_{end}", arrays[f"I_{end}"]), FeatureArray(f"T_{end}", arrays[f"T_{end}"]))
        for end in ends
    }
    sizes = {end: documents_of(*sides[end], path) for end in ends}
    names = class_names(path.parent)
    labelled = [end for end in ends if f"L_{end}" in arrays]
    given = named([labels_in_array(arrays[f"L_{end}"], sizes[end], f"{path}, L_{end}") for end in labelled], names)
    labels = dict(zip(labelled, given, strict=True))
    lists = {end: read_list(path, split, sizes[end], names) for end, split in ends.items()}
    has_lists = any(lists.values())
    parts: list[FeatureSplit] = []
    issues: list[Issue] = []
    for end, split in ends.items():
        images, texts = sides[end]
        listed = lists[end]
        if listed is None:
            parts.append(FeatureSplit(split, images, texts, labels.get(end, ())))
            if has_lists:
                said = f"the {sizes[end]} rows are numbered"
                issues.append(Issue("missing list", str(list_file(path, split)), said))
        else:
            _compare(labels.get(end, listed.labels), listed, f"{path}, L_{end}")
            parts.append(FeatureSplit(split, images, texts, listed.labels, listed.image_ids, listed.text_ids))
    return collection_of(
        parts,
        path,
        name=folder_name(path.parent),
        layout="wikipedia" if has_lists else "labelled_features",
        captions_only=captions_only,
        issues=issues,
    )


def _ends(arrays: dict[str, NDArray[Any]], path: Path) -> dict[str, str]:
    """Suffix of the arrays of each part that is there, with the part's split."""
    found: dict[str, str] = {}
    for split, end in _PARTS:
        there = [f"{side}_{end}" for side in "ITL" if f"{side}_{end}" in arrays]
        if not there:
            continue
        if absent := [f"{side}_{end}" for side in "IT" if f"{side}_{end}" not in there]:
            raise UserError(f"{path}: holds {there[0]!r}, but no array {absent[0]!r}; save both, or neither")
        if split in found.values():
            raise UserError(f"{path}: holds both 'I_va' and 'I_val'; keep one validation part")
        found[end] = split
    return found


def _compare(labels: tuple[tuple[str, ...], ...], listed: DocumentList, place: str) -> None:
    for row, (found, said) in enumerate(zip(labels, listed.labels, strict=True)):
        if found != said:
            raise UserError(
                f"{place}, row {row}: {', '.join(found) or 'no label'}, but {listed.path.name} says {', '.join(said)};"
                " correct one, or move the lists away"
            )
