"""Degrees of relevance of a collection, by the name of a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, from_plain
from rungwise.core.output import short_repr
from rungwise.core.text import refuse_idle
from rungwise.jobs._job import called_from_python
from rungwise.jobs._python_values import refused
from rungwise.jobs._terminal import Seldom, flag, say, say_issues
from rungwise.jobs.sources._save_options import SaveOptions
from rungwise.relevance import Degrees, Direction, load, write_degrees

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.data.layouts import Key
    from rungwise.jobs._options import AnyData, AnyPath
    from rungwise.relevance.config import Building, SourceConfig


@dataclass(frozen=True)
class MadeDegrees:
    """Degrees of a source, and the pictures and captions that they are of.

    Attributes:
        source: The source; what was written of it may be the best candidates alone.
        data: The pictures that were taken, with their captions.
    """

    source: Degrees
    data: ImageCaptions

    __repr__ = short_repr


def degrees(
    source: str | SourceConfig,
    data: AnyData,
    *,
    split: str = "all",
    layout: str | None = None,
    key: Key = "dot",
    captions_only: bool = False,
    out: AnyPath | None = None,
    top: int | None = None,
    direction: Direction | None = None,
    shards: int | None = None,
    ray: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> Degrees:
    """How well every caption describes every picture, by a source: the same as ``rungwise relevance SOURCE DATA``.

    Args:
        source: Name of a source, such as ``"tfidf"`` or ``"cider-d"``, or its configuration.
        data: Folder, caption file or collection.
        split: The pictures to take; ``"all"`` takes every one.
        layout: Read the data as this layout, one of ours or of your own.
        key: Members of tar archives go together by their names to the first dot, or (``"stem"``) to the last.
        captions_only: Do not look for pictures at all.
        out: Folder to write the degrees to, for ``data.relevance`` of a training and ``relevance`` of an evaluation.
        top: Write only so many best candidates of each query.
        direction: Whose best candidates: captions for every picture (``"i2t"``, the default) or pictures for every
            caption (``"t2i"``).
        shards: With ``top``: make the lists in so many parts, one after the other, which bounds memory. Those that are
            done outlive a killed run.
        ray: With ``top``: make the shards on all cores of this machine (``"local"``), or of a cluster (``"HOST:PORT"``
            of its head).
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
    from rungwise.relevance.config import SourceConfig, source_config

    if not isinstance(source, str | SourceConfig):
        raise refused("source", source, "the name of a source, or its configuration")
    with called_from_python(quiet):
        config = source_config({"kind": source, **options}) if isinstance(source, str) else source
        if options and not isinstance(source, str):
            config = from_plain(type(config), {**vars(config), **options}, config.kind)
        asked = SaveOptions(data, split, layout, key, captions_only, out, top, direction, shards, ray, quiet=quiet)
        refuse_idle(asked, option=flag)
        made = made_degrees(config, asked)
        return made.source if asked.out is None else load(asked.out)


def made_degrees(config: SourceConfig, asked: SaveOptions) -> MadeDegrees:
    """Read the data, build the source, and write its degrees where that is requested.

    Raises:
        UserError: If options contradict, the data have no captions, or the place cannot be written.
    """
    from rungwise.data import ImageCaptions, read, with_splits
    from rungwise.relevance.config import Building
    from rungwise.relevance.storage.pair_cache import PairCache
    from rungwise.relevance.storage.saved import refuse_other

    refuse_idle(config, option=flag, where=f"{config.kind}: ")
    for name, what in config.missing().items():
        raise UserError(f"{config.kind} needs {flag(name)}: {what}")
    asked.check(config)
    if asked.out is not None:
        refuse_other(asked.out)
    cache: Path | None = getattr(config, "cache", None)
    if cache is not None:
        PairCache(cache.expanduser())  # which refuses a file of something else
    if isinstance(asked.data, ImageCaptions):
        whole = asked.data
    else:
        whole = read(asked.data, layout=asked.layout, key=asked.key, captions_only=asked.captions_only)
        say_issues(whole.issues)
    data = whole if asked.split == "all" else with_splits(whole).split(asked.split)
    source = _built(config, data, Building(whole=whole, say=say, progress=Seldom(), option=flag), asked)
    if asked.out is not None:
        say(f"written: {asked.out} ({source.shape[0]} images x {source.shape[1]} captions)")
        say(f"content hash: {source.content_hash()}")
    return MadeDegrees(source, data)


def _built(config: SourceConfig, data: ImageCaptions, building: Building, asked: SaveOptions) -> Degrees:
    """Build a source, and write its degrees to a folder.

    The place is taken before hours of work begin: a second run that would write there is refused now.
    """
    from rungwise.relevance.storage.saved import replacing

    direction = asked.direction or "i2t"
    if asked.out is None:
        return config.build(data, building=building)
    if asked.top is not None and (asked.shards is not None or asked.ray is not None):
        from rungwise.jobs.sources._sharding import InShards  # which loads numba

        return InShards(asked.out, asked.top, direction, asked.shards, asked.ray).write(config, data, building)
    with replacing(asked.out) as draft:
        source = config.build(data, building=building)
        write_degrees(source, draft, k=asked.top, direction=direction)
    return source
