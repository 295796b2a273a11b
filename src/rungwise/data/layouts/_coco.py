"""Captions as COCO publishes them: JSON with a list ``images`` and a list ``annotations``.

**Layout**: ``captions_train2014.json``, ``captions_val2017.json`` and the like, often several in a folder
``annotations`` beside the pictures (``train2014``, ``val2017``, ``images``, or anywhere below). An entry of ``images``
has an ``id`` and a ``file_name``, one of ``annotations`` an ``image_id`` and a ``caption``. Files are recognised by
these keys. The split of an image is what its entry says (``split``), else what the file's name says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rungwise.core import UserError, opened_file, parse_json, unreadable
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import read_text
from rungwise.data.layouts._folder import PictureFolder, folder_name, readable_name
from rungwise.data.layouts._gatherer import Gatherer, id_text, in_another_split, left_out, shown, split_in_words
from rungwise.data.layouts._rivals import claims, leave_out, named_by_path, pictures_named

_KEYS = (b'"images"', b'"annotations"', b'"file_name"', b'"image_id"', b'"caption"')
_END_KEYS = _KEYS[2:]
"""Keys of the entries; the keys of both lists, which may stand in the middle of a large file, are not searched for."""
_END_BYTES = 1 << 16
_PIECE = 1 << 24
_ANNOTATIONS, _CAPTIONS = "annotations", "captions_"


def coco_files(files: PictureFolder) -> list[Path]:
    """The JSON files below a folder whose beginning and end show the keys of captions in COCO's layout."""
    found = []
    for path in files.others:
        if path.suffix.lower() == ".json":
            ends = files.head(path, _END_BYTES) + files.tail(path, _END_BYTES)
            if all(key in ends for key in _END_KEYS):
                found.append(files.root / path)
            elif path.name.startswith(_CAPTIONS):
                files.leave_out(path, "named as COCO names its captions, but holds none; copy or fetch it again")
    return found


def is_coco_file(path: Path) -> bool:
    """Whether the keys of captions in COCO's layout stand anywhere in a file; a UserError if it cannot be read."""
    missing, before = set(_KEYS), b""
    with opened_file(path, "text_bytes") as file:
        try:
            while missing and (piece := file.read(_PIECE)):
                text = before + piece
                missing -= {key for key in missing if key in text}
                before = text[-max(map(len, _KEYS)) :]
        except OSError as error:
            raise unreadable(path, error) from error
    return not missing


def folder_of_pictures(path: Path) -> Path:
    """The folder to search for pictures of a file of captions: its own, or the one around a folder ``annotations``."""
    return path.parent.parent if path.parent.name == _ANNOTATIONS else path.parent


def read_coco(
    paths: Sequence[Path],
    files: PictureFolder,
    captions_only: bool = False,
    *,
    unnamed: bool = True,
    asked: bool = True,
) -> ImageCaptions | None:
    """One file of captions, or several of different pictures, with the pictures that lie anywhere below the folder.

    Image ids and caption ids are COCO's own ``id``; 9.0 and ``"9"`` mean 9. Where the folder holds no picture at all,
    the collection has none either: its images are features of elsewhere. Single entries that cannot be read become
    issues: the captions of an id that stands for two files go to neither of them.

    Args:
        paths: The JSON files.
        files: The folder with the pictures.
        captions_only: Do not look for pictures.
        unnamed: Add the folder's pictures that no file names.
        asked: The user gave these files, so that a fault in one of them is an error. Files that were only found are
            left out, and become issues of the folder, where they cannot be read, name none of the pictures, or name
            pictures that another one names too; of those the file that names most pictures is read.

    Returns:
        None if no file that was only found can be read.

    Raises:
        UserError: If the JSON of a file that was asked for is broken, it holds no captions, or there are pictures but
            none of those that it names.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "captions_val2017.json"
    >>> _ = file.write_text('''{"images": [{"id": 42, "file_name": "000000000042.jpg"}],
    ...     "annotations": [{"id": 7, "image_id": 42.0, "caption": "A dog."}]}''')
    >>> data = read_coco([file], PictureFolder(file.parent))
    >>> data.image_ids, data.caption_ids, data.splits, data.paths
    (('42',), ('7',), ('val',), ())
    """
    look = bool(files.pictures) and not captions_only
    sound = []
    for path in paths:
        try:
            sound.append(_File(path, files, look))
        except UserError as error:
            if asked:
                raise
            leave_out(files, path, error)
    usable = sound if asked else _of_different_pictures(sound, files)
    if not usable:
        return None
    unread = {one.path: one.named for one in sound if one not in usable}
    gatherer = Gatherer(files if look else None, strict=False, elsewhere=named_by_path(unread))
    for one in usable:
        one.gather(gatherer)
    return gatherer.collection(folder_name(files.root), "coco", unnamed=unnamed)


class _File:
    """One file, and the pictures that it names.

    Attributes:
        path: The file.
        images: Name, split and place of each image by its id.
        named: What the file names, to compare it with others: pictures, or splits and names if none are looked for.
            Each with whether that is the path of the picture.
        before: What stands before each id, where another file has the same ids for other pictures.
    """

    def __init__(self, path: Path, files: PictureFolder, look: bool) -> None:
        self.path, self._files = path, files
        self.before = ""
        self._split = split_in_words(path.stem) or ""
        # As published, the pictures of captions_val2017.json lie in val2017, and names may come again in other folders.
        self._beside = path.stem.rpartition("_")[2]
        self._base = files.root / self._beside
        self._has_folder = any(self._beside in picture.parts[:-1] for picture in files.pictures)
        images, self._annotations = _lists(path)
        self._texts: dict[str, list[str]] = {}
        for annotation in self._annotations:
            if (one := _id(annotation, "image_id")) and isinstance(text := annotation.get("caption"), str):
                self._texts.setdefault(one, []).append(text)
        self._issues: list[tuple[str, str, str]] = []
        self.images: dict[str, tuple[str, str, str]] = {}
        twice: dict[str, None] = {}
        for number, image in enumerate(images):
            where = f"{path}, images[{number}]"
            image_id, name = _id(image, "id"), image.get("file_name") if isinstance(image, dict) else None
            if not image_id or not isinstance(name, str) or not name.strip():
                why = (
                    f"needs 'id' (a number or a text) and 'file_name' (a text){left_out(self._texts.get(image_id, ()))}"
                )
                self._issues.append(("malformed entry", where, why))
                continue
            given = image.get("split")
            split = given if isinstance(given, str) and given.strip() else self._split
            first, _, place = self.images.setdefault(image_id, (name, split, where))
            if place is not where:
                why = f"id {image_id} stands already for {first!r}"
                if first != name:
                    twice[image_id] = None
                    why = f"{why}, not {name!r}{left_out(self._texts.get(image_id, ()))}"
                self._issues.append(("repeated id", where, why))
        for one in twice:  # nobody knows which file its captions mean
            del self.images[one]
        self.named: set[tuple[object, bool]] = {((split, name), True) for name, split, _ in self.images.values()}
        if look:
            found = {name: self.find(name) for name, _, _ in self.images.values()}
            self._base, self.named = pictures_named(found, self._base, files.root)

    def find(self, name: str) -> Sequence[Path]:
        """The pictures that the file may mean by a name: those in the folder of its split, and in no other split's."""
        found, root = self._files.find(f"{self._beside}/{name}"), self._files.root
        if not self._has_folder:
            found = found or self._files.find(name)
            return [one for one in found if not in_another_split(one, root, self._split, name)]
        inside = [one for one in found if one.is_relative_to(root) and self._beside in one.relative_to(root).parts[:-1]]
        return inside or (self._files.exact(name) if "/" in name else [])

    def gather(self, gatherer: Gatherer) -> None:
        """Add all images and captions."""
        for issue in self._issues:
            gatherer.issue(*issue)
        positions: dict[str, int | None] = {}
        for image_id, (name, split, where) in self.images.items():
            texts = self._texts.get(image_id, ())
            position = gatherer.image(
                f"{self.before}{image_id}", where, name, find=self.find, base=self._base, captions=texts
            )
            positions[image_id] = position
            if position is not None:
                gatherer.split(position, split, where)
        for number, annotation in enumerate(self._annotations):
            where = f"{self.path}, annotations[{number}]"
            image_id = _id(annotation, "image_id")
            text = annotation.get("caption", KeyError) if isinstance(annotation, dict) else KeyError
            if not image_id or not (text is None or isinstance(text, str)):
                why = f"needs 'image_id' (a number or a text) and 'caption' (a text){left_out(_said(annotation))}"
                gatherer.issue("malformed entry", where, why)
            elif image_id not in positions:
                why = f"no entry of 'images' has the id {image_id}{left_out([text or ''])}"
                gatherer.issue("caption of no picture", where, why)
            elif (owner := positions[image_id]) is not None:
                given = _id(annotation, "id")
                if not given and annotation.get("id") is not None:
                    gatherer.issue(
                        "malformed entry", where, "'id' is no number or text; the caption gets an id of its own"
                    )
                gatherer.caption(owner, text or "", where, f"{self.before}{given}" if given else None)


def _of_different_pictures(found: list[_File], files: PictureFolder) -> list[_File]:
    """Of files that were only found those that name pictures, and none that another one names too.

    A name that only resembles a picture is no rival to its path: of these two the path counts, picture by picture.
    """
    of_file = claims({one: one.named for one in found})
    pictures: dict[object, _File] = {}
    ids: set[str] = set()
    taken = []
    for one in sorted(found, key=lambda one: (-len(one.named), len(one.path.parts), len(one.path.name), str(one.path))):
        named, rival = of_file[one]
        rival = rival or next((pictures[picture] for picture in named if picture in pictures), None)
        if not one.named:
            leave_out(files, one.path, "names no picture of the folder")
        elif rival is not None:
            other = readable_name(rival.path.relative_to(files.root))
            leave_out(files, one.path, f"names pictures that {other} names too; that one is read", instead=True)
        else:
            if not ids.isdisjoint(one.images):
                one.before = f"{readable_name(one.path.relative_to(files.root).with_suffix(''))}/"
            ids.update(one.images)
            pictures |= dict.fromkeys(named, one)
            taken.append(one)
    return [one for one in found if one in taken]


def _lists(path: Path) -> tuple[list[Any], list[Any]]:
    # Programs that lack a value write NaN for it.
    content = parse_json(read_text(path), path, finite=False)
    found = []
    for key in ("images", "annotations"):
        value = content.get(key) if isinstance(content, dict) else None
        if not isinstance(value, list) or not value:
            raise UserError(f"{path}: has no list {key!r}, or an empty one; give a file of captions in COCO's layout")
        found.append(value)
    if not any("caption" in annotation for annotation in found[1] if isinstance(annotation, dict)):
        raise UserError(f"{path}: its list 'annotations' holds no captions; give a file such as captions_val2017.json")
    return found[0], found[1]


def _id(item: object, key: str) -> str:
    """An id of an entry; empty where it has none."""
    try:
        return id_text(item.get(key)) if isinstance(item, dict) else ""
    except TypeError:
        return ""


def _said(annotation: object) -> list[str]:
    """What an odd annotation says, for its issue."""
    caption = annotation.get("caption") if isinstance(annotation, dict) else annotation
    if isinstance(caption, list):
        return [text for text in caption if isinstance(text, str)]
    return [caption if isinstance(caption, str) else shown(caption)]
