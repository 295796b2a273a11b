"""The Wikipedia cross-modal set in its published layout: rows of features of images and of texts, with categories.

**Layout**: ``raw_features.mat`` (any name) with the arrays ``I_tr``, ``T_tr``, ``I_te`` and ``T_te``: one row for each
document of the training and of the test part, of its image and of its text. Beside it ``trainset_txt_img_cat.list``
and ``testset_txt_img_cat.list`` say for each row the id of the text, the id of the image and the number of the
category, from 1; ``categories.list`` names the categories, one a line. Without the lists the rows are numbered. Any
widths, any numbers of documents and other data in this layout will do.

Rasiwasia et al., "A New Approach to Cross-Modal Multimedia Retrieval", 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.core.mat import read_arrays, variable_names
from rungwise.core.reading import is_regular
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.data.features import FeatureRows
from rungwise.data.folder import PictureFolder, folder_name
from rungwise.data.gathering import is_torn
from rungwise.data.textfiles import read_lines

MAT_SUFFIX = ".mat"

_PARTS = (("train", "tr"), ("test", "te"))
_ARRAYS = tuple(f"{side}_{end}" for _, end in _PARTS for side in "IT")
_CATEGORIES = "categories.list"


def wikipedia_files(files: PictureFolder) -> list[Path]:
    """The MAT files below a folder that hold the four arrays.

    A file that is no readable MAT file becomes an issue of the folder.

    >>> import tempfile, scipy.io
    >>> root = Path(tempfile.mkdtemp())
    >>> scipy.io.savemat(root / "raw_features.mat", {name: np.ones((2, 3)) for name in _ARRAYS})
    >>> scipy.io.savemat(root / "other.mat", {"x": np.ones((2, 3))})
    >>> [path.name for path in wikipedia_files(PictureFolder(root))]
    ['raw_features.mat']
    """
    found = []
    for path in files.others:
        if path.suffix.lower() == MAT_SUFFIX:
            try:
                names = variable_names(files.root / path)
            except UserError as error:
                files.leave_out(path, str(error))
            else:
                found += [files.root / path] if set(_ARRAYS) <= set(names) else []
    return found


def read_wikipedia(path: Path, captions_only: bool = False) -> ImageCaptions:
    r"""Images and texts of both parts as one collection, each document an image with one caption.

    Image ids and caption ids are those of the lists, labels the names of the categories. There are no words: the id of
    a text stands for its caption, and what a model reads of it is its row in
    :attr:`~rungwise.data.ImageCaptions.text_features`.

    Args:
        path: The MAT file.
        captions_only: Leave the rows of the images out.

    Raises:
        UserError: If an array is missing or no array of rows, or the numbers of rows and of lines do not go together.

    >>> import tempfile, scipy.io
    >>> file = Path(tempfile.mkdtemp()) / "raw_features.mat"
    >>> rows = {"I_tr": np.ones((2, 8)), "T_tr": np.ones((2, 3)), "I_te": np.ones((1, 8)), "T_te": np.ones((1, 3))}
    >>> scipy.io.savemat(file, rows)
    >>> _ = file.with_name("trainset_txt_img_cat.list").write_text("t1 i1 2\nt2 i2 1\n")
    >>> _ = file.with_name("categories.list").write_text("art\nbiology\n")
    >>> data = read_wikipedia(file)
    >>> data.image_ids, data.labels, data.texts.shape
    (('i1', 'i2', 'test/0'), (('biology',), ('art',), ()), (3, 3))
    """
    arrays = read_arrays(path, _ARRAYS)
    if lacking := [name for name in _ARRAYS if name not in arrays]:
        raise UserError(f"{path}: holds no array {lacking[0]!r}; give a file with {', '.join(_ARRAYS)}")
    categories = _categories(path.with_name(_CATEGORIES))
    documents: list[_Document] = []
    splits: list[str] = []
    issues: list[Issue] = []
    for split, end in _PARTS:
        images, texts = arrays[f"I_{end}"], arrays[f"T_{end}"]
        if images.ndim != 2 or texts.ndim != 2 or len(images) != len(texts):
            raise UserError(
                f"{path}: I_{end} of shape {images.shape} and T_{end} of shape {texts.shape}; save one row for each"
                " document in both"
            )
        listed = path.with_name(f"{split}set_txt_img_cat.list")
        if is_regular(listed):
            documents += _listed(listed, len(images), path, categories)
        else:
            issues.append(Issue("missing list", str(listed), f"the {len(images)} rows are numbered, without labels"))
            documents += [_Document(f"{split}/{row}", f"{split}/{row}", ()) for row in range(len(images))]
        splits += [split] * len(images)
    if not documents:
        raise UserError(f"{path}: its arrays have no rows; give another file")
    return ImageCaptions(
        image_ids=tuple(one.image for one in documents),
        captions=tuple(one.text for one in documents),
        image_of_caption=np.arange(len(documents)),
        caption_ids=tuple(one.text for one in documents),
        splits=tuple(splits),
        labels=tuple(one.labels for one in documents),
        name=folder_name(path.parent),
        layout="wikipedia",
        issues=tuple(issues),
        features=None if captions_only else _rows(path, arrays, "I"),
        text_features=_rows(path, arrays, "T"),
    )


@dataclass(frozen=True)
class _Document:
    text: str
    image: str
    labels: tuple[str, ...]


def _rows(path: Path, arrays: dict[str, NDArray[Any]], side: str) -> FeatureRows:
    parts = [arrays[f"{side}_{end}"] for _, end in _PARTS]
    for (_, end), part in zip(_PARTS, parts, strict=True):
        if part.dtype.kind != "f" or not part.shape[1] or part.shape[1] != parts[0].shape[1]:
            raise UserError(
                f"{path}: {side}_{end} is of shape {part.shape} and type {part.dtype}; features are floating-point rows"
                " of one width in both parts"
            )
    return FeatureRows(*(part for part in parts if len(part)))


def _categories(path: Path) -> list[str]:
    return [line.strip() for _, line in read_lines(path)] if is_regular(path) else []


def _listed(path: Path, rows: int, mat: Path, categories: list[str]) -> list[_Document]:
    documents = []
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        cells = line.split()
        if len(cells) != 3 or not cells[2].isascii() or not cells[2].isdigit() or is_torn(line):
            raise UserError(f"{where}: not the id of a text, of an image and a number of a category; correct the line")
        category = int(cells[2][:9])
        if categories and not 1 <= category <= len(categories):
            raise UserError(f"{where}: category {category}, but {_CATEGORIES} names {len(categories)}; correct one")
        documents.append(_Document(cells[0], cells[1], (categories[category - 1] if categories else cells[2],)))
    if len(documents) != rows:
        raise UserError(f"{path}: {len(documents)} lines, but {mat.name} has {rows} rows; copy both again")
    return documents
