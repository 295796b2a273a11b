"""Flickr8K as published: a token file, lists of the pictures of each split, and a folder of pictures."""

from __future__ import annotations

import re
from pathlib import Path

from rungwise.core import UserError
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import read_lines
from rungwise.data.layouts._folder import PictureFolder, folder_name
from rungwise.data.layouts._gatherer import Gatherer, left_out

_TOKEN_FILE = re.compile(r"\.token(\.txt)?$", re.IGNORECASE)
_SPLIT_LIST = re.compile(r"(train|dev|test)images\.txt$", re.IGNORECASE)
_CAPTION = re.compile(r"(?P<image>[^\t]+)#(?P<number>\d+)\t(?P<text>.*)")


def token_files(files: PictureFolder) -> list[Path]:
    """The files below a folder that are named like the captions of Flickr8K (and of Flickr30K)."""
    return [files.root / path for path in files.others if is_token_file(path)]


def is_token_file(path: Path) -> bool:
    """Whether a file is named like the captions of Flickr8K."""
    return _TOKEN_FILE.search(path.name) is not None


def read_flickr8k(path: Path, files: PictureFolder, captions_only: bool = False) -> ImageCaptions:
    r"""The published layout: lines ``<picture>#<n>``, tab, caption; ``*trainImages.txt`` and so on beside them.

    Caption ids are the published ones. The split called ``dev`` becomes ``val``; pictures on no list are in ``none``.
    The published captions name one picture that does not exist; its captions become issues.

    Lines of another form become issues, too.

    Args:
        path: The token file.
        files: The folder with the pictures and the lists of splits.
        captions_only: Do not look for pictures.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> file = root / "Flickr8k.token.txt"
    >>> _ = file.write_text("a.jpg#0\tA dog .\na.jpg#1\tA pet .\n")
    >>> _ = (root / "Flickr_8k.devImages.txt").write_text("a.jpg\n")
    >>> (root / "a.jpg").touch()
    >>> data = read_flickr8k(file, PictureFolder(root))
    >>> data.caption_ids, data.splits
    (('a.jpg#0', 'a.jpg#1'), ('val',))
    """
    gatherer = Gatherer(None if captions_only else files, strict=False)
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        match = _CAPTION.fullmatch(line)
        if match is None:
            gatherer.issue("malformed row", where, f"not '<picture>#<number>', tab, caption{left_out([line])}")
            continue
        image = gatherer.image(match["image"], where, captions=[match["text"]])
        if image is not None:
            gatherer.caption(image, match["text"], where, f"{match['image']}#{match['number']}")
    for other in files.others:
        if match := _SPLIT_LIST.search(other.name):
            _read_split(gatherer, files.root / other, match[1])
    return gatherer.collection(folder_name(files.root), "flickr8k")


def _read_split(gatherer: Gatherer, path: Path, split: str) -> None:
    try:
        lines = list(read_lines(path))
    except UserError as error:  # which is no fault of the captions
        gatherer.issue("list of a split left out", str(path), str(error).removeprefix(f"{path}: "))
        return
    for number, line in lines:
        where = f"{path}, line {number}"
        image = gatherer.image(line.strip(), where)
        if image is not None:
            gatherer.split(image, split, where)
