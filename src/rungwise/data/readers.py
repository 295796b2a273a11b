"""One way in: look at a path, recognise how pictures and captions are laid out there, read them."""

from __future__ import annotations

from pathlib import Path

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.data.flickr8k import is_token_file, read_flickr8k, token_files
from rungwise.data.folder import PICTURE_SUFFIXES, PictureFolder, read_folder
from rungwise.data.karpathy import karpathy_files, read_karpathy
from rungwise.data.tables import TABLE_SUFFIXES, read_tables, table_files


def read(path: Path | str, *, join_restval: bool = False, captions_only: bool = False) -> ImageCaptions:
    r"""Read a collection of pictures and captions; its layout is recognised by looking.

    In this order: Flickr8K as published (a ``*.token.txt`` file), one of Karpathy's JSON files, a table of captions
    (CSV, TSV, JSON lines, Parquet), a bare folder of pictures. The file that holds the captions may be
    given itself where a folder holds several; its pictures are then looked for in its own folder and below.

    Args:
        path: A folder, or the file that holds the captions.
        join_restval: Count the split ``restval`` of COCO as ``train``.
        captions_only: Do not look for pictures: the collection gets no paths, and captions of pictures that are not
            at hand are read too.

    Returns:
        The collection. Pictures in no split are in ``"none"``; what was skipped or doubted is in ``issues``.

    Raises:
        UserError: If the path is missing, holds nothing that is recognised, or what it holds is malformed.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("b.png", "a.jpg"):
    ...     (folder / name).touch()
    >>> read(folder).image_ids
    ('a.jpg', 'b.png')
    >>> _ = (folder / "captions.tsv").write_text("image\tcaption\nb.png\tA red circle.\n")
    >>> read(folder).image_ids, read(folder).captions
    (('b.png', 'a.jpg'), ('A red circle.',))
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return _read_below(PictureFolder(path), join_restval, captions_only)
    if not path.exists():
        raise UserError(f"{path}: no such file or folder; correct the path")
    suffix = path.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        raise UserError(f"{path}: is a single picture; give the folder that holds it")
    if not (suffix in {".json", ".txt", *TABLE_SUFFIXES} or is_token_file(path)):
        known = ", ".join(sorted({".json", ".txt", *TABLE_SUFFIXES}))
        raise UserError(f"{path}: not a kind of file that holds captions ({known}); give such a file or a folder")
    files = PictureFolder(path.parent)
    if suffix == ".json":
        return read_karpathy(path, files, join_restval=join_restval, captions_only=captions_only)
    if is_token_file(path):
        return read_flickr8k(path, files, captions_only)
    return read_tables([path], files, captions_only)


def _read_below(files: PictureFolder, join_restval: bool, captions_only: bool) -> ImageCaptions:
    if tokens := token_files(files):
        return read_flickr8k(_only(tokens, files.root), files, captions_only)
    if described := karpathy_files(files):
        path = _only(described, files.root)
        return read_karpathy(path, files, join_restval=join_restval, captions_only=captions_only)
    if tables := table_files(files):
        return read_tables(tables, files, captions_only)
    return read_folder(files)


def _only(paths: list[Path], root: Path) -> Path:
    if len(paths) > 1:
        names = ", ".join(path.relative_to(root).as_posix() for path in paths[:4])
        raise UserError(f"{root}: {len(paths)} files of captions ({names}); give the one to read")
    return paths[0]
