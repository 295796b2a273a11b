"""Options of several jobs: type and help of each, declared once.

A job sets their defaults, and whether ``--help`` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import tyro

from rungwise.jobs._python_values import GIVEN, Form

T = TypeVar("T")
Wide = TypeVar("Wide")
Narrow = TypeVar("Narrow")

if TYPE_CHECKING:
    from os import PathLike

    from rungwise.data import ImageCaptions
    from rungwise.models import PairScorer

    class Given(Generic[Wide, Narrow]):
        """A field that is given as one type, and kept as another (see :class:`rungwise.jobs.JobOptions`)."""

        def __get__(self, owner: object, kind: object = None) -> Narrow: ...

        def __set__(self, owner: object, value: Wide) -> None: ...

    AnyPath = str | PathLike[str]
    """A path; a run stands for its folder."""
    AnyModel = PairScorer | AnyPath
    """A model, or its folder or name."""
    AnyData = ImageCaptions | AnyPath
    """Pictures and captions, or the folder or file that holds them."""
    Several = tuple[T, ...] | list[T]
    """A list, or a tuple."""

    OnePath = Given[AnyPath, Path]
    PathOrNone = Given[AnyPath | None, Path | None]
    OneModel = Given[AnyModel, PairScorer | str]
    ModelOrNone = Given[AnyModel | None, PairScorer | str | None]
    OneData = Given[AnyData, ImageCaptions | Path]
    DataOrNone = Given[AnyData | None, ImageCaptions | Path | None]
    Paths = Given[Several[AnyPath] | AnyPath, tuple[Path, ...]]
    Texts = Given[Several[str] | str, tuple[str, ...]]
    Integers = Given[Several[int], tuple[int, ...]]
    Reals = Given[Several[float], tuple[float, ...]]
else:  # what a command line can give
    Given = AnyPath = AnyModel = AnyData = Several = object  # names for type checkers alone
    OneModel, ModelOrNone = str, str | None
    OnePath, PathOrNone = Annotated[Path, Form.PATH], Annotated[Path | None, Form.PATH]
    OneData, DataOrNone = Annotated[Path, Form.DATA], Annotated[Path | None, Form.DATA]
    Paths, Texts = Annotated[tuple[Path, ...], Form.LIST], Annotated[tuple[str, ...], Form.LIST]
    Integers, Reals = Annotated[tuple[int, ...], Form.LIST], Annotated[tuple[float, ...], Form.LIST]


def given(default: Any, metadata: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """A field with a default, for a type that differs from that of the default; ``MISSING`` is no default."""
    return field(default=default, metadata={**metadata, GIVEN: True})


ADVANCED: MappingProxyType[str, Any] = MappingProxyType({"advanced": True})
"""``metadata`` of a field that ``--help`` leaves out and ``--help-all`` shows."""

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
Layout = Annotated[
    str | None,
    tyro.conf.arg(metavar="LAYOUT", help="Read the data as this layout, one of ours or of your own."),
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
