"""Files of picture vectors, with the fingerprint of the model that made them where it is known.

An exported model is named by the one that it was made from: their vectors are the same but for rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, user_path
from rungwise.core.disk import replacing
from rungwise.core.formats import opened_npz
from rungwise.data import ImageCaptions
from rungwise.data.files import read_numbers

_IMAGES, _IDS, _MODEL = "images", "image_ids", "model"
_LONGEST = 200
"""Most characters of a fingerprint."""


class PictureVectors(NamedTuple):
    """The content of a file of picture vectors.

    Attributes:
        vectors: (images, D) vectors.
        model: Fingerprint of the model that made them; empty where the file does not say it.
        ids: (images,) ids of the images; empty where the file does not say them.
    """

    vectors: NDArray[Any]
    model: str
    ids: tuple[str, ...]

    def of(self, data: ImageCaptions, whole: ImageCaptions, path: Path | str) -> NDArray[Any]:
        """(images, D) rows of the images of a collection, in its order.

        Args:
            data: The collection.
            whole: The collection that ``data`` is a part of; the file may hold all of its rows, in its order.
            path: The file's path, for messages.
        """
        if not self.ids and len(self.vectors) == len(data):
            return self.vectors
        if not self.ids and len(self.vectors) != len(whole):
            of_both = f"{len(data)}" if len(data) == len(whole) else f"{len(data)} (of {len(whole)})"
            raise UserError(
                f"{path}: {len(self.vectors)} vectors for {of_both} pictures of {data.name}; give one for each, in"
                " their order"
            )
        place = {one: row for row, one in enumerate(self.ids or whole.image_ids)}
        missing = [one for one in data.image_ids if one not in place]
        if missing:
            raise UserError(
                f"{path}: no vector of {len(missing)} pictures of {data.name}, such as {missing[0][:80]!r}; give one"
                " for each"
            )
        return np.asarray(self.vectors)[[place[one] for one in data.image_ids]]


def write_picture_vectors(path: Path | str, vectors: ArrayLike, model: str, image_ids: tuple[str, ...]) -> None:
    """Write an archive of arrays, whole or not at all.

    Args:
        path: The file, which ends with ``.npz``.
        vectors: (images, D) vectors.
        model: Fingerprint of the model that made them.
        image_ids: (images,) ids of the images.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.npz"
    >>> write_picture_vectors(file, np.eye(2), "5eed", ("a", "b"))
    >>> read_picture_vectors(file).model
    '5eed'
    """
    place = Path(path)
    require_ending(place)
    with replacing(place) as draft, draft.open("wb") as file:
        np.savez(file, images=np.asarray(vectors), image_ids=np.array(image_ids), model=np.array(model))


def require_ending(path: Path) -> None:
    """Refuse a name with another ending than ``.npz``, which :func:`write_picture_vectors` would refuse."""
    if path.suffix.lower() != ".npz":
        raise UserError(f"{path}: vectors are written as .npz; choose a name with this ending")


def read_picture_vectors(path: Path | str) -> PictureVectors:
    """Read what :func:`write_picture_vectors` wrote, or any file of one array: ``.npy``, ``.npz``, ``.csv``, ``.mat``.

    Raises:
        UserError: If it cannot be read, holds several other arrays, or what it says does not fit together.
    """
    place = user_path(path)
    if place.suffix.lower() != ".npz":
        found = PictureVectors(read_numbers(place), "", ())
    else:
        try:
            with opened_npz(place) as archive:
                found = _of_archive(archive, archive.names)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{path}: cannot be read as vectors ({reason}); write it with numpy.savez") from error
    if found.vectors.ndim != 2 or found.vectors.dtype.kind not in "fiu" or not found.vectors.size:
        raise UserError(
            f"{path}: an array of shape {found.vectors.shape}, {found.vectors.dtype}; vectors are (images, D) numbers"
        )
    return found


def _of_archive(archive: Any, names: tuple[str, ...]) -> PictureVectors:
    """The content of an archive; a ValueError if the arrays are other ones, or do not fit together."""
    if len(names) == 1:
        return PictureVectors(archive[names[0]], "", ())
    if _IMAGES not in names:
        raise ValueError(f"arrays {', '.join(names)[:80]} where one is wanted, or one called {_IMAGES}")
    vectors = archive[_IMAGES]
    model, ids = "", tuple[str, ...]()
    if _MODEL in names:
        said = archive[_MODEL]
        if (
            said.dtype.kind != "U"
            or said.size != 1
            or said.dtype.itemsize > 4 * _LONGEST
            or not str(said).isprintable()
        ):
            raise ValueError(f"{_MODEL} is no text of at most {_LONGEST} characters")
        model = str(said)
    if _IDS in names:
        listed = archive[_IDS]
        if listed.dtype.kind != "U" or listed.shape != vectors.shape[:1]:
            raise ValueError(f"{_IDS} are not one text for each vector")
        ids = tuple(map(str, listed.tolist()))
        if len(set(ids)) < len(ids):
            raise ValueError(f"{_IDS} name an image twice")
    return PictureVectors(vectors, model, ids)
