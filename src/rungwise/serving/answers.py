"""What the interface answers: the shapes that the OpenAPI document describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fastapi.responses import JSONResponse


@dataclass(frozen=True)
class Status:
    """What is searched, and the limits of a request.

    Attributes:
        name: Of the collection.
        pictures: How many.
        captions: How many distinct ones.
        skipped: Pictures that could not be read when the index was built.
        dimension: Of a vector.
        similarity: Of a picture and a text.
        model: The beginning of its fingerprint.
        index_version: Positions of pictures belong to it.
        problem: Why another index that stands in the folder now is not served.
        max_results: The largest k.
        max_upload_bytes: Of a picture.
        max_upload_pixels: Of a picture.
        version: Of rungwise.
        examples: A few captions.
    """

    name: str
    pictures: int
    captions: int
    skipped: int
    dimension: int
    similarity: str
    model: str
    index_version: str
    problem: str | None
    max_results: int
    max_upload_bytes: int
    max_upload_pixels: int
    version: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A picture of the index.

    Attributes:
        position: In the index.
        id: The user's.
        captions: Its own.
        has_file: Whether it can be shown.
    """

    position: int
    id: str
    captions: tuple[str, ...]
    has_file: bool


@dataclass(frozen=True)
class Result(Picture):
    """A picture that was found.

    Attributes:
        score: How alike it is.
    """

    score: float


@dataclass(frozen=True)
class Caption:
    """A caption that was found.

    Attributes:
        text: The caption.
        score: How well it fits.
        positions: Of the pictures that have it.
    """

    text: str
    score: float
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """Pictures, best first.

    Attributes:
        index_version: To which the positions belong.
        results: The pictures.
        scale: Scores that a bar shows as empty and as full.
    """

    index_version: str
    results: tuple[Result, ...]
    scale: tuple[float, float]


@dataclass(frozen=True)
class FoundByText(Found):
    """What a text found.

    Attributes:
        query: The text.
    """

    query: str


@dataclass(frozen=True)
class FoundSimilar(Found):
    """What a picture of the index found.

    Attributes:
        of: That picture.
    """

    of: Picture


@dataclass(frozen=True)
class FoundByPicture(Found):
    """What any picture found.

    Attributes:
        captions: Those that fit best.
        caption_scale: As ``scale``.
        has_captions: Whether the collection has any.
    """

    captions: tuple[Caption, ...]
    caption_scale: tuple[float, float]
    has_captions: bool


@dataclass(frozen=True)
class Refusal:
    """Every refusal.

    Attributes:
        error: One line: what is wrong, and what to do.
    """

    error: str


Answer = Status | Found | Refusal

_REASONS = {
    400: "The request makes no sense.",
    401: "The token is missing or wrong.",
    403: "A page of another site asked.",
    404: "There is no such picture, or its file is gone.",
    408: "The body of the request did not come in time.",
    409: "The position belongs to another version of the index.",
    413: "The picture has too many bytes or pixels.",
    421: "The server does not answer under that name.",
    422: "Something in the request is not as it should be.",
    429: "Too many pictures of this client are under way.",
    503: "The server has too much to do; try again after the seconds of Retry-After.",
}
_EVERYWHERE = (400, 401, 403, 421, 503)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation for its OpenAPI document: these, and those that any request may get.

    >>> sorted(refusals(404))
    [400, 401, 403, 404, 421, 503]
    """
    return {status: {"model": Refusal, "description": _REASONS[status]} for status in {*_EVERYWHERE, *statuses}}


def json_answer(content: Answer, status: int = 200, headers: Mapping[str, str] | None = None) -> JSONResponse:
    r"""An answer as JSON, which may not hold the halves of characters that stand for undecodable bytes of file names.

    >>> json_answer(Refusal("no \udcff here")).body
    b'{"error":"no ? here"}'
    """
    return JSONResponse(_encodable(asdict(content)), status, headers)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    return value
