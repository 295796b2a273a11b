"""Several folders as one collection, whose ids say which folder a picture lies in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rungwise.core import UserError, user_path
from rungwise.core.network import address_of
from rungwise.data._collection import NO_SPLIT, NOT_READ, ImageCaptions, Issue
from rungwise.data._columns import Column, kind_of, typed
from rungwise.data.layouts import readable_name

LAYOUT = "several"


def named_folders(paths: Sequence[Path | str]) -> dict[str, Path]:
    """Folders by the names that stand before the ids of their pictures, in the order given.

    The name is the last part of the path, so that it stays the same whatever other folders come and go; a path
    written ``NAME=FOLDER`` gives it a name of its own.

    Raises:
        UserError: If there is none, two have one name, or one is given twice or lies in another.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("rome", "oslo"):
    ...     (root / name).mkdir()
    >>> list(named_folders([root / "rome", f"north={root / 'oslo'}"]))
    ['rome', 'north']
    """
    if not paths:
        raise UserError("no folder was given; give at least one")
    found: dict[str, Path] = {}
    real: dict[str, Path] = {}
    for given in paths:
        name, path = _named(given)
        place = str(path) if address_of(path) else os.path.realpath(path)
        for other, known in real.items():
            if other == place:
                raise UserError(f"{given}: is the same as {known}; give it once")
            for inner, outer in ((place, other), (other, place)):
                if inner.startswith(f"{outer.rstrip('/' + os.sep)}{'/' if address_of(outer) else os.sep}"):
                    raise UserError(f"{given}: one of it and {known} lies in the other; give the outer one alone")
        if name in found:
            raise UserError(f"{given}: {name!r} is the name of {found[name]} too; give one as NAME={given}")
        found[name] = real[place] = path
    return found


def _named(given: Path | str) -> tuple[str, Path]:
    """Name and path of a folder; a path that is there is never taken apart."""
    path = user_path(given)
    name, sign, rest = str(given).partition("=")
    if sign and name and rest and "/" not in name and os.sep not in name and not (address_of(path) or path.exists()):
        return name, user_path(rest)
    if address_of(path):
        return str(path).rstrip("/").rpartition("/")[2], path
    whole = Path(os.path.abspath(path))  # noqa: PTH100  # links are not followed: a folder is called as it is given
    return readable_name(Path((whole.parent if whole.is_file() else whole).name)), path


def joined(parts: Mapping[str, tuple[Path, ImageCaptions]]) -> ImageCaptions:
    """One collection of several, each with its name before its ids and issues; a single one gets its name too.

    Columns of the same name become one. Where they hold values of different kinds, an issue says that they became one
    kind.

    Args:
        parts: Place and collection by name.

    Raises:
        UserError: If some hold pictures, and others features or captions alone.

    >>> a = ImageCaptions(("x.jpg",), ("A dog.",), np.array([0]), paths=(Path("a/x.jpg"),))
    >>> b = ImageCaptions(("x.jpg",), (), np.array([], int), paths=(Path("b/x.jpg"),))
    >>> both = joined({"a": (Path("a"), a), "b": (Path("b"), b)})
    >>> both.image_ids, both.caption_ids, both.layout
    (('a/x.jpg', 'b/x.jpg'), ('a/x.jpg#0',), 'several')
    """
    _check_alike(parts)
    every = [data for _, data in parts.values()]
    starts = np.cumsum([0, *(len(data) for data in every)])
    issues = [_issue_of(name, place, issue) for name, (place, data) in parts.items() for issue in data.issues]
    columns = _columns([data.columns for data in every], every, issues)
    return ImageCaptions(
        image_ids=tuple(f"{name}/{one}" for name, (_, data) in parts.items() for one in data.image_ids),
        captions=tuple(text for data in every for text in data.captions),
        image_of_caption=np.concatenate(
            [data.image_of_caption + start for data, start in zip(every, starts, strict=False)]
        ),
        caption_ids=tuple(f"{name}/{one}" for name, (_, data) in parts.items() for one in data.caption_ids),
        paths=tuple(path for data in every for path in data.paths),
        splits=tuple(one for data in every for one in data.splits or (NO_SPLIT,) * len(data)),
        labels=_labels(every),
        name="+".join(parts),
        layout=LAYOUT,
        issues=tuple(issues),
        columns=columns,
        fallbacks=_columns([data.fallbacks for data in every], every, issues),
    )


def _check_alike(parts: Mapping[str, tuple[Path, ImageCaptions]]) -> None:
    if rows := [place for place, data in parts.values() if data.features is not None or data.text_features is not None]:
        raise UserError(f"{rows[0]}: holds rows of features, which cannot be joined with other folders; give it alone")
    without = [place for place, data in parts.values() if not data.paths]
    if without and len(without) < len(parts):
        raise UserError(f"{without[0]}: holds captions without pictures, unlike the other folders; leave it out")


def _issue_of(name: str, place: Path, issue: Issue) -> Issue:
    if issue.kind == NOT_READ:
        return replace(issue, where=f"in {name}: {issue.where}")
    return issue if issue.where.startswith(str(place)) else replace(issue, where=f"{name}/{issue.where}")


def _labels(every: Sequence[ImageCaptions]) -> tuple[tuple[str, ...], ...]:
    if not any(data.labels for data in every):
        return ()
    return tuple(labels for data in every for labels in data.labels or ((),) * len(data))


def _columns(
    held: Sequence[Mapping[str, Column]], every: Sequence[ImageCaptions], issues: list[Issue]
) -> dict[str, Column]:
    found = {}
    for name in dict.fromkeys(name for columns in held for name in columns):
        kinds = {kind_of(columns[name]) for columns in held if any(one is not None for one in columns.get(name, ()))}
        cells = [
            cell for columns, data in zip(held, every, strict=True) for cell in columns.get(name, (None,) * len(data))
        ]
        if len(kinds) > 1:
            issues.append(Issue("column of several kinds", name, f"{' and '.join(sorted(kinds))}; made one kind"))
        found[name] = typed(name, cells, parse=False) if len(kinds) > 1 else tuple(cells)
    return found
