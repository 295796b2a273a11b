"""Images with captions: what readers return, and what training, evaluation and indexing take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import facts_html, in_few_lines, one_line, short_repr, some_of
from rungwise.data._columns import Column, kind_of
from rungwise.data.files import (
    CollectionRow,
    FeatureRows,
    Picture,
    collection_dataset,
    collection_frame,
    handed_out,
    write_collection,
)

NO_SPLIT = "none"
"""The split of a picture that the data put into no split."""

NOT_READ = "not read"
"""Kind of the issues that count files which are not read, a sort a line."""

_MAPPINGS = ("columns", "fallbacks")
"""Fields of a collection that are mappings, which nobody may write to."""


@dataclass(frozen=True)
class Issue:
    """Something odd in the data: an item that a reader skipped, or kept although something about it is odd.

    Attributes:
        kind: A short name, equal for issues that belong together, such as ``"missing picture"``.
        where: File and place, such as ``"captions.csv, line 3"``, or the picture's id.
        detail: The fault, in a few words.
    """

    kind: str
    where: str
    detail: str = ""


@dataclass(frozen=True)
class CollectionSource:
    """Where a collection was read from, and how: what :func:`rungwise.data.read_again` needs to read it again alike.

    Attributes:
        paths: The folders or files that were given, as absolute paths, or as addresses of an object store.
        layouts: Layout of each that was recognised or asked for, such as ``"folder"``; empty where none is known yet.
        files: Files of captions that were read in each of them, relative to it; empty where there are none, or where a
            file was given itself.
        names: Name of each of several, which stands before the ids of its pictures; empty where there is only one.
        captions: File of the captions that was asked for; empty where the folder's own were read.
        key: What members of tar archives share that belong to one picture: the name to the first dot or to the last.
        exclude: Patterns of files and folders that are left out.
    """

    paths: tuple[str, ...]
    layouts: tuple[str, ...] = ()
    files: tuple[tuple[str, ...], ...] = ()
    names: tuple[str, ...] = ()
    captions: str = ""
    key: Literal["dot", "stem"] = "dot"
    exclude: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that hold the collection: those that were given, or the ones around files that were given."""
        return tuple(path.parent if path.is_file() else path for path in map(Path, self.paths))


@dataclass(frozen=True)
class ImageCaptions:
    """Images, captions, and which caption was written for which image.

    Images and captions are addressed by position; the user's own ids are kept and stand in every result. An image may
    have any number of captions, none included. What a model reads of an image is a picture file or a row of features.

    Attributes:
        image_ids: (images,) the user's ids, unique.
        captions: (captions,) texts.
        image_of_caption: (captions,) int64, the position of each caption's image.
        caption_ids: (captions,) the user's ids, unique; ``"<image id>#<n>"`` where the data give none.
        paths: (images,) files of the pictures, or their places in larger files; empty when there are none.
        features: (images, D) vectors or (images, R, D) regions in place of picture files; None when there are none.
        text_features: (captions, D) vectors in place of words, where the data have such; None when there are none.
        splits: (images,) such as ``"train"``, ``"val"``, ``"test"`` or :data:`NO_SPLIT`; empty means no splits at all.
        labels: (images,) class labels of each image, several allowed; empty when there are none.
        columns: The further columns of the user's table by name, each with (images,) values: texts, numbers, truth
            values or tuples of texts, None where an image has none.
        fallbacks: Such columns that count for an image only where its own file does not say the same.
        looked_outside: Whether a name of a picture led out of the folders of ``source``, so that files elsewhere decide
            what the collection holds.
        name: Name of the collection in tables and results.
        layout: The layout a reader recognised, such as ``"flickr8k"``.
        issues: Items that the reader skipped or doubted.
        source: Where all of it was read from; None of a part of it, and of one that no reader made.

    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat", "a sleeping cat"), np.array([0, 1, 1]))
    >>> data.caption_ids
    ('a#0', 'b#0', 'b#1')
    >>> [positions.tolist() for positions in data.captions_of_image]
    [[0], [1, 2]]
    >>> rows = FeatureRows(np.zeros((2, 36, 2048), np.float16))
    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]), features=rows)
    >>> data.select([1]).pictures.shape, data.has_pictures
    ((1, 36, 2048), True)
    """

    image_ids: tuple[str, ...]
    captions: tuple[str, ...]
    image_of_caption: NDArray[np.int64]
    caption_ids: tuple[str, ...] = ()
    paths: tuple[Picture, ...] = ()
    splits: tuple[str, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    name: str = "collection"
    layout: str = ""
    issues: tuple[Issue, ...] = field(default=(), repr=False)
    features: FeatureRows | None = field(default=None, repr=False)
    text_features: FeatureRows | None = field(default=None, repr=False)
    columns: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    source: CollectionSource | None = field(default=None, repr=False)
    fallbacks: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    looked_outside: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        owners = np.asarray(self.image_of_caption, dtype=np.int64)
        object.__setattr__(self, "image_of_caption", owners)
        self._seal()
        if owners.shape != (len(self.captions),):
            raise UserError(
                f"{self.name}: {len(self.captions)} captions but image_of_caption has shape {owners.shape};"
                " give one image position per caption"
            )
        if (odd := next((at for at, one in enumerate(self.captions) if not isinstance(one, str)), None)) is not None:
            got = type(self.captions[odd]).__name__
            raise UserError(f"{self.name}: caption {odd} is {got}; give texts")
        if owners.size and not (owners.min() >= 0 and owners.max() < len(self.image_ids)):
            raise UserError(
                f"{self.name}: image_of_caption runs {owners.min()}..{owners.max()} but there are"
                f" {len(self.image_ids)} images, so positions must lie in 0..{len(self.image_ids) - 1}"
            )
        if not self.caption_ids:
            object.__setattr__(self, "caption_ids", _numbered(self.image_ids, owners))
        images, captions = len(self.image_ids), len(self.captions)
        for what, values, count in (
            ("caption ids", self.caption_ids or None, captions),
            ("paths", self.paths or None, images),
            ("splits", self.splits or None, images),
            ("labels", self.labels or None, images),
            ("rows of features", self.features, images),
            ("rows of text features", self.text_features, captions),
            *(
                (f"values of column {name!r}", column or None, images)
                for name, column in chain(self.columns.items(), self.fallbacks.items())
            ),
        ):
            if values is not None and len(values) != count:
                raise UserError(f"{self.name}: {len(values)} {what} for {count} items; give one each, or none at all")
        if self.features is not None and self.paths:
            raise UserError(f"{self.name}: has both picture files and features; give one of them")
        for what, ids in (("image id", self.image_ids), ("caption id", self.caption_ids)):
            if (twice := _first_duplicate(ids)) is not None:
                raise UserError(f"{self.name}: {what} {twice!r} stands twice; ids must be unique")

    def __getstate__(self) -> dict[str, Any]:
        """All fields as values that pickle and ``copy.deepcopy`` take; pictures in memory bring their bytes along."""
        return {**vars(self), **{name: dict(getattr(self, name)) for name in _MAPPINGS}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self._seal()

    def _seal(self) -> None:
        for name in _MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __repr__(self) -> str:
        return in_few_lines(self._title(), self._facts())

    def _repr_html_(self) -> str:
        return facts_html(self._title(), self._facts())

    def _title(self) -> str:
        images, captions = len(self.image_ids), len(self.captions)
        per_image = f", {captions / images:.3g} an image" if images else ""
        return f"{one_line(self.name, 60)}: {images:,} images, {captions:,} captions{per_image}"

    def _facts(self) -> list[tuple[str, str]]:
        images, captions = len(self.image_ids), len(self.captions)
        splits = [f"{name} {count:,}" for name, count in Counter(self.splits).items()]
        labels = Counter(label for own in self.labels for label in own)
        kinds = Counter(one.kind for one in self.issues)
        rows = [f"{' x '.join(map(str, one.shape))} features" if one is not None else "" for one in self._feature_rows]
        has_files = f"{images:,} files" if self.paths else "none"
        return [
            ("layout", one_line(self.layout, 40)),
            ("splits", some_of(splits) if splits else ""),
            ("pictures", rows[0] or has_files),
            ("text features", rows[1]),
            ("images", some_of(self.image_ids) if images else ""),
            ("captions", repr(one_line(self.captions[0], 90)) + (", ..." if captions > 1 else "") if captions else ""),
            ("labels", some_of([f"{name} {count:,}" for name, count in labels.most_common(20)]) if labels else ""),
            ("columns", some_of(tuple(self.columns)) if self.columns else ""),
            ("issues", some_of([f"{kind} {count:,}" for kind, count in kinds.items()]) if kinds else ""),
        ]

    def __len__(self) -> int:
        """Number of images."""
        return len(self.image_ids)

    @property
    def pictures(self) -> tuple[Picture, ...] | FeatureRows:
        """(images,) what a model reads of each image: files or rows of features; empty with captions alone."""
        return self.paths if self.features is None else self.features

    @property
    def _feature_rows(self) -> tuple[FeatureRows | None, FeatureRows | None]:
        return self.features, self.text_features

    @property
    def texts(self) -> tuple[str, ...] | FeatureRows:
        """(captions,) what a model reads of each caption: its words, or rows of features in place of words."""
        return self.captions if self.text_features is None else self.text_features

    @property
    def has_pictures(self) -> bool:
        """Whether a model has anything to read of the images, be it files or rows of features."""
        return len(self.pictures) > 0

    @property
    def captions_of_image(self) -> list[NDArray[np.int64]]:
        """(images,) the caption positions of each image, ascending."""
        order = np.argsort(self.image_of_caption, kind="stable")
        counts = np.bincount(self.image_of_caption, minlength=len(self.image_ids))
        return np.split(order, np.cumsum(counts)[:-1]) if len(self.image_ids) else []

    @property
    def split_names(self) -> tuple[str, ...]:
        """The splits that occur, in order of first appearance."""
        return tuple(dict.fromkeys(self.splits))

    @property
    def column_kinds(self) -> dict[str, str]:
        """Kind of each further column: ``texts``, ``numbers``, ``truth values`` or ``lists of texts``."""
        return {name: kind_of(column) for name, column in self.columns.items()}

    def positives(self, images: NDArray[np.int64], captions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(len(images), len(captions)) bool: caption was written for image."""
        same: NDArray[np.bool_] = np.asarray(images)[:, None] == self.image_of_caption[np.asarray(captions)][None, :]
        return same

    def split(self, *names: str) -> ImageCaptions:
        """The images of the named splits with their captions, in their present order.

        Raises:
            UserError: If a split does not occur; the message names those that do.
        """
        for name in names:
            if name not in self.splits:
                known = ", ".join(self.split_names) or "no splits at all"
                raise UserError(f"{self.name}: no picture is in split {name!r}; it has {known}")
        keep = [position for position, split in enumerate(self.splits) if split in names]
        return self.select(keep, name=f"{self.name}/{'+'.join(names)}")

    def select(self, images: Sequence[int] | NDArray[np.int64], name: str | None = None) -> ImageCaptions:
        """The images at these positions, in this order, with their captions grouped by image.

        Raises:
            UserError: If a position is a text, as the name of a split is.
        """
        positions: list[Any] = [images] if isinstance(images, str) else list(images)
        if positions and isinstance(first := positions[0], str):
            raise UserError(f"{self.name}: select() takes positions, got {first!r}; .split({first!r}) takes a split")
        chosen = [int(image) for image in positions]
        of_image = self.captions_of_image
        captions = [int(caption) for image in chosen for caption in of_image[image]]
        owners = np.repeat(np.arange(len(chosen)), [len(of_image[image]) for image in chosen])
        return ImageCaptions(
            image_ids=tuple(self.image_ids[i] for i in chosen),
            captions=tuple(self.captions[c] for c in captions),
            image_of_caption=owners,
            caption_ids=tuple(self.caption_ids[c] for c in captions),
            paths=tuple(self.paths[i] for i in chosen) if self.paths else (),
            splits=tuple(self.splits[i] for i in chosen) if self.splits else (),
            labels=tuple(self.labels[i] for i in chosen) if self.labels else (),
            name=name or self.name,
            layout=self.layout,
            issues=self.issues,
            features=None if self.features is None else self.features.take(chosen),
            text_features=None if self.text_features is None else self.text_features.take(captions),
            columns={name: tuple(column[i] for i in chosen) for name, column in self.columns.items()},
            fallbacks={name: tuple(column[i] for i in chosen) for name, column in self.fallbacks.items()},
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each image, which :func:`rungwise.data.read` takes back.

        Columns are ``image`` (the path of a file, or its bytes), ``id``, ``caption`` and ``caption_id`` (lists),
        ``split`` and ``label`` where there are such, and the further columns. The captions of an image stand together.

        Raises:
            UserError: If pandas is not installed.

        >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat", "a sleeping cat"), np.array([0, 1, 1]))
        >>> data.to_frame()[["id", "caption"]].values.tolist()
        [['a', ['a dog']], ['b', ['a cat', 'a sleeping cat']]]
        """
        return collection_frame(self._rows())

    def to_lists(self) -> tuple[list[str | bytes], list[list[str]]]:
        """Pictures and captions of each image, in lists of (images,), which :func:`rungwise.data.read` takes back.

        A picture is the path of its file, or the bytes of one where it has no file of its own.

        >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]), paths=(Path("a.jpg"), Path("b.jpg")))
        >>> data.to_lists()
        (['a.jpg', 'b.jpg'], [['a dog'], ['a cat']])
        """
        captions = [[self.captions[one] for one in own.tolist()] for own in self.captions_of_image]
        return [handed_out(one) for one in self.paths], captions

    def to_dataset(self) -> Any:
        """A ``Dataset`` of Hugging Face, or a ``DatasetDict`` by split where there are splits.

        Columns are those of :meth:`to_frame`; files are named, and not read. :func:`rungwise.data.read` takes it back.

        Raises:
            UserError: If ``datasets`` is not installed.
        """
        return collection_dataset(self._rows())

    def save(self, folder: Path | str) -> Path:
        """Write pictures, captions and columns as a folder that every command and :func:`rungwise.data.read` reads.

        It holds one Parquet file, as the library ``datasets`` writes them. Ids, captions and splits are the same when
        it is read; a picture is the file that it was, byte for byte.

        Args:
            folder: Folder to write, whole or not at all; one that was written so before is replaced.

        Returns:
            The folder.

        Raises:
            UserError: If ``folder`` names none, the collection has no pictures, one cannot be read, or the folder holds
                other files.
        """
        if not isinstance(folder, str | Path) or folder == "":
            got = "is empty" if folder == "" else f"got {type(folder).__name__}"
            raise UserError(f"folder= {got}; give the folder to write")
        if not self.paths:
            raise UserError(f"{self.name}: has no pictures to save; keep the files that it was read from")
        return write_collection(Path(folder).expanduser(), self._rows())

    def _rows(self) -> list[CollectionRow]:
        has_splits = any(split != NO_SPLIT for split in self.splits)
        return [
            CollectionRow(
                self.image_ids[at],
                self.paths[at] if self.paths else None,
                tuple(self.captions[one] for one in captions.tolist()),
                tuple(self.caption_ids[one] for one in captions.tolist()),
                self.splits[at] if has_splits else None,
                self.labels[at] if self.labels else (),
                {name: column[at] for name, column in self.columns.items()},
            )
            for at, captions in enumerate(self.captions_of_image)
        ]

    def content_hash(self) -> str:
        """Hash of ids, captions and the image of each (not of pixels), for results and for files keyed by the data."""
        texts = (f"{text}\0" for text in _fields(self.image_ids, self.caption_ids, self.captions))
        return digest_of_parts(chain(texts, [np.asarray(self.image_of_caption, "<i8")]))


def _numbered(image_ids: Sequence[str], owners: NDArray[np.int64]) -> tuple[str, ...]:
    seen: dict[int, int] = {}
    ids = []
    for owner in owners.tolist():
        number = seen.get(owner, 0)
        seen[owner] = number + 1
        ids.append(f"{image_ids[owner]}#{number}")
    return tuple(ids)


def _first_duplicate(ids: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return None


def _fields(*groups: Sequence[str]) -> Iterator[str]:
    for group in groups:
        yield str(len(group))
        yield from group
