"""Options of degrees by a source: which data, and what is written."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from typing import Annotated

import tyro

from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import short_repr
from rungwise.core.text import idle_without
from rungwise.jobs._job import JobOptions
from rungwise.jobs._options import ADVANCED, Layout, MemberKey, OneData, PathOrNone, given
from rungwise.jobs._terminal import flag
from rungwise.relevance import Direction
from rungwise.relevance.config import CONFIGS, SourceConfig


@dataclass
class SaveOptions(JobOptions):
    """Which data, and what is written.

    Attributes:
        data: Folder or caption file.
        split: The pictures to take; "all" takes every one.
        captions_only: Do not look for pictures at all.
        out: Folder to write the degrees to.
        top: Write only so many best candidates of each query.
        direction: Whose best candidates: captions for every picture (i2t, the default) or pictures for every caption
            (t2i).
        shards: With top: make the lists in so many parts, one after the other, which bounds memory. Those that are done
            outlive a killed run.
        ray: With top: make the shards on all cores of this machine (no value), or of a cluster (HOST:PORT of its head).
    """

    data: Annotated[tyro.conf.Positional[OneData], tyro.conf.arg(metavar="DATA")] = given(MISSING)
    split: str = "all"
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    captions_only: bool = False
    out: PathOrNone = given(None, WRITTEN_FOLDER)
    top: int | None = field(default=None, metadata=ADVANCED)
    direction: Direction | None = field(default=None, metadata=ADVANCED)
    shards: int | None = field(default=None, metadata=ADVANCED)
    ray: str | None = field(default=None, metadata=ADVANCED)

    IDLE = (idle_without("top", "out"), idle_without("direction shards ray", "top"))

    __repr__ = short_repr

    def check(self, config: SourceConfig) -> None:
        """Refuse shards of a source that has none, and meaningless numbers.

        Raises:
            UserError: Naming the first of them.
        """
        if (self.shards is not None or self.ray is not None) and not config.IN_SHARDS:
            able = ", ".join(one.kind for one in CONFIGS if one.IN_SHARDS)
            raise UserError(
                f"{config.kind} cannot be made in shards; leave --shards and --ray out, or take one of {able}"
            )
        for name in ("top", "shards"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UserError(f"{flag(name)} must be at least 1, got {getattr(self, name)}")
