"""Options of ``rungwise search`` that say what becomes of the hits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.text import idle_where, idle_without
from rungwise.jobs import ADVANCED
from rungwise.jobs.searches import Search


@dataclass
class SearchCommand(Search):
    """Find pictures by a text, by pictures, or by both.

    Attributes:
        all: Take less related hits too. Without it, those beyond the end of relevance are only counted.
        json: Print one JSON object and nothing else. It ends where relevance does. Messages go to the standard error.
        paths: Print the paths of the hits and nothing else. One stands on a line. Messages go to the standard error.
        print0: End each path with a zero byte. It takes the place of the line break, for: xargs -0.
        open: Look at what was found. The picture, or a page of them, is opened as this system opens such files.
        copy_to: Copy what was found into this folder. No file is overwritten.
        why: Say where in the first hits the words were found. --rerank with a model of kind scan, sgr or saf knows it.
    """

    all: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    paths: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    print0: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    copy_to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = field(default=None, metadata=WRITTEN_FOLDER)
    why: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)

    IDLE = (
        *Search.IDLE,
        idle_without("print0", "paths"),
        idle_where(
            "paths open copy_to",
            lambda asked: asked.is_table,
            "in a table of LanceDB, whose rows are not known to be files",
            "leave it out",
        ),
        idle_where("why", lambda asked: not asked.query, "without words to look for", "leave it out, or add some"),
        idle_where(
            "why",
            lambda asked: asked.rerank is None and not asked.is_remote,
            "without a model that reads regions and words",
            "leave it out, or name one: {rerank} MODEL",
        ),
    )
