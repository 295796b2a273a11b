"""Degrees of relevance of a collection, by the name of a source."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import from_plain
from rungwise.jobs._job import in_terms_of_python
from rungwise.jobs._terminal import Seldom, quietly, say, say_issues
from rungwise.relevance import Degrees, Direction, load, write_degrees

if TYPE_CHECKING:
    from rungwise.jobs._options import AnyData, AnyPath
    from rungwise.relevance.config import Building, SourceConfig


def degrees(
    source: str | SourceConfig,
    data: AnyData,
    *,
    split: str = "all",
    out: AnyPath | None = None,
    top: int | None = None,
    direction: Direction = "i2t",
    quiet: bool = False,
    **options: Any,
) -> Degrees:
    """How well every caption describes every picture, by a source: the same as ``rungwise relevance SOURCE DATA``.

    Args:
        source: Name of a source, such as ``"tfidf"`` or ``"cider-d"``, or its configuration.
        data: Folder, caption file or collection.
        split: The pictures to take; ``"all"`` takes every one.
        out: Folder to write the degrees to, for ``data.relevance`` of a training and ``relevance`` of an evaluation.
        top: Write only so many best candidates of each query.
        direction: Whose best candidates: captions for every picture (i2t) or pictures for every caption (t2i).
        quiet: Print nothing; errors are raised all the same.
        options: Options of the source, as in YAML.

    Returns:
        Degrees, asked for by positions of pictures and captions: those in ``out``, where they were written.

    Raises:
        UserError: If there is no such source or option, or the data have no captions.

    >>> import numpy as np, rungwise
    >>> data = rungwise.Collection(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    >>> rungwise.degrees("tfidf", data, quiet=True).dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    from rungwise.data import ImageCaptions, read, with_splits
    from rungwise.relevance.config import Building, source_config

    with quietly() if quiet else nullcontext(), in_terms_of_python():
        config = source_config({"kind": source, **options}) if isinstance(source, str) else source
        if options and not isinstance(source, str):
            config = from_plain(type(config), {**vars(config), **options}, config.kind)
        if isinstance(data, ImageCaptions):
            whole = data
        else:
            whole = read(os.fspath(data))
            say_issues(whole.issues)
        part = whole if split == "all" else with_splits(whole).split(split)
        building = Building(whole=whole, say=say, progress=Seldom())
        if out is None:
            return config.build(part, building=building)
        saved_degrees(config, part, building, Path(out), top, direction)
        return load(Path(out))


def saved_degrees(
    config: SourceConfig, data: Any, building: Building, out: Path, top: int | None, direction: Direction
) -> Degrees:
    """Build a source, and write its degrees to a folder, which is taken before hours of work begin."""
    from rungwise.relevance.storage.saved import replacing

    with replacing(out) as draft:
        source = config.build(data, building=building)
        write_degrees(source, draft, k=top, direction=direction)
    say(f"written: {out} ({source.shape[0]} images x {source.shape[1]} captions)")
    return source
