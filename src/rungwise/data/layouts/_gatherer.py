"""Collects the names, captions and splits that a reader meets, and counts what is odd about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from rungwise.core import UserError, limits, variable
from rungwise.core.output import quoted
from rungwise.data._collection import NO_SPLIT, ImageCaptions, Issue
from rungwise.data._columns import Column, leaves, own_name, typed, usable
from rungwise.data.files import Picture
from rungwise.data.layouts._folder import PictureFolder, one_of_copies, picture_id, readable_name
from rungwise.data.layouts._rivals import is_path_of

_SPLITS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing"),
}
_CANONICAL = {word: name for name, words in _SPLITS.items() for word in words}

_WORD = re.compile(r"[^\W\d_]+")
_HALF_CHARACTER = "an escape such as \\ud83d is half a character; write both halves or the character itself"
_SHOWN, _MOST_SHOWN = 200, 20
"""Characters of a text, and number of texts, that an issue shows."""
_CONTROLS = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if not chr(code).isspace()}
"""Control characters, which no sentence holds, to blanks; those that are a kind of blank may stay."""


def split_name(text: str) -> str:
    """The name of a split in rungwise, whatever the data call it; unknown names stay as they are."""
    text = text.strip()
    return _CANONICAL.get(text.lower(), text) or NO_SPLIT


def split_in_file_name(path: Path) -> str | None:
    """The split that a file's name tells; None if it tells none."""
    words = path.stem.lower().replace("-", "_").replace(".", "_").split("_")
    return next((_CANONICAL[word] for word in words if word in _CANONICAL), None)


def split_in_words(name: str) -> str | None:
    """The split that one of the words in a name tells, whatever stands between them, such as numbers of shards."""
    return next((_CANONICAL[word] for word in _WORD.findall(name.lower()) if word in _CANONICAL), None)


def in_another_split(path: Path, root: Path, split: str | None, name: str) -> bool:
    """Whether the folders of a picture below the root tell another split than this one, which its name does not name.

    >>> [in_another_split(Path("x/val2017/1.jpg"), Path("x"), "train", name) for name in ("1.jpg", "val2017/1.jpg")]
    [True, False]
    """
    if not split or not path.is_relative_to(root):
        return False
    folders = path.relative_to(root).parts[: -len(PurePosixPath(name.replace("\\", "/")).parts) or None]
    told = {split_in_words(folder) for folder in folders} - {None}
    return bool(told) and split not in told


def clean_caption(text: str) -> tuple[str, str]:
    r"""A caption without blanks around it and control characters in it, and a note of what was replaced.

    Whatever reads captions calls this, so that no tokeniser, no model, no file and no terminal meets such characters.
    The text is empty if nothing usable is left of it.

    >>> clean_caption(" A dog. "), clean_caption("A \x1b[31mred\x07 dog.")
    (('A dog.', ''), ('A  [31mred  dog.', 'control characters, which became blanks'))
    """
    text = text.strip()
    if text.isprintable():
        return text, ""
    if is_torn(text):
        return "", _HALF_CHARACTER
    cleaned = text.translate(_CONTROLS)
    return (text, "") if cleaned == text else (cleaned.strip(), "control characters, which became blanks")


def shown(value: object) -> str:
    """A value of a file as messages show it, in one line: of a text the first 200 characters, in quotes.

    >>> shown("A dog."), shown(None), shown({}), len(shown("word " * 100))
    ("'A dog.'", 'None', 'an object', 202)
    """
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quoted(value, _SHOWN) if isinstance(value, str) else repr(value)[:_SHOWN]


def id_text(value: object) -> str:
    """An id that a file gives as a text or a whole number, also as a float such as 9.0; a TypeError if it is neither.

    >>> id_text(9), id_text(9.0), id_text("9"), id_text(2**53 + 1)
    ('9', '9', '9', '9007199254740993')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
        raise TypeError(f"{shown(value)} is no number or text")
    return str(value)


def left_out(captions: Iterable[str]) -> str:
    """The end of an issue, which lists the captions that are left out with it; empty where there are none.

    All that leaves captions out says so by this. It shows the first 200 characters of each, and of many the first 20.

    >>> left_out(["A dog.", ""]), left_out([])
    ("; left out: 'A dog.'", '')
    """
    texts = [text for text in captions if text.strip()]
    more = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return f"; left out: {', '.join(map(shown, texts[:_MOST_SHOWN]))}{more}" if texts else ""


def is_torn(text: str) -> bool:
    r"""Whether a text holds half a character (a lone surrogate), which no file in UTF-8 and no tokeniser takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


class Gatherer:
    """Collects images and captions in the order in which a reader meets them.

    Args:
        files: Folder in which pictures are looked for; None if only captions are wanted, so that any name is taken.
        strict: A caption id that stands twice is an error; otherwise the later caption gets an id of its own, and an
            issue says so.
        elsewhere: Pictures whose paths stand in files of captions that are not read, each with the file: no other name
            that only resembles such a picture means it.

    >>> gatherer = Gatherer(None)
    >>> dog = gatherer.image("dog.jpg", "captions.csv, line 2")
    >>> gatherer.caption(dog, " A dog. ", "captions.csv, line 2")
    >>> gatherer.caption(dog, "", "captions.csv, line 3")
    >>> data = gatherer.collection("pets", "table")
    >>> data.captions, data.issues
    (('A dog.',), (Issue(kind='empty caption', where='captions.csv, line 3', detail=''),))
    """

    def __init__(
        self, files: PictureFolder | None, *, strict: bool = True, elsewhere: Mapping[object, Path] | None = None
    ) -> None:
        self._files = files
        self._strict = strict
        self._ids: list[str] = []
        self._positions: dict[str, int] = {}
        self._position_of_path: dict[Path, int] = {}
        self._paths: list[Picture] = []
        self._names: dict[tuple[str, ...], int] = {}
        self._guessed: dict[int, str] = {}
        self._dropped: dict[int, str] = {}
        self._elsewhere = elsewhere or {}
        self._disputed: dict[Path, str] = {}
        self._further: dict[int, tuple[Path, int]] = {}
        self._named_depths: dict[Path, int] = {}
        self._place_of_guess: dict[int, str] = {}
        self._left_out: set[str] = set()
        self._splits: list[str] = []
        self._labels: list[list[str]] = []
        self._captions: list[str] = []
        self._owners: list[int] = []
        self._caption_ids: list[str | None] = []
        self._place_of_caption_id: dict[str, str] = {}
        self._issues: list[Issue] = []
        self._first_missing = ""
        self._columns: dict[str, dict[int, object]] = {}
        self._nested: dict[str, dict[int, object]] = {}
        self._differing: dict[str, list[str]] = {}
        self._unusable: dict[tuple[bool, str], str] = {}
        self._parse = False

    def image(
        self,
        reference: str,
        where: str,
        *alternatives: str,
        find: Callable[[str], Sequence[Path]] | None = None,
        base: Path | None = None,
        captions: Sequence[str] = (),
    ) -> int | None:
        """Position of the image with this id.

        A picture that a name only resembles (:meth:`PictureFolder.find`) is taken if nothing else is called by it.
        Where another name is its path, or resembles it too, the captions of the first become issues. So they do if the
        name has more folders than the path, although other names are paths, or fewer, although these have folders.

        Args:
            reference: The user's name of the picture, which becomes its id.
            where: File and place that named it.
            alternatives: Names to look for the file by, in this order, in place of the reference. The last one is as it
                was written.
            find: Looks for the pictures of a name in place of the whole folder's own look-up.
            base: Folder in which a name may be a path too, beside the whole folder.
            captions: Captions that are left out if there is no such picture; the issue lists them.

        Returns:
            None if there is no such picture, or no single one, or its name is no text; an issue says so.
        """
        names = alternatives or (reference,)
        # Two names of one id are two names, of which one may mean another picture.
        known = self._positions.get(reference) if self._files is None else self._names.get((reference, *names))
        if known is not None:
            return known
        if is_torn(reference):
            self.issue("malformed text", where, f"the name of a picture: {_HALF_CHARACTER}{left_out(captions)}")
            return None
        if self._files is None:
            return self._add(reference)
        look = find or self._files.find
        found: Sequence[Path] = one_of_copies(next(filter(None, map(look, names)), ()))
        if len(found) != 1:
            if found:
                some = ", ".join(map(self._shown, found[:3]))
                self.issue("ambiguous picture", where, f"{reference!r} may be {some}{left_out(captions)}")
                return None
            missing = f"no picture named {names[-1]!r}"
            self._first_missing = self._first_missing or f"{where}: {missing}"
            self.issue("missing picture", where, f"{missing}{left_out(captions)}")
            return None
        path, base = found[0], base or self._files.root
        is_path = is_path_of(names[0], path, base, self._files.root)
        if reason := self._disputes(path, None if is_path else names[0]):
            self.issue("ambiguous picture", where, f"{reference!r}: {reason}{left_out(captions)}")
            return None
        full = path.as_posix()
        self._left_out.add(full.removesuffix(f"/{reference}") if full.endswith(f"/{reference}") else "")
        position = self._names[reference, *names] = self._add_file(reference, path, where)
        if not is_path:
            self._guessed.setdefault(position, names[0])
        base = base if path.is_relative_to(base) else self._files.root
        if not is_path_of(names[-1], path, base, self._files.root):
            self._further.setdefault(position, (base, len(PurePosixPath(names[-1].replace("\\", "/")).parts)))
        elif path.is_relative_to(base):
            depth = len(path.parts) - len(base.parts)
            self._named_depths[base] = max(self._named_depths.get(base, 0), depth)
        return position

    def file(self, relative: Path) -> int:
        """Position of the image of a picture of the folder, which has its path as id."""
        assert self._files is not None
        return self._add_file(picture_id(relative), self._files.root / relative, readable_name(relative))

    def packed(self, reference: str, picture: Picture | None, where: str, captions: Sequence[str] = ()) -> int | None:
        """Position of the image with this id, whose picture was found before; a known id keeps its picture.

        Args:
            reference: The user's id of the image.
            picture: Place of the picture; None for every image if only captions are wanted.
            where: File and place that named it.
            captions: Captions that are left out if the id is no valid text; the issue lists them.

        Returns:
            None if the id is no valid text; an issue says so.
        """
        if (known := self._positions.get(reference)) is not None:
            return known
        if is_torn(reference):
            self.issue("malformed text", where, f"the name of a picture: {_HALF_CHARACTER}{left_out(captions)}")
            return None
        if picture is not None:
            self._paths.append(picture)
        return self._add(reference)

    def caption(self, image: int, text: str, where: str, caption_id: str | None = None) -> None:
        """Add a caption of the image at a position.

        An empty or invalid text becomes an issue instead; control characters become blanks, and an issue.

        Raises:
            UserError: If the caption id has been seen before and the gatherer is strict.
        """
        given, (text, odd) = text, clean_caption(text)
        if caption_id is not None and is_torn(caption_id):
            text, odd = "", f"the caption's id: {_HALF_CHARACTER}"
        if odd:
            self.issue("malformed text", where, f"{odd}{left_out(() if text else [given])}")
        elif not text:
            self.issue("empty caption", where)
        if not text:
            return
        if caption_id is not None:
            first = self._place_of_caption_id.setdefault(caption_id, where)
            if first is not where:
                why = f"caption id {caption_id!r} stands already in {first}"
                if self._strict:
                    raise UserError(f"{where}: {why}; make the ids unique or drop them")
                self.issue("repeated caption id", where, f"{why}; the caption {shown(text)} gets an id of its own")
                caption_id = None
        if image in self._guessed:
            self._place_of_guess[len(self._captions)] = where
        self._captions.append(text)
        self._owners.append(image)
        self._caption_ids.append(caption_id)

    def split(self, image: int, name: str, where: str) -> None:
        """Put an image into a split; of two different splits the first stays, and an issue says so."""
        name = split_name(name)
        if is_torn(name):
            self.issue("malformed text", where, f"the name of a split: {_HALF_CHARACTER}")
            return
        if self._splits[image] == NO_SPLIT:
            self._splits[image] = name
        elif name not in (NO_SPLIT, self._splits[image]):
            self.issue("conflicting splits", where, f"{name!r}, but {self._splits[image]!r} before; the first is kept")

    def label(self, image: int, labels: Iterable[str], where: str = "") -> None:
        """Add class labels to an image, each once; labels that are no valid text become issues."""
        for label in labels:
            if is_torn(label):
                self.issue("malformed text", where, f"a label: {_HALF_CHARACTER}")
            elif label not in self._labels[image]:
                self._labels[image].append(label)

    def column(self, image: int, name: str, cell: object, where: str, *, parse: bool = False) -> None:
        """Give an image a value in a further column; of several that differ the first stays, and one issue says so.

        Args:
            image: Position of the image.
            name: Name of the column, as written.
            cell: A text, number, truth value, date, or list of such; nothing happens where it is empty. Entries of an
                object become columns of their own (``attrs.season``), unless the table has a column of that name.
            where: File and place that named it.
            parse: The table holds only texts, so that numbers, truth values and lists are recognised by their form.
        """
        self._parse |= parse
        if not isinstance(cell, Mapping):
            self._put(self._columns, image, name, cell, where)
            return
        for inner, value in leaves(name, cell, limits().column_depth):
            self._put(self._nested, image, inner, value, where)

    def _put(self, columns: dict[str, dict[int, object]], image: int, name: str, cell: object, where: str) -> None:
        key = (columns is self._nested, name)
        if key in self._unusable:
            return
        if isinstance(cell, Mapping):
            self._unusable[key] = f"{where}: more objects inside one another than {variable('column_depth')} allows"
            return
        try:
            value = usable(cell)
        except TypeError as error:
            self._unusable[key] = f"{where}: {error}"
            return
        if value is None:
            return
        if is_torn("".join(value) if isinstance(value, tuple) else str(value)):
            self.issue("malformed text", where, f"column {name!r}: {_HALF_CHARACTER}")
            return
        held = columns.setdefault(name, {})
        if held.setdefault(image, value) != value:
            self._differing.setdefault(name, []).append(where)

    def issue(self, kind: str, where: str, detail: str = "") -> None:
        """Note something odd, to be listed with the collection."""
        self._issues.append(Issue(kind, where, detail))

    def collection(self, name: str, layout: str, *, unnamed: bool = True, may_be_empty: bool = False) -> ImageCaptions:
        """The collection of all that was gathered, then of the folder's pictures that nothing named.

        Args:
            name: Name of the collection.
            layout: Layout that was recognised.
            unnamed: Add the folder's pictures that nothing named.
            may_be_empty: Return an empty collection with its issues if nothing was gathered.

        Raises:
            UserError: If captions or splits named pictures and not one of them was found, or nothing was gathered.
        """
        self._drop()
        if not self._ids and not may_be_empty:
            if self._first_missing and self._files is not None:
                raise UserError(
                    f"{self._first_missing}, nor any other that is named there, in"
                    f" {self._files.root} or below; correct the names or give the folder that holds the pictures too"
                )
            first = self._issues[0] if self._issues else None
            reason = f", first {first.kind}: {first.where}{first.detail and f' ({first.detail})'}" if first else ""
            raise UserError(f"{name}: no usable caption{reason}; correct the file")
        if self._files is not None and unnamed:
            self._add_unnamed(self._files)
        ids = tuple(self._ids)
        columns = self._typed_columns(name)
        return ImageCaptions(
            image_ids=ids,
            captions=tuple(self._captions),
            image_of_caption=np.array(self._owners, dtype=np.int64),
            caption_ids=self._complete_caption_ids(ids),
            paths=tuple(self._paths),
            splits=tuple(self._splits),
            labels=tuple(map(tuple, self._labels)) if any(self._labels) else (),
            name=name,
            layout=layout,
            issues=tuple(self._issues),
            columns=columns,
        )

    def _typed_columns(self, collection: str) -> dict[str, Column]:
        for name, wheres in self._differing.items():
            more = f" and in {len(wheres) - 1} more rows" if len(wheres) > 1 else ""
            self.issue("differing values", wheres[0], f"column {name!r}{more}; the first of each picture is kept")
        for (_, name), why in self._unusable.items():
            self.issue("column left out", collection, f"{name!r} ({why}); give texts, numbers, truth values or lists")
        found = {name: held for name, held in self._columns.items() if (False, name) not in self._unusable}
        for name, held in self._nested.items():
            if name in self._columns:
                why = "stands inside an object, and the table has a column of that name, which is kept"
                self.issue("column left out", collection, f"{name!r} {why}")
            elif (True, name) not in self._unusable:
                found[name] = held
        columns: dict[str, Column] = {}
        for name, held in found.items():
            if not name.strip() or is_torn(name):
                continue
            if len(columns) == limits().table_columns:
                rest = f"{len(found) - len(columns)} beyond the first {len(columns)}, from {name!r} on"
                self.issue(
                    "columns left out", collection, f"{rest}; to keep them set {variable('table_columns')}={len(found)}"
                )
                break
            own = own_name(name, columns)
            if own != name.strip():
                self.issue("column renamed", collection, f"{name!r} is called {own!r} here, since its name is taken")
            columns[own] = typed(own, [held.get(position) for position in range(len(self._ids))], parse=self._parse)
        return columns

    def _shown(self, path: Path) -> str:
        assert self._files is not None
        return readable_name(path.relative_to(self._files.root) if path.is_relative_to(self._files.root) else path)

    def _disputes(self, path: Path, guess: str | None) -> str:
        """Why a picture cannot be told for a name that resembles it (``guess``); empty if nothing speaks against it.

        An image that was taken by another such name before is given up, as it is where the name is the path itself.
        """
        known = self._position_of_path.get(path)
        if known is None:
            if guess is None:
                return ""
            if file := self._elsewhere.get(path):
                return f"{self._shown(path)} is what {self._shown(file)} means exactly, which is not read"
            return self._disputed.get(path, "")
        before = self._guessed.get(known)
        if guess == before:
            return ""
        if before is None:
            return f"{self._shown(path)} is what {self._ids[known]!r} names"
        del self._position_of_path[path]
        if guess is None:
            self._dropped[known] = f"{self._shown(path)} is what another name means exactly"
            return ""
        self._dropped[known] = f"{self._shown(path)} is what {guess!r} may be too"
        self._disputed[path] = f"{self._shown(path)} is what {before!r} may be too"
        return self._disputed[path]

    def _drop(self) -> None:
        """Leave out the images that were given up, and list their captions."""
        for position in (self._guessed.keys() & self._further.keys()) - self._dropped.keys():
            (base, depth), path = self._further[position], Path(str(self._paths[position]))
            named, held = self._named_depths.get(base, 0), len(path.relative_to(base).parts)
            if named and (depth > held or (depth < held and named > 1)):
                self._dropped[position] = f"{self._shown(path)} lies elsewhere, and other names are whole paths"
                del self._position_of_path[path]
        if not self._dropped:
            return
        self._first_missing = ""  # pictures were found, if none that can be told
        keep = [position for position in range(len(self._ids)) if position not in self._dropped]
        place = {old: new for new, old in enumerate(keep)}
        kept: list[int] = []
        lost: dict[tuple[int, str], list[str]] = {(position, ""): [] for position in self._dropped}
        for at, (text, owner) in enumerate(zip(self._captions, self._owners, strict=True)):
            if owner in place:
                kept.append(at)
            else:
                lost.pop((owner, ""), None)
                lost.setdefault((owner, self._place_of_guess[at]), []).append(text)
        for (owner, where), texts in lost.items():
            reason = f"{self._ids[owner]!r}: {self._dropped[owner]}{left_out(texts)}"
            self.issue("ambiguous picture", where or self._ids[owner], reason)
        self._captions = [self._captions[at] for at in kept]
        self._caption_ids = [self._caption_ids[at] for at in kept]
        self._owners = [place[self._owners[at]] for at in kept]
        self._paths = [self._paths[position] for position in keep]
        self._ids, self._splits = [self._ids[p] for p in keep], [self._splits[p] for p in keep]
        self._labels = [self._labels[p] for p in keep]
        self._columns, self._nested = (
            {
                name: {place[position]: value for position, value in held.items() if position in place}
                for name, held in columns.items()
            }
            for columns in (self._columns, self._nested)
        )
        self._positions = {one: place[at] for one, at in self._positions.items() if at in place}
        self._position_of_path = {path: place[at] for path, at in self._position_of_path.items()}
        self._dropped = {}

    def _add(self, image_id: str) -> int:
        position = self._positions[image_id] = len(self._ids)
        self._ids.append(image_id)
        self._splits.append(NO_SPLIT)
        self._labels.append([])
        return position

    def _add_file(self, image_id: str, path: Path, where: str) -> int:
        if (known := self._position_of_path.get(path)) is not None:
            if image_id != self._ids[known]:
                self.issue("picture under two names", where, f"{image_id!r} is the file of {self._ids[known]!r}")
            self._positions[image_id] = known
            return known
        position = self._position_of_path[path] = self._add(image_id)
        self._paths.append(path)
        return position

    def _add_unnamed(self, files: PictureFolder) -> None:
        """Add pictures that nothing named, without the one common folder that the data leave out of the other names."""
        left_out = next(iter(self._left_out)) if len(self._left_out) == 1 else ""
        common = Path(left_out) if left_out else files.root
        for relative in files.pictures:
            path = files.root / relative
            if path not in self._position_of_path:
                short = picture_id(path.relative_to(common)) if path.is_relative_to(common) else ""
                taken = not short or short in self._positions
                self._add_file(picture_id(relative) if taken else short, path, str(path))

    def _complete_caption_ids(self, image_ids: tuple[str, ...]) -> tuple[str, ...]:
        if not self._place_of_caption_id:
            return ()
        numbers = [0] * len(image_ids)
        complete = []
        for given, owner in zip(self._caption_ids, self._owners, strict=True):
            while given is None and (own := f"{image_ids[owner]}#{numbers[owner]}") in self._place_of_caption_id:
                numbers[owner] += 1
            complete.append(own if given is None else given)
            numbers[owner] += 1
        return tuple(complete)
