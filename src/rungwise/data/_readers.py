"""Reading a collection from a path; the layout of its pictures and captions is recognised by its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, get_args

import numpy as np

from rungwise.core import UserError, require_there, user_path
from rungwise.core.network import address_of, objects_below
from rungwise.core.output import printable
from rungwise.data._collection import NOT_READ, CollectionSource, ImageCaptions, Issue
from rungwise.data._from_memory import (
    as_list,
    from_dataset,
    from_frame,
    from_lists,
    holds_lists,
    is_dataset,
    is_frame,
    type_name,
)
from rungwise.data._own_readers import READERS, read_own, recognised_as
from rungwise.data.files import Exclusions, PackedPicture, map_parts
from rungwise.data.folders import joined, named_folders
from rungwise.data.labelled import (
    MAT_SUFFIX,
    feature_folders,
    folders_of_rows,
    labelled_mats,
    read_feature_folder,
    read_labelled_mat,
    split_of_rows,
)
from rungwise.data.layouts import (
    PACKED_SUFFIXES,
    PICTURE_SUFFIXES,
    SHARD_SUFFIX,
    TABLE_SUFFIXES,
    Key,
    PictureFolder,
    coco_files,
    features_file,
    first_sound,
    folder_name,
    folder_of_pictures,
    folders_of_splits,
    holds_pictures,
    ignored_files,
    is_coco_file,
    is_json_table,
    is_token_file,
    json_tables,
    karpathy_files,
    picture_tables,
    precomputed_splits,
    read_coco,
    read_features,
    read_flickr8k,
    read_folder,
    read_karpathy,
    read_picture_tables,
    read_precomputed,
    read_shards,
    read_tables,
    readable_name,
    shards,
    table_files,
    token_files,
    with_features,
)
from rungwise.data.layouts import SUFFIX as PARQUET_SUFFIX
from rungwise.data.sidecars import TEXT_FILES, read_text_captions, unread_texts, with_descriptions

_ARROW_SUFFIX = ".arrow"
_KNOWN_SUFFIXES = frozenset({".json", ".npy", ".txt", MAT_SUFFIX, SHARD_SUFFIX, *TABLE_SUFFIXES})
PRECOMPUTED = "precomputed"
WEBDATASET = "webdataset"
_WITH_RESTVAL = {"karpathy", "parquet"}
"""Layouts that may have COCO's split restval."""

LAYOUTS = {
    PRECOMPUTED: "precomputed features (train_ims.npy with train_caps.txt)",
    "flickr8k": "Flickr8K as published (*.token.txt)",
    "karpathy": "Karpathy's JSON",
    "coco": "COCO's annotations",
    "wikipedia": "a MAT file of labelled features with lists",
    "labelled_features": "labelled features",
    "parquet": "Parquet files that hold pictures",
    WEBDATASET: "WebDataset shards (tar archives)",
    "table": "a table of captions",
    "json": "captions in simple JSON",
    "scenes": "generated scenes",
    TEXT_FILES: "captions in text files beside the pictures",
    "features": "rows of features (features.npy)",
    "folder": "a bare folder of pictures",
}
"""Names of the layouts that :func:`read` knows, and what each is."""


@dataclass(frozen=True)
class _Options:
    """Options of :func:`read` that readers of single layouts take."""

    join_restval: bool
    captions_only: bool
    exclude: tuple[str, ...] = ()
    key: Key = "dot"
    files: tuple[str, ...] = ()
    """Files of captions that were read before; others that are found are no part of the collection."""


@dataclass(frozen=True)
class _Kind:
    """A kind of collection: its names, how its files are found below a folder, and how they are read.

    Attributes:
        layouts: Layouts of the collections that ``read`` gives.
        find: The files (or folders) of this kind below a folder.
        read: Reads what was found; None where there is nothing to read in it after all.
        packed: The files hold the pictures themselves, or rows in place of them.
    """

    layouts: tuple[str, ...]
    find: Callable[[PictureFolder], list[Path]]
    read: Callable[[list[Path], PictureFolder, _Options], ImageCaptions | None]
    packed: bool = False

    @property
    def name(self) -> str:
        """The layout by which it is asked for."""
        return self.layouts[0]


def read(
    path: Path | str | Sequence[Path | str] | Sequence[object] | object,
    *,
    layout: str | None = None,
    captions: Path | str | Sequence[str | Sequence[str] | None] | None = None,
    key: Key = "dot",
    exclude: Sequence[str] = (),
    join_restval: bool = False,
    captions_only: bool = False,
    image: str | None = None,
    caption: str | Sequence[str] | None = None,
    split: str | None = None,
    id: str | None = None,
) -> ImageCaptions:
    r"""Read a collection of images and captions; its layout is recognised by its files.

    In this order: the precomputed features of VSE++ and SCAN (``train_ims.npy`` and ``train_caps.txt`` and so on),
    Flickr8K as published (a ``*.token.txt`` file), one of Karpathy's JSON files, captions as COCO publishes them
    (``captions_train2017.json``), labelled features in one MAT file (``raw_features.mat`` of the Wikipedia set),
    labelled features with a file for each split and side (``train_images.npy``, ``train_texts.csv`` and so on),
    Parquet files that hold the pictures themselves, as ``datasets`` of Hugging Face writes them, WebDataset shards (tar
    archives), a table of captions (CSV with commas or semicolons, TSV, JSON lines, Parquet), captions in simple JSON,
    captions in a text file beside each picture, a bare folder of pictures. The file that holds the captions may be
    given itself where a folder holds several; its pictures are then looked for in its own folder and below, and those
    of a file of COCO's folder ``annotations`` beside that. A file of precomputed or labelled features stands for its
    split.

    What is recognised is a guess, and pictures that lie in the folder as files come first. A file beside them that
    cannot be read as captions, or names none of them, becomes an issue. Archives and features beside them are read in
    their place only if they hold more pictures, and captions or labels.

    Where no pictures are, ``features.npy`` takes their place, with one row for each image (see
    :mod:`rungwise.data.layouts._feature_files`). Where there are both, give that file itself to read its rows.

    Columns come from files beside the pictures too: XMP, and the JSON of Google Takeout.

    What a program holds is read as well: a pandas DataFrame (:func:`from_frame`), a ``Dataset`` or ``DatasetDict`` of
    Hugging Face (:func:`from_dataset`), or lists of pictures and of captions (:func:`from_lists`), such as the paths of
    picture files. A Series, an array and what ``glob`` gives are lists too. A collection that was read before is given
    back as it is.

    Args:
        path: A folder, or the file that holds the captions or the features. Or several of them, which become one
            collection: the name of each folder stands before the ids of its pictures (``"rome/a.jpg"``), and
            ``"NAME=FOLDER"`` gives it another.
        layout: Read it as this layout, one of :data:`LAYOUTS` or that of an imported
            :class:`~rungwise.data.CollectionReader`, whatever else lies there.
        captions: File of the captions of the pictures in the folder ``path``, in place of those that lie there. Or the
            captions themselves, one text or several for each of a list of pictures.
        key: Which members of a WebDataset shard belong together: those whose names are equal to the first dot, or with
            ``"stem"`` to the last dot (``Plan 1.5 north.png`` and ``Plan 1.5 north.txt``).
        exclude: Patterns as in ``.gitignore`` of files and folders that are left out, which are counted. One text is
            one pattern. The lines of files called ``.rungwiseignore`` are such patterns too, for their folder and all
            below.
        join_restval: Count the split ``restval`` of COCO as ``train``.
        captions_only: Look neither for pictures nor for features: captions of pictures that are not there are read too.
        image: Column of the pictures of a frame or dataset.
        caption: Column, or columns, of its captions.
        split: Column of its splits.
        id: Column of the ids of its pictures.

    Returns:
        The collection. Images in no split are in ``"none"``; what was skipped or doubted is in ``issues``: among it
        folders and files that may not be read, and pipes, devices, sockets and broken links, of which none is opened.
        One issue of the kind ``"not read"`` counts each sort of files that are no pictures and no captions.

    Raises:
        UserError: If the path is missing, holds nothing that is recognised, or nothing of the given layout, or what was
            asked for is malformed; if a pattern is none; of several, if two have one name, one lies in another, or some
            have pictures and others features.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("b.png", "a.jpg"):
    ...     (folder / name).touch()
    >>> read(folder).image_ids
    ('a.jpg', 'b.png')
    >>> _ = (folder / "captions.tsv").write_text("image\tcaption\nb.png\tA red circle.\n")
    >>> read(folder).image_ids, read(folder).captions
    (('b.png', 'a.jpg'), ('A red circle.',))
    >>> read(folder, layout="folder").captions
    ()
    """
    columns: dict[str, Any] = {"image": image, "caption": caption, "split": split, "id": id}
    exclude = _patterns(exclude)
    of_files = {"layout": layout, "key": key != "dot", "exclude": bool(exclude), "join_restval": join_restval}
    of_files["captions_only"] = captions_only
    asked_of_files = [name for name, value in of_files.items() if value]
    asked_of_tables = [name for name, value in columns.items() if value is not None]
    if isinstance(path, ImageCaptions):
        if needless := [*asked_of_files, *asked_of_tables, *(["captions"] if captions is not None else [])]:
            raise UserError(f"{needless[0]}=: this collection was read before; leave it out, or read its files anew")
        return path
    path = as_list(path)
    with _one_line():
        if is_frame(path) or is_dataset(path):
            if captions is not None:
                raise UserError("captions=: is of folders and lists; name a column of the table by caption=")
            if asked_of_files:
                raise UserError(f"{asked_of_files[0]}: is of files; leave it out")
            return from_frame(path, **columns) if is_frame(path) else from_dataset(path, **columns)
        if holds_lists(path, captions):
            if asked_of_files or asked_of_tables:
                needless_one, of = (*asked_of_files, *asked_of_tables)[0], "files" if asked_of_files else "tables"
                raise UserError(f"{needless_one}: is of {of}; leave it out")
            return from_lists(path, captions)  # type: ignore[arg-type]  # as just seen
        if not isinstance(path, str | Path | Sequence) or isinstance(path, bytes | bytearray | memoryview):
            raise UserError(
                f"path= got {type_name(path)}, which is no collection; give a path, a DataFrame, a Dataset, or lists"
                " of pictures and captions"
            )
        if asked_of_tables:
            raise UserError(f"{asked_of_tables[0]}: names a column of a DataFrame or a Dataset; of files leave it out")
        if not isinstance(path, str | Path) and not path:
            raise UserError("path= is an empty list; give at least one folder or picture")
        files: Any = path
        source = source_of_files(files, layout=layout, captions=captions, key=key, exclude=exclude)  # type: ignore[arg-type]
        return _read_source(source, join_restval=join_restval, captions_only=captions_only)


@contextmanager
def _one_line() -> Iterator[None]:
    """Writes out what would break the line of an error, such as the end of a line in the name of a file."""
    try:
        yield
    except UserError as error:
        error.args = (printable(str(error)).replace("\n", "\\n"),)
        raise


def _patterns(exclude: object) -> tuple[str, ...]:
    """Patterns of ``exclude=``; one text is one pattern."""
    if isinstance(exclude, str):
        return (exclude,)
    remedy = "give a pattern such as '*.png', or a list of them"
    if isinstance(exclude, bytes | bytearray | Mapping) or not isinstance(exclude, Iterable):
        raise UserError(f"exclude= got {type_name(exclude)}; {remedy}")
    found = tuple(exclude)
    if wrong := [one for one in found if not isinstance(one, str)]:
        raise UserError(f"exclude= holds {type_name(wrong[0])}; {remedy}")
    return found


def source_of_files(
    path: Path | str | Sequence[Path | str],
    *,
    layout: str | None = None,
    captions: Path | str | None = None,
    key: Key = "dot",
    exclude: Sequence[str] = (),
) -> CollectionSource:
    """Where a collection is to be read from, for :func:`read_again`; the arguments are those of :func:`read`."""
    known_layout = layout is None or (isinstance(layout, str) and (layout in LAYOUTS or READERS.has(layout)))
    if not known_layout:
        raise UserError(
            f"layout={layout!r}: no such layout; there are {', '.join([*LAYOUTS, *READERS.names()])}",
            parameters={f"layout={layout!r}": "layout"},
        )
    if key not in get_args(Key):
        raise UserError(f"key={key!r}: is none of {', '.join(get_args(Key))}", parameters={f"key={key!r}": "key"})
    alone = isinstance(path, str | Path)
    if "" in ((path,) if isinstance(path, str | Path) else path):
        raise UserError("the path is empty; give a folder or a file, or '.' for the current folder")
    if captions is not None and not isinstance(captions, str | Path):
        raise UserError(
            f"captions= got {type_name(captions)}; of a folder give the path of the file that holds its captions"
        )
    if captions == "":
        raise UserError("captions= is empty; give the file that holds the captions, or leave it out")
    named = {"": user_path(path)} if isinstance(path, str | Path) else named_folders(path)
    if captions is not None and not alone:
        raise UserError(
            f"captions={str(captions)!r}: is the file of one folder, and a list of {len(named)} is given; give one"
            " folder, or a list of captions",
            parameters={f"captions={str(captions)!r}": "captions"},
        )
    return CollectionSource(
        tuple(map(_absolute, named.values())),
        (layout or "",) * len(named),
        names=() if alone else tuple(named),
        captions="" if captions is None else _absolute(user_path(captions)),
        key=key,
        exclude=_patterns(exclude),
    )


def read_again(source: CollectionSource) -> ImageCaptions:
    """Read a collection from where it was read before, as what it was read.

    A folder that is gone, or holds no pictures any more, gives none, so that whoever keeps an index of it can tell that
    from pictures that were removed one by one.

    Raises:
        UserError: Those of :func:`read`, but for these.
    """
    return _read_source(source, tolerant=True)


def _read_source(
    source: CollectionSource, *, join_restval: bool = False, captions_only: bool = False, tolerant: bool = False
) -> ImageCaptions:
    options = _Options(join_restval, captions_only, source.exclude, source.key)
    captions = Path(source.captions) if source.captions else None
    parts: dict[str, tuple[Path, ImageCaptions]] = {}
    places: list[Path] = []
    files: list[tuple[str, ...]] = []
    remembered = source.files or ((),) * len(source.paths)
    for path, layout, kept, name in zip(source.paths, source.layouts, remembered, source.names or ("",), strict=True):
        data, place = _read_or_none(Path(path), layout, captions, replace(options, files=kept), tolerant)
        parts[name] = Path(path), data
        places.append(place)
        files.append(kept if data.source is None else data.source.files[0])
    found = replace(
        source,
        paths=tuple(map(_absolute, places)),
        layouts=tuple(data.layout for _, data in parts.values()),
        files=tuple(files) if any(files) else (),
    )
    if source.names:
        there = {name: part for name, part in parts.items() if len(part[1]) or not tolerant}
        data = joined(there) if there else replace(data, name="+".join(source.names))
    issues = data.issues
    if source.key != "dot" and WEBDATASET not in found.layouts and not any(map(_names_shard, issues)):
        detail = "is of tar shards, and there are none; leave it out"
        issues = (*issues, Issue("option without effect", f"key {source.key}", detail))
    if join_restval and not _WITH_RESTVAL & {*found.layouts}:
        detail = "is of data with a split restval, such as Karpathy's JSON; leave it out"
        issues = (*issues, Issue("option without effect", "join_restval", detail))
    looked_outside = any(part.looked_outside for _, part in parts.values())
    return replace(data, source=found, issues=issues, looked_outside=looked_outside)


def _names_shard(issue: Issue) -> bool:
    return issue.where.lower().endswith(SHARD_SUFFIX)


def _read_or_none(
    path: Path, layout: str, captions: Path | None, options: _Options, tolerant: bool
) -> tuple[ImageCaptions, Path]:
    """The collection and its place; none of one that was read before and is gone, where that is tolerated."""
    try:
        return _read(path, layout or None, captions, options)
    except UserError:
        if not (tolerant and layout) or address_of(path) or (os.path.lexists(path) and _holds_pictures(path)):
            raise
    return ImageCaptions((), (), np.empty(0, np.int64), name=folder_name(path), layout=layout), path


def _holds_pictures(place: Path) -> bool:
    return not place.is_dir() or bool(PictureFolder(place).pictures)


def _absolute(path: Path) -> str:
    # Links are not followed: people arrange folders by them.
    return address_of(path) or os.path.abspath(path)  # noqa: PTH100


def _read(path: Path, layout: str | None, captions: Path | None, options: _Options) -> tuple[ImageCaptions, Path]:
    """The collection, and the folder or file by which it is read again."""
    if address := address_of(path):
        return _read_objects(address, layout, options), path
    require_there(path)
    if layout is not None and layout not in LAYOUTS:
        return read_own(layout, path), path
    if captions is not None:
        require_there(captions)
        if not path.is_dir():
            raise UserError(f"{path}: is no folder of pictures, which captions of another file would need; give one")
        if captions.is_dir():
            raise UserError(f"{captions}: is a folder; give the file that holds the captions")
    if layout in (None, PRECOMPUTED) and precomputed_splits(path):
        features = read_precomputed(path, options.captions_only)
        beside = PictureFolder(path).pictures if path.is_dir() and layout is None else []
        if len(features) > len(beside):
            return features, path
    if not path.is_dir():
        if layout is None and not _is_known(path) and (own := recognised_as(path)) is not None:
            return read_own(own, path), path
        _check_kind(path)
        if split := split_of_rows(path):
            return read_feature_folder(path.parent, options.captions_only, split), path
    is_coco = path.suffix.lower() == ".json" and not path.is_dir() and is_coco_file(path)
    folder = path if path.is_dir() else folder_of_pictures(path) if is_coco else path.parent
    files = PictureFolder(folder, options.exclude)
    is_rows = path.suffix.lower() == ".npy"
    asked = captions if captions is not None else None if path.is_dir() or is_rows else path
    rows = None if options.captions_only else path if is_rows else features_file(files)
    take_rows = rows is not None and (is_rows or not files.pictures)
    inner = replace(options, captions_only=options.captions_only or take_rows)
    data: ImageCaptions | None
    issues: list[Issue] = []
    used: tuple[str, ...] = ()
    if asked is None:
        loose = len(files.pictures) or (_rows(rows) if rows is not None and take_rows else 0)
        packed = next((kind for kind in _KINDS if kind.packed and layout in kind.layouts), None)
        if packed is not None and not is_rows:
            inner, take_rows = options, False
        data, issues, used = _recognised(files, layout, inner, loose, not options.captions_only)
        if data is not None and take_rows and not is_rows and _is_packed(data):
            take_rows = False
            data, issues, used = _recognised(files, data.layout, options, loose, True)
    elif is_coco:  # the folder around its own may hold the pictures of other splits too
        data = read_coco([path], files, inner.captions_only, unnamed=path.parent == files.root)
    else:
        data = _read_asked(asked, files, inner)
    if rows is not None and take_rows:
        data = read_features(rows) if data is None else with_features(data, rows)
    else:
        if data is None and layout is None and captions is None and (own := recognised_as(path)) is not None:
            return read_own(own, path), path
        if data is None and not files.pictures:
            _refuse_what_is_known(files)
        if data is None and layout in (None, TEXT_FILES):
            data = read_text_captions(files)
        if data is None and layout == TEXT_FILES:
            _refuse_without(files, layout)
        data = read_folder(files) if data is None else data
    place = rows if rows is not None and take_rows else path
    if options.captions_only:
        issues += [one for one in files.issues if one.kind.endswith(" left out")]
        return (replace(data, issues=(*data.issues, *issues)) if issues else data), place
    if path.is_dir() and _reads_files(data):
        data = with_descriptions(data, files)
    issues += files.issues
    if rows is not None and not take_rows:
        issues.append(
            Issue("features left out", str(rows), "there are pictures too; give this file itself to read its rows")
        )
    if path.is_dir() and files.pictures and not _reads_files(data):
        first, more = files.root / files.pictures[0], len(files.pictures) - 1
        issues.append(
            Issue("pictures left out", str(first), f"with {more} more; give the folder that holds them alone")
        )
    if path.is_dir() and data.layout in ("table", "json", "folder", TEXT_FILES):
        known = {issue.where for issue in issues}
        known |= {readable_name(one.relative_to(path)) for one in json_tables(files)}  # each was read or left out
        issues += [issue for issue in ignored_files(files) if issue.where not in known]
    if path.is_dir():
        of_folder = data.layout in ("folder", TEXT_FILES)
        if layout == "folder":
            why = f"the folder is read without captions; the layout {TEXT_FILES} reads them"
            issues += unread_texts(files, data.layout, why)
        elif not of_folder:
            issues += unread_texts(files, data.layout, "the captions are read from elsewhere")
        listed = {issue.where for issue in (*data.issues, *issues)}
        issues += files.not_read(captions_read=not of_folder, listed=listed)
    read_from = CollectionSource((), (), (used,))
    issues_of_all = (*data.issues, *issues)
    return replace(data, issues=issues_of_all, source=read_from, looked_outside=files.looked_outside), place


def _read_objects(address: str, layout: str | None, options: _Options) -> ImageCaptions:
    """The pictures of Parquet files or WebDataset shards in an object store."""
    objects = [Path(one) for one in objects_below(address)]
    root = Path(address) if objects != [Path(address)] else Path(address).parent
    rules = Exclusions(options.exclude, "exclude")
    objects = [one for one in objects if not rules.leaves_out(one.relative_to(root).as_posix())]
    tables = [one for one in objects if one.suffix.lower() == PARQUET_SUFFIX and holds_pictures(one)]
    if tables and layout in (None, "parquet"):
        return read_picture_tables(tables, root, join_restval=options.join_restval, captions_only=options.captions_only)
    archives = [one for one in objects if one.suffix.lower() == SHARD_SUFFIX]
    if archives and layout in (None, WEBDATASET):
        return read_shards(archives, root, options.captions_only, options.key)
    raise UserError(
        f"{address}: holds neither Parquet files with pictures nor WebDataset shards ({SHARD_SUFFIX}); of an object"
        " store nothing else is read, so pack the pictures into such files, or copy them to a folder"
    )


def _is_packed(data: ImageCaptions) -> bool:
    return any(kind.packed and data.layout in kind.layouts for kind in _KINDS)


def _rows(path: Path) -> int:
    """Number of rows of features in a file that was only found; 0 where it cannot be read."""
    try:
        return len(map_parts(path))
    except UserError:
        return 0


def _reads_files(data: ImageCaptions) -> bool:
    return data.features is None and not any(isinstance(picture, PackedPicture) for picture in data.paths)


def _check_kind(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        raise UserError(f"{path}: is a single picture; give the folder that holds it")
    _refuse_file(path)
    if not _is_known(path):
        kinds = ", ".join(sorted(_KNOWN_SUFFIXES))
        raise UserError(f"{path}: not a kind of file that holds captions ({kinds}); give such a file or a folder")


def _is_known(path: Path) -> bool:
    """Whether a file is of a kind that holds captions or features."""
    return path.suffix.lower() in _KNOWN_SUFFIXES or is_token_file(path)


def _refuse_what_is_known(files: PictureFolder) -> None:
    """Raise a UserError that names files of a known kind in a folder where nothing can be read."""
    if inside := folders_of_splits(files):
        raise UserError(f"{files.root}: precomputed features lie in {', '.join(inside[:4])}; give the folder to read")
    for path in files.others:
        _refuse_file(files.root / path)
    # Captions that were only found lack something, else they would have been read; their readers say what.
    for path in coco_files(files):
        read_coco([path], files)
    options = _Options(False, False)
    for path in [*token_files(files), *karpathy_files(files), *_table_files(files)]:
        _read_asked(path, files, options)
    # Features that were not recognised lack something; their readers say what.
    for folder in folders_of_rows(files):
        read_feature_folder(folder)
    for path in files.others:
        if path.suffix.lower() == MAT_SUFFIX:
            read_labelled_mat(files.root / path)


def _refuse_file(path: Path) -> None:
    if path.name.lower().endswith(PACKED_SUFFIXES):
        raise UserError(
            f"{path}: a compressed archive, in which no picture can be read by its place; unpack it to .tar"
        )
    if path.suffix.lower() == _ARROW_SUFFIX:
        raise UserError(
            f"{path}: an Arrow file, as Dataset.save_to_disk writes it, is not read; write Parquet with"
            " Dataset.to_parquet"
        )


def _recognised(
    files: PictureFolder, layout: str | None, options: _Options, loose: int, look: bool
) -> tuple[ImageCaptions | None, list[Issue], tuple[str, ...]]:
    """The captions that lie in a folder, None if there are none, what was left out on the way, and the files read.

    A fault in what was only found, and not asked for, does not stop the reading of pictures that are there. Archives of
    pictures go before captions of pictures that are not there.

    Args:
        files: The folder.
        layout: The layout that was asked for.
        options: Options of the readers.
        loose: Number of pictures that lie in the folder as files, or of rows of features in place of them.
        look: Look for pictures at all.
    """
    issues: list[Issue] = []
    taken: list[tuple[_Kind, ImageCaptions, list[Path]]] = []
    others: list[_Kind] = []
    for kind in _KINDS:
        settled = bool(taken) and (bool(files.pictures) or taken[0][0].packed or not (kind.packed and look))
        if settled or (layout is not None and layout not in kind.layouts):
            others.append(kind)
            continue
        found: list[Path] = []
        try:
            found = _remembered(files, kind.find(files), options, kind)
            data = kind.read(found, files, options) if found else None
        except UserError as error:
            if layout is not None or not loose:
                raise
            issues.append(_left_out(files, found, str(error)))
            continue
        if data is None:
            if layout is not None and found:
                _refuse_faulty(files, found)
            continue
        if kind.packed and layout is None and loose and not _is_collection(data, loose):
            more = f", with {len(found) - 1} more" if len(found) > 1 else ""
            what = "rows of features" if data.features is not None else "pictures"
            detail = f"holds {len(data)} {what}{more}, not read beside pictures; to read it, give it alone"
            issues.append(Issue(NOT_READ, _named(files, found), detail))
            continue
        if taken and not taken[0][0].packed:  # captions of pictures that are not there
            others.append(taken.pop()[0])
        taken.append((kind, data, found))
    if not taken:
        if layout not in (None, "folder", TEXT_FILES, "features"):
            _refuse_without(files, layout)
        return None, issues + [one for kind in others for one in _passed_over(files, kind, ())], ()
    kind, data, found = taken[0]
    left = {issue.where for issue in files.issues if issue.kind.endswith(" left out")}
    names = tuple(name for path in found if (name := _named(files, [path])) not in left)
    if "labelled_features" not in kind.layouts:  # whose rows and labels are tables themselves
        issues += [one for other in others for one in _passed_over(files, other, found)]
    return data, issues, () if kind.packed else names


def _remembered(files: PictureFolder, found: list[Path], options: _Options, kind: _Kind) -> list[Path]:
    """Of files of captions those that were read before, if any were; the others are left out.

    Raises:
        UserError: If none of them is there any more.
    """
    if not options.files or kind.packed:
        return found
    kept = [path for path in found if _named(files, [path]) in options.files]
    if not kept:
        raise UserError(
            f"{files.root}: {options.files[0]}, from which the captions came, is not there or holds none any more; put"
            " it back, or have the folder read anew by layout=auto",
            parameters={"layout=auto": "layout"},
        )
    for path in found:
        if path not in kept:
            what = f"{LAYOUTS[kind.name]}, which was not there before; --layout auto looks anew"
            files.note(Issue(NOT_READ, _named(files, [path]), what))
            files.take(path.relative_to(files.root))
    return kept


def _refuse_faulty(files: PictureFolder, found: Sequence[Path]) -> NoReturn:
    """Raise what is wrong with the files of a layout that was asked for."""
    names = {_named(files, [path]) for path in found}
    issue = next((one for one in files.issues if one.where in names), None)
    raise UserError(
        f"{files.root}: {issue.where}: {issue.detail}" if issue else f"{files.root}: no captions in {names}"
    )


def _refuse_without(files: PictureFolder, layout: str) -> NoReturn:
    raise UserError(
        f"{files.root}: holds nothing to be read as {LAYOUTS[layout]}; put it back, or have it read as something else"
        " by layout=",
        parameters={"layout=": "layout"},
    )


def _passed_over(files: PictureFolder, kind: _Kind, read: Sequence[Path]) -> list[Issue]:
    """An issue for what lies in a folder of another kind than what was read."""
    try:
        listed = {issue.where for issue in files.issues}
        found = [path for path in kind.find(files) if path not in read and _named(files, [path]) not in listed]
    except UserError:
        return []
    if not found:
        return []
    more = f", with {len(found) - 1} more" if len(found) > 1 else ""
    detail = f"{LAYOUTS[kind.name]}{more}; not read beside the collection, and in its place with --layout {kind.name}"
    return [Issue(NOT_READ, _named(files, found), detail)]


def _is_collection(data: ImageCaptions, loose: int) -> bool:
    """Whether packed pictures are rather the collection than those that lie beside them as files."""
    return bool(data.captions or data.labels) and len(data) > loose


def _left_out(files: PictureFolder, found: Sequence[Path], reason: str) -> Issue:
    where = _named(files, found)
    for name in (f"{files.root / where}, ", f"{files.root / where}: ", f"{files.root}: "):
        reason = reason.removeprefix(name)
    return Issue("captions not read", where, reason)


def _named(files: PictureFolder, found: Sequence[Path]) -> str:
    return readable_name(found[0].relative_to(files.root)) if found else files.root.name


def _read_asked(path: Path, files: PictureFolder, options: _Options) -> ImageCaptions:
    """The captions of the file that a person named."""
    captions_only = options.captions_only
    if is_token_file(path):
        return read_flickr8k(path, files, captions_only)
    suffix = path.suffix.lower()
    if suffix == MAT_SUFFIX:
        return read_labelled_mat(path, captions_only)
    if suffix == SHARD_SUFFIX:
        return read_shards([path], path.parent, captions_only, options.key)
    if suffix == PARQUET_SUFFIX and holds_pictures(path):
        return read_picture_tables([path], path.parent, join_restval=options.join_restval, captions_only=captions_only)
    if suffix == ".json" and is_coco_file(path):
        return _asked(read_coco([path], files, captions_only))
    if suffix == ".json" and not is_json_table(path):
        return read_karpathy(path, files, join_restval=options.join_restval, captions_only=captions_only)
    return _asked(read_tables([path], files, captions_only, asked=True))


def _asked(data: ImageCaptions | None) -> ImageCaptions:
    """What was read of a file that was asked for, in which a fault is an error."""
    assert data is not None
    return data


def _only(paths: list[Path], root: Path, what: str = "files of captions") -> Path:
    if len(paths) > 1:
        names = ", ".join(path.relative_to(root).as_posix() for path in paths[:4])
        raise UserError(f"{root}: {len(paths)} {what} ({names}); give the one to read")
    return paths[0]


def _table_files(files: PictureFolder) -> list[Path]:
    return [*table_files(files), *json_tables(files)]


# In this order a layout is looked for.
_KINDS = (
    _Kind(
        ("flickr8k",),
        token_files,
        lambda found, files, how: first_sound(
            found, files, partial(read_flickr8k, files=files, captions_only=how.captions_only)
        ),
    ),
    _Kind(
        ("karpathy",),
        karpathy_files,
        lambda found, files, how: first_sound(
            found,
            files,
            partial(read_karpathy, files=files, join_restval=how.join_restval, captions_only=how.captions_only),
        ),
    ),
    _Kind(
        ("coco",),
        coco_files,
        lambda found, files, how: read_coco(found, files, how.captions_only, asked=False),
    ),
    _Kind(
        ("wikipedia", "labelled_features"),
        labelled_mats,
        lambda found, files, how: read_labelled_mat(_only(found, files.root), how.captions_only),
        packed=True,
    ),
    _Kind(
        ("labelled_features",),
        feature_folders,
        lambda found, files, how: read_feature_folder(
            _only(found, files.root, "folders of features"), how.captions_only
        ),
        packed=True,
    ),
    _Kind(
        ("parquet",),
        picture_tables,
        lambda found, files, how: read_picture_tables(
            found, files.root, join_restval=how.join_restval, captions_only=how.captions_only
        ),
        packed=True,
    ),
    _Kind(
        (WEBDATASET,),
        shards,
        lambda found, files, how: read_shards(found, files.root, how.captions_only, how.key),
        packed=True,
    ),
    _Kind(
        ("table", "json", "scenes"),
        _table_files,
        lambda found, files, how: read_tables(found, files, how.captions_only, asked=False),
    ),
)
