"""The lists of the Wikipedia cross-modal set, which lie beside its features and name their rows.

``trainset_txt_img_cat.list`` and ``testset_txt_img_cat.list`` say for each row the id of the text, the id of the image
and the number of the category, from 1. :mod:`rungwise.data.labelled._mat` reads the features.

Rasiwasia et al., "A New Approach to Cross-Modal Multimedia Retrieval", 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rungwise.core import UserError, is_regular
from rungwise.data.files import read_lines
from rungwise.data.labelled._class_labels import ClassNames
from rungwise.data.layouts import is_torn


@dataclass(frozen=True)
class DocumentList:
    """The list of a part's rows: (rows,) ids of texts and of images, and names of categories."""

    path: Path
    text_ids: tuple[str, ...]
    image_ids: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]


def list_file(mat: Path, split: str) -> Path:
    """Path of the list of a part, beside the file of features."""
    return mat.with_name(f"{split}set_txt_img_cat.list")


def read_list(mat: Path, split: str, rows: int, names: ClassNames | None) -> DocumentList | None:
    """The list of a part; None if there is none.

    Args:
        mat: The file of features.
        split: Split of the part.
        rows: Number of lines that there must be.
        names: Names of the categories; without them the labels are their numbers.
    """
    path = list_file(mat, split)
    if not is_regular(path):
        return None
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        cells = line.split()
        if len(cells) != 3 or not cells[2].isascii() or not cells[2].isdigit() or is_torn(line):
            raise UserError(f"{where}: not the id of a text, of an image and a number of a category; correct the line")
        category = int(cells[2][:9])
        if names and not 1 <= category <= len(names.names):
            raise UserError(
                f"{where}: category {category}, but {names.path.name} names {len(names.names)}; correct one"
            )
        found.append((cells[0], cells[1], (names.names[category - 1] if names else cells[2],)))
    if len(found) != rows:
        raise UserError(f"{path}: {len(found)} lines, but {mat.name} has {rows} rows; copy both again")
    texts, images, labels = zip(*found, strict=True)
    return DocumentList(path, texts, images, labels)
