"""Reading a collection from a path; the layout of its pictures and captions is recognised by its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rungwise.core import UserError, require_there, user_path
from rungwise.core.network import address_of, objects_below
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.files import PackedPicture
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
    PictureFolder,
    coco_files,
    features_file,
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

_ARROW_SUFFIX = ".arrow"


def read(path: Path | str, *, join_restval: bool = False, captions_only: bool = False) -> ImageCaptions:
    r"""Read a collection of images and captions; its layout is recognised by its files.

    In this order: the precomputed features of VSE++ and SCAN (``train_ims.npy`` and ``train_caps.txt`` and so on),
    Flickr8K as published (a ``*.token.txt`` file), one of Karpathy's JSON files, captions as COCO publishes them
    (``captions_train2017.json``), labelled features in one MAT file (``raw_features.mat`` of the Wikipedia set),
    labelled features with a file for each split and side (``train_images.npy``, ``train_texts.csv`` and so on),
    Parquet files that hold the pictures themselves, as ``datasets`` of Hugging Face writes them, WebDataset shards (tar
    archives), a table of captions (CSV with commas or semicolons, TSV, JSON lines, Parquet), captions in simple JSON, a
    bare folder of pictures. The file that holds the captions may be given itself where a folder holds several; its
    pictures are then looked for in its own folder and below, and those of a file of COCO's folder ``annotations``
    beside that. A file of precomputed or labelled features stands for its split.

    Where no pictures are, ``features.npy`` takes their place, with one row for each image (see
    :mod:`rungwise.data.layouts._feature_files`). Where there are both, give that file itself to read its rows.

    Args:
        path: A folder, or the file that holds the captions or the features.
        join_restval: Count the split ``restval`` of COCO as ``train``.
        captions_only: Look neither for pictures nor for features: captions of pictures that are not there are read too.

    Returns:
        The collection. Images in no split are in ``"none"``; what was skipped or doubted is in ``issues``: among it
        folders and files that may not be read, and pipes, devices, sockets and broken links, of which none is opened.

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
    path = user_path(path)
    if address := address_of(path):
        return _read_objects(address, join_restval, captions_only)
    require_there(path)
    if precomputed_splits(path):
        return read_precomputed(path, captions_only)
    if not path.is_dir():
        _check_kind(path)
        if split := split_of_rows(path):
            return read_feature_folder(path.parent, captions_only, split)
    is_coco = path.suffix.lower() == ".json" and not path.is_dir() and is_coco_file(path)
    files = PictureFolder(path if path.is_dir() else folder_of_pictures(path) if is_coco else path.parent)
    is_rows = path.suffix.lower() == ".npy"
    captions = None if path.is_dir() or is_rows else path
    rows = None if captions_only else path if is_rows else features_file(files)
    take_rows = rows is not None and (is_rows or not files.pictures)
    without = captions_only or take_rows
    data: ImageCaptions | None
    if is_coco:  # the folder around its own may hold the pictures of other splits too
        data = read_coco([path], files, without, unnamed=path.parent == files.root)
    else:
        data = _read_captions(files, captions, join_restval, without)
    if rows is not None and take_rows:
        data = read_features(rows) if data is None else with_features(data, rows)
    else:
        if data is None and not files.pictures:
            _refuse_what_is_known(files)
        data = read_folder(files) if data is None else data
    issues = [] if captions_only else files.issues
    if rows is not None and not take_rows:
        issues.append(
            Issue("features left out", str(rows), "there are pictures too; give this file itself to read its rows")
        )
    if path.is_dir() and files.pictures and not (captions_only or _reads_files(data)):
        first, more = files.root / files.pictures[0], len(files.pictures) - 1
        issues.append(
            Issue("pictures left out", str(first), f"with {more} more; give the folder that holds them alone")
        )
    if path.is_dir() and data.layout in ("table", "json", "folder") and not captions_only:
        known = {issue.where for issue in issues}
        known |= {readable_name(one.relative_to(path)) for one in json_tables(files) if data.layout == "json"}
        issues += [issue for issue in ignored_files(files) if issue.where not in known]
    return replace(data, issues=(*data.issues, *issues)) if issues else data


def _read_objects(address: str, join_restval: bool, captions_only: bool) -> ImageCaptions:
    """The pictures of Parquet files or WebDataset shards in an object store."""
    objects = [Path(one) for one in objects_below(address)]
    root = Path(address) if objects != [Path(address)] else Path(address).parent
    if tables := [one for one in objects if one.suffix.lower() == PARQUET_SUFFIX and holds_pictures(one)]:
        return read_picture_tables(tables, root, join_restval=join_restval, captions_only=captions_only)
    if archives := [one for one in objects if one.suffix.lower() == SHARD_SUFFIX]:
        return read_shards(archives, root, captions_only)
    raise UserError(
        f"{address}: holds neither Parquet files with pictures nor WebDataset shards ({SHARD_SUFFIX}); of an object"
        " store nothing else is read, so pack the pictures into such files, or copy them to a folder"
    )


def _reads_files(data: ImageCaptions) -> bool:
    return data.features is None and not any(isinstance(picture, PackedPicture) for picture in data.paths)


def _check_kind(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        raise UserError(f"{path}: is a single picture; give the folder that holds it")
    _refuse_file(path)
    known = {".json", ".npy", ".txt", MAT_SUFFIX, SHARD_SUFFIX, *TABLE_SUFFIXES}
    if not (suffix in known or is_token_file(path)):
        kinds = ", ".join(sorted(known))
        raise UserError(f"{path}: not a kind of file that holds captions ({kinds}); give such a file or a folder")


def _refuse_what_is_known(files: PictureFolder) -> None:
    """Raise a UserError that names files of a known kind in a folder where nothing can be read."""
    if inside := folders_of_splits(files):
        raise UserError(f"{files.root}: precomputed features lie in {', '.join(inside[:4])}; give the folder to read")
    for path in files.others:
        _refuse_file(files.root / path)
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


def _read_captions(
    files: PictureFolder, path: Path | None, join_restval: bool, captions_only: bool
) -> ImageCaptions | None:
    """The captions of a file, or if none is given those of the folder; None if it has none."""
    if path is None:
        if tokens := token_files(files):
            path = _only(tokens, files.root)
        elif described := karpathy_files(files):
            path = _only(described, files.root)
        elif annotated := coco_files(files):
            return read_coco(annotated, files, captions_only)
        elif arrays := labelled_mats(files):
            return read_labelled_mat(_only(arrays, files.root), captions_only)
        elif folders := feature_folders(files):
            return read_feature_folder(_only(folders, files.root, "folders of features"), captions_only)
        elif packed := picture_tables(files):
            return read_picture_tables(packed, files.root, join_restval=join_restval, captions_only=captions_only)
        elif archives := shards(files):
            return read_shards(archives, files.root, captions_only)
        elif tables := table_files(files) or json_tables(files):
            return read_tables(tables, files, captions_only)
        else:
            return None
    if is_token_file(path):
        return read_flickr8k(path, files, captions_only)
    suffix = path.suffix.lower()
    if suffix == MAT_SUFFIX:
        return read_labelled_mat(path, captions_only)
    if suffix == SHARD_SUFFIX:
        return read_shards([path], path.parent, captions_only)
    if suffix == PARQUET_SUFFIX and holds_pictures(path):
        return read_picture_tables([path], path.parent, join_restval=join_restval, captions_only=captions_only)
    if suffix == ".json" and not is_json_table(path):
        return read_karpathy(path, files, join_restval=join_restval, captions_only=captions_only)
    return read_tables([path], files, captions_only)


def _only(paths: list[Path], root: Path, what: str = "files of captions") -> Path:
    if len(paths) > 1:
        names = ", ".join(path.relative_to(root).as_posix() for path in paths[:4])
        raise UserError(f"{root}: {len(paths)} {what} ({names}); give the one to read")
    return paths[0]
