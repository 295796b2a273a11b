"""Contents and oddities of a collection, as numbers and as a table."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rungwise.core import MissingFileError, UserError
from rungwise.core.compute import cores, thread_pool
from rungwise.core.text import normalised, written_without_blanks
from rungwise.data._collection import NO_SPLIT, NOT_READ, ImageCaptions, Issue
from rungwise.data.files import IN_MEMORY, FeatureRows, PackedPicture
from rungwise.data.pictures import load_array, picture_bytes, read_header, unreadable_picture, upright_size

FREQUENT = 4
"""Least count of a token that the vocabularies of the VSE++ family keep."""

SAMPLED_ROWS = 100
"""Number of feature rows that are read and checked; all of them may be many gigabytes."""

# Words and punctuation marks, as the caption encoder splits them.
_TOKEN = re.compile(r"\w+|[^\w\s]+")
_LARGE, _LOOKED_AT = 1 << 24, 256
"""Pixels beyond which a picture is decoded smaller, and how many its shorter side then keeps."""
_TOKENIZER = "sources of words (rungwise relevance) need --tokenizer icu, and tokens counted here are no words"
_EXAMPLES = 3
"""Number of issues of a kind that are shown."""


@dataclass(frozen=True)
class SplitSize:
    """Number of pictures and captions in one split."""

    name: str
    pictures: int
    captions: int


@dataclass(frozen=True)
class FeatureSize:
    """Shape, type and size of a collection's features.

    Attributes:
        row: Shape of one image's row: (D,) for a vector, (R, D) for R regions.
        dtype: Type of the numbers, such as ``"float32"``.
        size: Bytes of the files or arrays that hold the rows.
        sampled: Number of rows that were checked; 0 if that was not asked for.
    """

    row: tuple[int, ...]
    dtype: str
    size: int
    sampled: int


@dataclass(frozen=True)
class Inspection:
    """Result of :func:`inspect`, as plain numbers and texts.

    Attributes:
        name: Name of the collection.
        layout: Layout that the reader recognised.
        pictures: Number of images.
        files: Number of images that name a picture file; 0 for a collection of features or captions.
        captions: Number of captions.
        splits: Size of each split.
        captions_per_picture: Smallest, median and largest number of captions; None without pictures.
        tokens: Number of distinct lower-cased words and punctuation marks.
        frequent_tokens: Number of tokens seen at least :data:`FREQUENT` times.
        tokens_per_caption: Smallest, median and largest number of tokens; None without captions.
        repeated_texts: Number of captions whose text stands more than once in the collection.
        widths: Smallest and largest width in pixels; None if pictures were not checked.
        heights: Smallest and largest height in pixels; None if pictures were not checked.
        checked: Whether every picture was decoded and compared.
        odd: Everything odd, the reader's issues included.
        not_read: Files that are not read, one issue for each sort.
        features: Size of the features that take the place of picture files; None if there are none.
        text_features: Size of the features that take the place of words; None if there are none. Tokens and texts are
            then not counted.
        archives: Number of larger files that the pictures lie in; 0 where each is a file of its own.
        labels: Number of different labels.
        columns: Kind of each further column of the user's table, such as ``texts`` or ``numbers``.

    >>> Inspection.__dataclass_fields__["odd"].type
    'tuple[Issue, ...]'
    """

    name: str
    layout: str
    pictures: int
    files: int
    captions: int
    splits: tuple[SplitSize, ...]
    captions_per_picture: tuple[int, float, int] | None
    tokens: int
    frequent_tokens: int
    tokens_per_caption: tuple[int, float, int] | None
    repeated_texts: int
    widths: tuple[int, int] | None
    heights: tuple[int, int] | None
    checked: bool
    odd: tuple[Issue, ...]
    features: FeatureSize | None = None
    text_features: FeatureSize | None = None
    archives: int = 0
    labels: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    not_read: tuple[Issue, ...] = ()

    @property
    def kinds(self) -> dict[str, int]:
        """Number of issues of each kind, most frequent first."""
        return dict(Counter(issue.kind for issue in self.odd).most_common())


def inspect(
    data: ImageCaptions,
    *,
    check_pictures: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """Count a collection and look for what is odd in it.

    Args:
        data: The collection.
        check_pictures: Decode every picture in full, and compare all files by their SHA-256. Of features, read the
            first row and others drawn at random, :data:`SAMPLED_ROWS` in all, and look for numbers that are not finite
            and for vectors of zeros.
        progress: Called with the number of pictures checked so far and their total, from the calling thread.

    >>> data = ImageCaptions(("a", "b"), ("A dog.", "A dog.", "A cat"), np.array([0, 0, 1]))
    >>> found = inspect(data)
    >>> found.captions_per_picture, found.tokens, found.kinds
    ((1, 1.5, 2), 4, {'repeated caption': 1})
    """
    vocabulary: Counter[str] = Counter()
    lengths = []
    words = data.captions if data.text_features is None else ()
    for caption in words:
        tokens = _TOKEN.findall(normalised(caption, "NFC").lower())
        vocabulary.update(tokens)
        lengths.append(len(tokens))
    texts = Counter(" ".join(caption.lower().split()) for caption in words)
    odd = [*(issue for issue in data.issues if issue.kind != NOT_READ), *(_odd_captions(data) if words else ())]
    if written_without_blanks(words):
        odd.append(Issue("no blanks between words", data.caption_ids[0], f"{data.captions[0][:40]!r}; {_TOKENIZER}"))
    looks = list(_look_at(data, progress)) if check_pictures else []
    odd += [look for look in looks if isinstance(look, Issue)]
    readable = {position: look for position, look in enumerate(looks) if isinstance(look, _Look)}
    odd += _identical(data, {position: look.digest for position, look in readable.items()})
    sizes: list[FeatureSize | None] = []
    for ids, rows in ((data.image_ids, data.features), (data.caption_ids, data.text_features)):
        sample = _sampled(rows) if check_pictures and rows is not None else []
        odd += _odd_rows(ids, rows, sample) if rows is not None else []
        sizes.append(None if rows is None else _feature_size(rows, len(sample)))
    per_picture = np.bincount(data.image_of_caption, minlength=len(data))
    return Inspection(
        name=data.name,
        layout=data.layout,
        pictures=len(data),
        files=len(data.paths),
        captions=len(data.captions),
        splits=_split_sizes(data),
        captions_per_picture=_spread(per_picture.tolist()),
        tokens=len(vocabulary),
        frequent_tokens=sum(count >= FREQUENT for count in vocabulary.values()),
        tokens_per_caption=_spread(lengths),
        repeated_texts=sum(count for count in texts.values() if count > 1),
        widths=_range([look.width for look in readable.values()]),
        heights=_range([look.height for look in readable.values()]),
        checked=check_pictures and bool(data.paths),
        odd=tuple(odd),
        features=sizes[0],
        text_features=sizes[1],
        archives=len({picture.file for picture in data.paths if isinstance(picture, PackedPicture)} - {IN_MEMORY}),
        labels=len({label for labels in data.labels for label in labels}),
        columns=data.column_kinds,
        not_read=tuple(issue for issue in data.issues if issue.kind == NOT_READ),
    )


def render(inspection: Inspection) -> RenderableType:
    """Tables for a terminal of 80 columns: counts, splits, and issues with some examples of each kind."""
    # As texts: in a plain string the terminal's library looks for markup, and names of folders may hold such.
    title = Text(f"{inspection.name} ({inspection.layout or 'given'})", style="table.title")
    counts = Table(box=box.SIMPLE, show_header=False, title=title)
    counts.add_column(style="bold")
    counts.add_column(justify="right")
    for label, value in _figures(inspection):
        counts.add_row(label, value)
    splits = Table("split", box=box.SIMPLE)
    splits.add_column("pictures", justify="right")
    splits.add_column("captions", justify="right")
    for split in inspection.splits:
        splits.add_row(Text(split.name), str(split.pictures), str(split.captions))
    parts = [counts, splits, *([_columns_table(inspection)] if inspection.columns else [])]
    parts += [_not_read_table(inspection)] if inspection.not_read else []
    return Group(*parts, _odd_table(inspection))


@dataclass(frozen=True)
class _Look:
    width: int
    height: int
    digest: bytes


def _look_at(data: ImageCaptions, progress: Callable[[int, int], None] | None) -> Iterator[_Look | Issue]:
    def look(position: int) -> _Look | Issue:
        path, where = data.paths[position], data.image_ids[position]
        try:
            content = picture_bytes(path)
        except MissingFileError:
            return Issue("missing file", where, "no such file")
        except UserError as error:
            return replace(unreadable_picture(str(path), error), where=where)
        try:
            large = read_header(content, str(path), shorter_side=_LOOKED_AT).pixels > _LARGE
            pixels = load_array(content, name=str(path), shorter_side=_LOOKED_AT if large else None)
            height, width = upright_size(content, str(path)) if large else pixels.shape[1:]
        except UserError as error:
            return replace(unreadable_picture(str(path), error), where=where)
        return _Look(width, height, hashlib.sha256(content).digest())

    with thread_pool(cores()) as pool:
        for done, result in enumerate(pool.map(look, range(len(data.paths))), start=1):
            if progress is not None:
                progress(done, len(data.paths))
            yield result


def _odd_captions(data: ImageCaptions) -> Iterator[Issue]:
    seen: dict[tuple[int, str], str] = {}
    for caption_id, text, image in zip(data.caption_ids, data.captions, data.image_of_caption.tolist(), strict=True):
        words = " ".join(text.lower().split())
        if not words:
            yield Issue("empty caption", caption_id)
        elif (first := seen.setdefault((image, words), caption_id)) is not caption_id:
            yield Issue("repeated caption", caption_id, f"the same text as {first}")


def _identical(data: ImageCaptions, digests: dict[int, bytes]) -> Iterator[Issue]:
    groups: dict[bytes, list[int]] = defaultdict(list)
    for position, digest in digests.items():
        groups[digest].append(position)
    for group in groups.values():
        if len(group) > 1:
            splits = [data.splits[position] if data.splits else NO_SPLIT for position in group]
            kind = "identical across splits" if len(set(splits)) > 1 else "identical in one split"
            named = [f"{data.image_ids[position]} ({split})" for position, split in zip(group, splits, strict=True)]
            yield Issue(kind, named[0], f"the same file as {', '.join(named[1:])}")


def _sampled(features: FeatureRows) -> list[int]:
    others = np.random.default_rng(0).permutation(np.arange(1, len(features)))[: SAMPLED_ROWS - 1]
    return sorted([0, *others.tolist()])[: len(features)]


def _odd_rows(ids: Sequence[str], features: FeatureRows, positions: list[int]) -> Iterator[Issue]:
    for position in positions:
        vectors = np.atleast_2d(features[position])
        for kind, odd in (
            ("features not finite", ~np.isfinite(vectors).all(axis=1)),
            ("features all zero", ~vectors.any(axis=1)),
        ):
            if odd.any():
                regions = f"{odd.sum()} of {len(vectors)} regions" if features.shape[1:-1] else ""
                yield Issue(kind, ids[position], regions)


def _feature_size(features: FeatureRows, sampled: int) -> FeatureSize:
    return FeatureSize(
        row=features.shape[1:],
        dtype=features.dtype.name,
        size=sum(part.nbytes for part in features.parts),
        sampled=sampled,
    )


def _split_sizes(data: ImageCaptions) -> tuple[SplitSize, ...]:
    splits = data.splits or (NO_SPLIT,) * len(data)
    pictures = Counter(splits)
    captions = Counter(splits[image] for image in data.image_of_caption.tolist())
    return tuple(SplitSize(name, count, captions[name]) for name, count in pictures.items())


def _spread(counts: list[int]) -> tuple[int, float, int] | None:
    return (min(counts), float(np.median(counts)), max(counts)) if counts else None


def _range(sizes: list[int]) -> tuple[int, int] | None:
    return (min(sizes), max(sizes)) if sizes else None


def _figures(found: Inspection) -> Iterator[tuple[str, str]]:
    yield "pictures", str(found.pictures)
    if found.features is not None:
        regions = f"{found.features.row[0]} regions of " if len(found.features.row) == 2 else ""
        yield "features in place of pictures", f"{regions}{found.features.row[-1]} numbers, {found.features.dtype}"
        yield "size of the features", f"{found.features.size / 1e6:.1f} MB"
    elif not found.files:
        yield "picture files", "none (captions only)"
    elif found.archives:
        yield "files that hold the pictures", str(found.archives)
    if found.labels:
        yield "different labels", str(found.labels)
    yield "captions", str(found.captions)
    for what, spread in (
        ("captions per picture", found.captions_per_picture),
        ("tokens per caption", found.tokens_per_caption),
    ):
        if spread is not None:
            low, median, high = spread
            yield what, f"{low} to {high}, median {median:g}"
    if found.text_features is not None:
        yield "features in place of words", f"{found.text_features.row[-1]} numbers, {found.text_features.dtype}"
    else:
        yield "distinct tokens", str(found.tokens)
        yield f"tokens seen {FREQUENT} times or more", str(found.frequent_tokens)
        yield "captions with a text that others have too", str(found.repeated_texts)
    if found.widths is not None and found.heights is not None:
        yield "width in pixels", f"{found.widths[0]} to {found.widths[1]}"
        yield "height in pixels", f"{found.heights[0]} to {found.heights[1]}"


def _columns_table(found: Inspection) -> RenderableType:
    table = Table("column", box=box.SIMPLE, title="columns to filter a search by")
    table.add_column("holds")
    for name, kind in found.columns.items():
        table.add_row(Text(name, overflow="fold"), kind)
    return table


def _not_read_table(found: Inspection) -> RenderableType:
    table = Table("not read", box=box.SIMPLE)
    table.add_column("why, or how to have them read")
    for issue in found.not_read:
        table.add_row(Text(issue.where, overflow="fold"), Text(issue.detail))
    return table


def _odd_table(found: Inspection) -> RenderableType:
    unchecked = "" if found.checked or not found.files else "; pictures were not decoded"
    if found.features is not None:
        unchecked = f"; {found.features.sampled} of {found.pictures} rows of features were looked at"
    if not found.odd:
        return Text(f"nothing {'else ' if found.not_read else ''}odd{unchecked}")
    table = Table("odd", box=box.SIMPLE, title=f"{len(found.odd)} odd things{unchecked}")
    table.add_column("count", justify="right")
    table.add_column("examples", overflow="fold")
    for kind, count in found.kinds.items():
        shown = [issue for issue in found.odd if issue.kind == kind][:_EXAMPLES]
        lines = [f"{issue.where}: {issue.detail}" if issue.detail else issue.where for issue in shown]
        if count > len(shown):
            lines.append(f"and {count - len(shown)} more")
        table.add_row(kind, str(count), Text("\n".join(lines)))
    return table
