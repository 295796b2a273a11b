"""The tools that an assistant calls; each asks a server of rungwise and refuses in one line."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import Field

from rungwise.core import Limits, UserError
from rungwise.core.output import line_of
from rungwise.integrations._mcp_answers import (
    AssistantAnswer,
    AssistantIndex,
    StoredGrade,
    answer_of,
    index_of,
    text_of,
)
from rungwise.serving import Client
from rungwise.serving.access import Right, may
from rungwise.serving.state import THUMBNAIL

MOST_PREVIEWS = 16
"""Largest number of small images of an answer."""

LARGEST_BODY = 4 << 20
"""Most bytes of a call over HTTP, and most characters of a picture as base64."""

_MOST_PICTURES = 100
_PREVIEW_BYTES = 700_000
"""Bytes of all previews of an answer as base64; programs are known that refuse answers above 1 MiB."""
_LONGEST_ID = 8000
_LONGEST_MESSAGE = 500

_Words = Annotated[
    str,
    Field(
        max_length=Limits.query_characters,
        description='What the pictures show, in the language of the captions. Or parts with signs: "beach" - "people".',
    ),
]
_Id = Annotated[str, Field(min_length=1, max_length=_LONGEST_ID, description="Id of a picture, as an answer gave it.")]
_Filter = Annotated[
    str,
    Field(
        max_length=Limits.query_characters,
        description="Which pictures may be found, such as: year >= 2020 and tags has 'beach'. See describe_index.",
    ),
]
_K = Annotated[int, Field(ge=1, le=_MOST_PICTURES, description="The most pictures of the list.")]
_Offset = Annotated[int, Field(ge=0, le=10_000, description="How many of the best pictures are passed over.")]
_Beyond = Annotated[bool, Field(description="Whether pictures beyond the end of relevance are listed too.")]
_Previews = Annotated[
    int | None, Field(ge=0, le=MOST_PREVIEWS, description="The most small images; the server may send fewer.")
]
_Picture = Annotated[
    str,
    Field(
        max_length=LARGEST_BODY,
        description="File of a picture that results are to be like, as base64. For one of the index give `like`.",
    ),
]
_Like = Annotated[str, Field(max_length=_LONGEST_ID, description="Id of a picture of the index likewise.")]


class Tools:
    """The tools of one server.

    Args:
        client: Connection to the server that searches.
        previews: The most small images of an answer.
        grades: Whether grades may be stored.
    """

    def __init__(self, client: Client, previews: int, *, grades: bool) -> None:
        self._client, self._previews, self._grades = client, previews, grades

    def search(
        self,
        words: _Words = "",
        picture: _Picture = "",
        like: _Like = "",
        filter: _Filter = "",
        k: _K = 8,
        offset: _Offset = 0,
        beyond: _Beyond = False,
        previews: _Previews = None,
    ) -> Annotated[CallToolResult, AssistantAnswer]:
        """Find pictures by words, by a picture, by a filter, or by several of them together.

        The list ends where relevance ends, and `end` says in words where that is. Words and pictures are combined; a
        filter without either lists the newest pictures that it lets through.
        """
        if not (words.strip() or picture or like or filter.strip()):
            raise ToolError("nothing is searched for; give words, picture, like or filter")
        with _refusals_in_one_line(self._client):
            found = self._client.search(
                words,
                k,
                offset=offset,
                where=filter,
                like=[like] if like else [],
                pictures=[_decoded(picture)] if picture else [],
                everything=beyond,
            )
            return self._result(found, offset, filter, previews)

    def similar(
        self,
        id: _Id,
        filter: _Filter = "",
        k: _K = 8,
        offset: _Offset = 0,
        beyond: _Beyond = False,
        previews: _Previews = None,
    ) -> Annotated[CallToolResult, AssistantAnswer]:
        """Find the pictures that are most like one of the index; that picture itself is not among them."""
        with _refusals_in_one_line(self._client):
            found = self._client.similar(id, k, offset=offset, where=filter, everything=beyond)
            return self._result(found, offset, filter, previews)

    def describe_index(self) -> Annotated[CallToolResult, AssistantIndex]:
        """Say what is searched: number of pictures, columns with examples of filters, and what judges the end."""
        with _refusals_in_one_line(self._client):
            about = self._client.about()
            index = index_of(about, self._judge(about), grades=self._grades)
        columns = ", ".join(f"{one.name} ({one.type})" for one in index.columns)
        text = f"{index.pictures} pictures and {index.captions} captions; columns: {columns or 'none'}."
        text += f" The end of relevance is judged by: {index.judged_by or 'unknown'}."
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=asdict(index))

    def grade(
        self,
        words: Annotated[
            str, Field(min_length=1, max_length=Limits.query_characters, description="Words of the search.")
        ],
        id: _Id,
        grade: Annotated[
            Literal["right", "close", "wrong"] | None, Field(description="The grade; null takes an earlier one back.")
        ],
        context: Context,
    ) -> Annotated[CallToolResult, StoredGrade]:
        """Store a person's grade of a picture that a search with words found. Only on a person's own word."""
        right: Right = "grade"
        request = context.request_context.request
        if request is not None and not may(request, right):
            raise ToolError(f"the token has not the right {right}; ask whoever runs this server")
        with _refusals_in_one_line(self._client):
            self._client.grade(words, id, grade)
        stored = StoredGrade(words, id, grade)
        text = "the earlier grade is taken back." if grade is None else f"stored: {grade}."
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=asdict(stored))

    def _judge(self, about: Mapping[str, Any]) -> str:
        """What judges the end of a search with words; empty where none can be made."""
        try:
            found = self._client.search(next(iter(about["examples"]), "a"), 1)
        except UserError:
            return ""
        return "" if found["end"] is None else str(found["end"]["source"])

    def _result(self, found: Mapping[str, Any], offset: int, filter: str, previews: int | None) -> CallToolResult:
        answer = answer_of(found, offset=offset, filtered=bool(filter.strip()))
        most = self._previews if previews is None else min(previews, self._previews)
        images = self._images([hit.id for hit in answer.hits[:most]])
        answer = replace(answer, previews=list(images))
        text = TextContent(type="text", text=text_of(answer))
        # Images stand in the content alone: a program that passes structured content on as text would repeat them.
        return CallToolResult(content=[text, *images.values()], structured_content=asdict(answer))

    def _images(self, ids: list[str]) -> dict[str, ImageContent]:
        """Small images by id, of the pictures that can be shown, while there is room."""
        images: dict[str, ImageContent] = {}
        room = _PREVIEW_BYTES
        for one in ids:
            try:
                small = self._client.picture(one, side=THUMBNAIL)
            except UserError:
                continue  # a picture without a file, or one that is gone: its id is missing among the previews
            data = base64.b64encode(small).decode("ascii")
            if small.startswith(b"\xff\xd8") and len(data) <= room:
                room -= len(data)
                images[one] = ImageContent(type="image", data=data, mime_type="image/jpeg")
        return images


@contextmanager
def _refusals_in_one_line(client: Client) -> Iterator[None]:
    """Make refusals of the server that searches those of a tool, without its address where it did answer."""
    try:
        with client.reading_answers():
            yield
    except UserError as error:
        reason = error.__cause__ if isinstance(error.__cause__, UserError) else error
        raise ToolError(cut(line_of(reason))) from None


def _decoded(picture: str) -> bytes:
    """The file of a picture that was sent as base64, perhaps with the head of a data address."""
    head, comma, rest = picture.partition(",")
    try:
        decoded = base64.b64decode(
            "".join((rest if comma and head.startswith("data:") else picture).split()), validate=True
        )
    except ValueError:
        raise ToolError("picture: is not base64; send the bytes of a file as base64, or give an id as like") from None
    if not decoded:
        raise ToolError("picture: holds no bytes; send the bytes of a file as base64")
    return decoded


def cut(line: str) -> str:
    """A message of a length that an assistant can read."""
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"
