"""A source made once: its numbers of captions are kept, and found again by a hash of all that they depend on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rungwise.core import UserError, digest_of_json
from rungwise.core.disk import digest_of, explained
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Degrees
from rungwise.relevance._captions import hash_of_captions
from rungwise.relevance.storage import CachedSource, KeptFolder

METHOD = 1
"""Version of the computation: whoever changes a number that a source computes of a caption raises it."""


@dataclass(frozen=True)
class Recipe:
    """How a source is kept and restored.

    Attributes:
        depends_on: All that its numbers depend on besides the captions: values that JSON can hold.
        keep: Turns a built source into what is kept of it.
        restore: Turns what was kept into the source.
    """

    depends_on: Mapping[str, Any]
    keep: Callable[[Any], CachedSource]
    restore: Callable[[CachedSource], Degrees]


def made_once(
    kind: str,
    data: ImageCaptions,
    recipe: Recipe | None,
    cache: Path,
    make: Callable[[], Degrees],
    say: Callable[[str], None],
) -> Degrees:
    """A source restored from the cache, or built now and kept; reports which, how long it took and where it is.

    A folder that cannot be written or an entry that is damaged costs the time of building, and nothing else.

    Args:
        kind: Kind of the source.
        data: Collection of the captions.
        recipe: How the source is kept; None for one that is not worth keeping.
        cache: Folder of what is kept.
        make: Builds the source.
        say: Takes a line for the user.
    """
    title = f"relevance: {kind} of {data.name}, {len(data.captions):,} captions"
    if recipe is None:
        source, took = _timed(make)
        say(f"{title}, made in {took}")
        return source
    folder, key = KeptFolder(cache), _key(kind, data, recipe)
    place = folder.place(kind, key)
    if (found := _found(folder, kind, key, recipe, lambda _: None)) is not None:
        say(f"{title}, found in {place}")
        return found
    with ExitStack() as alone:
        try:
            alone.enter_context(folder.making(key))
            # Another process may have made it, or mended it, while this one waited.
            found = _found(folder, kind, key, recipe, say)
            refused = ""
        except UserError as error:
            refused = str(error)
        if found is not None:
            say(f"{title}, found in {place}")
            return found
        source, took = _timed(make)
        if not refused:
            try:
                with explained(place):
                    folder.keep(kind, key, recipe.keep(source))
            except (UserError, OSError) as error:
                refused = str(error)
    say(f"{title}, made in {took}; {f'not kept: {refused}' if refused else f'kept in {place}'}")
    return source


def files_hash(folder: Path) -> str:
    """Hash of the names and contents of all files in a folder and below."""
    paths = sorted(one for one in folder.rglob("*") if one.is_file())
    return digest_of_json([[path.relative_to(folder).as_posix(), digest_of(path)] for path in paths])


def _found(folder: KeptFolder, kind: str, key: str, recipe: Recipe, say: Callable[[str], None]) -> Degrees | None:
    try:
        kept = folder.find(kind, key)
        return None if kept is None else recipe.restore(kept)
    except (UserError, OSError) as error:
        say(f"relevance: {kind}: made anew, since what was kept cannot be used: {error}")
        return None


def _key(kind: str, data: ImageCaptions, recipe: Recipe) -> str:
    captions = hash_of_captions(data.captions, data.image_of_caption)
    return digest_of_json([METHOD, kind, captions, len(data), dict(recipe.depends_on)])


def _timed(make: Callable[[], Degrees]) -> tuple[Degrees, str]:
    begun = time.perf_counter()
    source = make()
    return source, f"{time.perf_counter() - begun:.1f} s"
