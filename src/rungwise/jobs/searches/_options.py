"""Options of a search."""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.core.text import IdleCase, idle_where, idle_without
from rungwise.jobs._job import JobOptions
from rungwise.jobs._options import ADVANCED, AlteredModel, AnyPath, Device, Given, ModelOrNone, Texts, given
from rungwise.jobs._python_values import Form, refused

if TYPE_CHECKING:
    from rungwise.data.files import Picture
    from rungwise.index import Index

    AnyIndex = Given[Index | AnyPath, Index | str]
    """An index, or its folder or address."""
    Pictures = Given[object, tuple[Picture, ...]]
    """Files of pictures, or what :func:`rungwise.data.from_lists` takes for pictures; one, or several."""
else:
    AnyIndex = str
    Pictures = Annotated[tuple[Path, ...], Form.LIST_OF_ANY]


TABLE = "lancedb://"
"""Beginning of the address of a table of LanceDB that somebody else made."""


@dataclass
class Search(JobOptions):
    """Find pictures by a text, by pictures, or by both.

    Attributes:
        index: Folder of the index, or the address of a server. Such as http://HOST:PORT; s3://BUCKET/PREFIX works too.
        query: What to look for. Texts and files of pictures may be added and taken away: "beach" - "people" + dog.jpg.
        where: Only pictures that fulfil this. Such as: taken == '2020-05' and tags has 'beach'.
        k: How many to give at most. The command line counts hits beyond the end of relevance and does not show them; an
            answer of Python has them, without a band.
        image: A picture that results are to be like; repeatable. Python gives files, Pillow pictures, arrays or bytes.
        like: The same by the id of a picture of the index; repeatable.
        unlike: The id of a picture of the index that results are to be unlike; repeatable.
        offset: How many of the best to pass over.
        words: Whether the words of captions and columns are searched too.
        diversity: How much results are to differ. From 0, the best ones, to 1.
        fold: Show near-duplicates as one.
        end: Whether to judge where relevance ends.
        exact: Compare with every picture. An approximate index is left aside.
        rerank: Rank the best ones anew with this model. It reads each picture together with the text.
        rerank_top: How many are ranked anew.
        model: The model that built the index, if it has moved.
        vectors: Column of vectors of a table at lancedb://FOLDER/TABLE.
        id: Column of ids of such a table; its row ids if not given.
        token: Of the server. Better set RUNGWISE_TOKEN: others can read a command line.
    """

    index: Annotated[tyro.conf.Positional[AnyIndex], tyro.conf.arg(metavar="INDEX")] = given(MISSING)
    query: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[QUERY]")] = None
    where: Annotated[str | None, tyro.conf.arg(metavar="EXPRESSION")] = None
    k: int = 10
    image: Annotated[tyro.conf.UseAppendAction[Pictures], tyro.conf.arg(metavar="FILE")] = given(())
    like: Annotated[tyro.conf.UseAppendAction[Texts], tyro.conf.arg(metavar="ID")] = given(())
    unlike: Annotated[tyro.conf.UseAppendAction[Texts], tyro.conf.arg(metavar="ID")] = given((), ADVANCED)
    offset: int = field(default=0, metadata=ADVANCED)
    words: Literal["auto", "on", "off"] = field(default="auto", metadata=ADVANCED)
    diversity: float = field(default=0.0, metadata=ADVANCED)
    fold: bool = field(default=True, metadata=ADVANCED)
    end: Literal["on", "off"] = field(default="on", metadata=ADVANCED)
    exact: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    rerank: Annotated[ModelOrNone, tyro.conf.arg(metavar="MODEL")] = given(None, ADVANCED)
    rerank_top: int = field(default=50, metadata=ADVANCED)
    model: ModelOrNone = given(None, ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    altered_model: Annotated[AlteredModel, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    vectors: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = field(default=None, metadata=ADVANCED)
    id: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = field(default=None, metadata=ADVANCED)
    token: str | None = field(default=None, metadata=ADVANCED)

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        idle_where(
            "exact rerank model device altered_model",
            lambda asked: asked.is_remote,
            "at a server, which decides it",
            "leave it out, or search the folder of the index",
        ),
        idle_where(
            "token",
            lambda asked: not asked.is_remote,
            "in a folder, and is for a server",
            "leave it out, or give the address of a server",
        ),
        idle_where(
            "vectors id",
            lambda asked: not asked.is_table,
            "in what is no table of LanceDB",
            "leave it out, or give lancedb://FOLDER/TABLE",
        ),
        idle_where(
            "words rerank",
            lambda asked: asked.is_table,
            "in a table of somebody else, whose texts and pictures are not read",
            "leave it out",
        ),
        idle_where(
            "diversity exact rerank words model device altered_model",
            lambda asked: asked.compares_nothing,
            "where {where} alone is given, which compares no pictures",
            "leave it out, or add a text, {image} or {like}",
        ),
        idle_where(
            "words rerank", lambda asked: not asked.query, "without words to look for", "leave it out, or add some"
        ),
        idle_without("rerank_top", "rerank", remedy="leave it out, or name a second model"),
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if _is_in_memory(self.query):
            raise UserError("--query got a picture; give it as --image")
        self.image = _read_pictures(self.image)
        super().__post_init__()

    @property
    def compares_nothing(self) -> bool:
        """A filter alone is given."""
        return self.where is not None and not (self.query or self.image or self.like or self.unlike)

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked."""
        return isinstance(self.index, str) and self.index.startswith(("http://", "https://"))

    @property
    def is_table(self) -> bool:
        """Whether a table of LanceDB is searched that somebody else made."""
        return isinstance(self.index, str) and self.index.startswith(TABLE)


def _is_in_memory(given: object) -> bool:
    """Whether something is a Pillow picture, an array or bytes; the libraries are not imported."""
    names = {(one.__module__.partition(".")[0], one.__name__) for one in type(given).__mro__}
    return isinstance(given, bytes) or not names.isdisjoint({("PIL", "Image"), ("numpy", "ndarray")})


def _read_pictures(given: Any) -> tuple[Any, ...]:
    """One picture or several, each in memory as one that a model reads."""
    pictures = tuple(given) if isinstance(given, list | tuple) else (given,)
    if all(isinstance(one, str | os.PathLike) for one in pictures):
        return pictures
    from rungwise.data import from_lists
    from rungwise.data.files import PackedPicture

    read: list[Any] = []
    for place, one in enumerate(pictures):
        if not (_is_in_memory(one) or isinstance(one, str | os.PathLike | PackedPicture)):
            raise refused("image", given, "a picture or its path, or a list of them")
        read.append(from_lists([one], ids=[place], name="--image").paths[0] if _is_in_memory(one) else one)
    return tuple(read)


def check(asked: Search) -> None:
    """Refuse meaningless options before anything is opened."""
    if asked.query is not None and not asked.query.strip():
        raise UserError("the query is empty; write a few words about the picture")
    if not (asked.query or asked.image or asked.like or asked.unlike or asked.where):
        raise UserError('give a text, --image FILE or --like ID, as in: rungwise search INDEX "a red boat"')
    for name, value, least in (("k", asked.k, 1), ("offset", asked.offset, 0), ("rerank-top", asked.rerank_top, 1)):
        if value < least:
            raise UserError(f"--{name} must be at least {least}, got {value}")
    if not 0 <= asked.diversity <= 1:
        raise UserError(f"--diversity must lie in 0..1, got {asked.diversity:g}")
