"""Options of ``rungwise search``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.jobs import ADVANCED, AlteredModel, Device


@dataclass
class SearchCommand:
    """Find pictures by a text, by pictures, or by both.

    Attributes:
        index: Folder of the index, or the address of a server. Such as http://HOST:PORT; s3://BUCKET/PREFIX works too.
        query: What to look for. Texts and files of pictures may be added and taken away: "beach" - "people" + dog.jpg.
        where: Only pictures that fulfil this. Such as: taken == '2020-05' and tags has 'beach'.
        k: How many to show at most. Hits beyond the end of relevance are counted and not shown.
        all: Take less related hits too. Without it, those beyond the end of relevance are only counted.
        image: A picture that results are to be like; repeatable.
        like: The same by the id of a picture of the index; repeatable.
        unlike: The id of a picture of the index that results are to be unlike; repeatable.
        json: Print one JSON object and nothing else. It ends where relevance does. Messages go to the standard error.
        paths: Print the paths of the hits and nothing else. One stands on a line. Messages go to the standard error.
        print0: End each path with a zero byte. It takes the place of the line break, for: xargs -0.
        open: Look at what was found. The picture, or a page of them, is opened as this system opens such files.
        copy_to: Copy what was found into this folder. No file is overwritten.
        offset: How many of the best to pass over.
        words: Whether the words of captions and columns are searched too.
        diversity: How much results are to differ. From 0, the best ones, to 1.
        fold: Show near-duplicates as one.
        end: Whether to judge where relevance ends.
        exact: Compare with every picture. An approximate index is left aside.
        rerank: Rank the best ones anew with this model. It reads each picture together with the text.
        rerank_top: How many are ranked anew.
        why: Say where in the first hits the words were found. --rerank with a model of kind scan, sgr or saf knows it.
        token: Of the server. Better set RUNGWISE_TOKEN: others can read a command line.
        model: The model that built the index, if it has moved.
    """

    index: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="INDEX")]
    query: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[QUERY]")] = None
    where: Annotated[str | None, tyro.conf.arg(metavar="EXPRESSION")] = None
    k: int = 10
    all: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    image: Annotated[tyro.conf.UseAppendAction[tuple[Path, ...]], tyro.conf.arg(metavar="FILE")] = ()
    like: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="ID")] = ()
    unlike: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="ID")] = field(
        default=(), metadata=ADVANCED
    )
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    paths: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    print0: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    copy_to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = field(default=None, metadata=WRITTEN_FOLDER)
    offset: int = field(default=0, metadata=ADVANCED)
    words: Literal["auto", "on", "off"] = field(default="auto", metadata=ADVANCED)
    diversity: float = field(default=0.0, metadata=ADVANCED)
    fold: bool = field(default=True, metadata=ADVANCED)
    end: Literal["on", "off"] = field(default="on", metadata=ADVANCED)
    exact: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    rerank: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = field(default=None, metadata=ADVANCED)
    rerank_top: int = field(default=50, metadata=ADVANCED)
    why: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    token: str | None = field(default=None, metadata=ADVANCED)
    model: str | None = field(default=None, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    altered_model: Annotated[AlteredModel, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked."""
        return self.index.startswith(("http://", "https://"))
