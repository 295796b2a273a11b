"""Options of several commands: type and help of each, declared once.

A command sets their defaults, and whether ``--help`` shows them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from rungwise.serving import ServingLimits

Device = Annotated[
    str | None,
    tyro.conf.arg(help="Where the model computes, such as cpu or cuda; default cuda where there is one."),
]
AlteredModel = Annotated[bool, tyro.conf.arg(help="Take a model whose files are not as its SHA256SUMS says.")]
PrecisionName = Literal["auto", "float32", "bfloat16"]
Precision = Annotated[
    PrecisionName,
    tyro.conf.arg(
        help="Of picture features that are not at hand; auto takes bfloat16 where it is faster and close enough."
    ),
]
LeastCosine = Annotated[
    float,
    tyro.conf.arg(help="What auto asks of features in bfloat16: the cosine to those in float32, picture by picture."),
]
Cache = Annotated[
    Path | None, tyro.conf.arg(help="Folder of the feature cache; default RUNGWISE_CACHE or the system's.")
]
MemberKey = Annotated[
    Literal["dot", "stem"],
    tyro.conf.arg(help="Members of tar archives go together by their names to the first dot, or (stem) to the last."),
]
Captions = Annotated[
    Path | None,
    tyro.conf.arg(help="File of the captions of these pictures, in place of those that lie beside them."),
]
Exclude = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        help="Patterns of files and folders to leave out, as in .gitignore, such as 'private/' '*.gif'. The lines of a"
        " file .rungwiseignore in the folder are such patterns, too."
    ),
]
JoinRestval = Annotated[bool, tyro.conf.arg(help="Count COCO's restval pictures as training pictures.")]
Port = Annotated[int, tyro.conf.arg(help="Number after the colon. 0 takes any that is free.")]
Browser = Annotated[bool, tyro.conf.arg(help="Open the page.")]
Limits = Annotated[ServingLimits, tyro.conf.arg(help="What clients may hold of the server.")]
Data = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA", help="Folder or caption file.")]
IndexFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="INDEX", help="Folder of the index.")]
