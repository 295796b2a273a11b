"""Options of making an index."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import short_repr
from rungwise.core.text import idle_beside, idle_where, idle_without
from rungwise.jobs._job import JobOptions
from rungwise.jobs._options import (
    ADVANCED,
    AlteredModel,
    AnyPath,
    Captions,
    Device,
    Exclude,
    Given,
    LeastCosine,
    MemberKey,
    ModelOrNone,
    PathOrNone,
    PrecisionName,
    Several,
    given,
)

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions

    Pictures = Given[AnyPath | Several[AnyPath] | ImageCaptions, tuple[Path, ...]]
    """A folder of pictures, several, or a collection that was read from there."""
else:
    Pictures = tuple[Path, ...]

AUTO = "auto"
"""Layout that stands for looking anew."""


@dataclass
class MakeIndex(JobOptions):
    """Encode pictures (and their captions, if there are any) so that they can be searched.

    The same command again touches only what changed. An interrupted one goes on where it was. Four more commands look
    after an index: rungwise index compact, export, backup and restore.

    Attributes:
        pictures: Folder of pictures, with or without captions; or several folders. Also Parquet files that hold the
            pictures, or WebDataset shards, in a folder or in an object store (s3://bucket/prefix).
        model: Folder or name of a model. A hub repository, or a published model: hf:, open_clip: or st:, and a folder
            or a name; default the one that made the index, and for a new one a published one, which is said and
            fetched.
        out: Folder of the index. Default beside the pictures, PICTURES.index; several folders need it.
            s3://BUCKET/PREFIX and milvus://HOST:PORT/NAME are addresses of stores for many machines.
        layout: Read the pictures as this layout, one of ours or of your own. An index remembers its layout, captions,
            key and patterns; auto forgets all of them and looks anew.
        ray: Let workers of Ray open and encode the pictures. Alone, on this machine; with the address of the head of a
            cluster (HOST:PORT), on its machines, one of which this must be.
        workers: How many of them have the model at a time; default one for each GPU, or else for each core.
        thumbnails: Keep small copies of the pictures in the index. The page then opens no large files; an index
            remembers it.
        explain: Say which store keeps the rows, and why.
        overwrite: Begin anew where an index is.
        rehash: Compare the content of every file. Without it, files whose size and time are as they were are taken to
            be the same.
        allow_removals: Remove all pictures from the index that are gone. Without it, nothing is removed where their
            folder is empty or not mounted, or where they are more than a tenth and at least 20.
        store: Which store keeps the rows. auto takes LanceDB's, and exact where LanceDB lacks the model's similarity;
            exact is a memory map, for an index that seldom changes. What --out names at milvus:// is in Milvus. The
            name of a store of your own is taken, too.
        half: Keep vectors in half precision. They take half the place; LanceDB's store only.
        precision: Of picture features that are not at hand; auto takes bfloat16 where it is faster and close enough.
            With --ray, auto is float32, so that all workers compute alike.
    """

    pictures: Annotated[tyro.conf.Positional[Pictures], tyro.conf.arg(metavar="PICTURES [PICTURES]")] = given(MISSING)
    model: ModelOrNone = given(None)
    out: PathOrNone = given(None, WRITTEN_FOLDER)
    captions: Captions = None
    layout: Annotated[str | None, tyro.conf.arg(metavar="LAYOUT")] = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    exclude: Exclude = ()
    ray: str | None = None
    workers: int | None = field(default=None, metadata=ADVANCED)
    thumbnails: bool = False
    explain: bool = False
    overwrite: bool = False
    rehash: bool = field(default=False, metadata=ADVANCED)
    allow_removals: bool = False
    store: Annotated[str, tyro.conf.arg(metavar="NAME")] = field(default="auto", metadata=ADVANCED)
    half: bool = field(default=False, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    precision: PrecisionName = field(default="auto", metadata=ADVANCED)
    least_cosine: LeastCosine = field(default=0.999, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)

    IDLE = (
        idle_without("workers", "ray"),
        idle_beside(
            "rehash allow_removals", "overwrite", remedy="leave one of them out: an index that is begun anew reads all"
        ),
        idle_where(
            "least_cosine",
            lambda asked: asked.precision != "auto" or asked.ray is not None,
            "without {precision} auto, or with {ray}, which computes in float32",
        ),
    )

    __repr__ = short_repr
