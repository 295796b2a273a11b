"""What clients may hold of a server of a model. Every limit is a setting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Self

from rungwise.core.text import IdleCase, idle_where
from rungwise.serving import ServingLimits


@dataclass(frozen=True)
class ModelLimits(ServingLimits):
    """Limits of a server of a model: those of the search page, with room for one program that asks for many.

    The limits of an index, of its store and of kept pictures are not read.

    Attributes:
        uploads_at_once: Requests with a body being received and answered, in all; more get status 503.
        uploads_per_client: Requests with a body of one client being received and answered; more get status 429.
        upload_bytes_in_all: Bytes of the bodies being received and answered; more get status 503.
        request_bytes: Largest body of a request for embeddings, with its pictures; a larger one gets status 413.
        inputs: Most texts and pictures of one request; more get status 413.
        text_characters: Longest text; a longer one gets status 413. A model may read less of it.

    >>> ModelLimits(inputs=0)
    Traceback (most recent call last):
    rungwise.core.UserError: inputs must be above 0, got 0
    """

    uploads_at_once: int = 128
    uploads_per_client: int = 128
    upload_bytes_in_all: int = 512 * 1024 * 1024
    request_bytes: int = 64 * 1024 * 1024
    inputs: int = 2048
    text_characters: int = 32 * 1024

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        *ServingLimits.IDLE,
        idle_where(
            "thumbnail_pixels thumbnail_bytes store_seconds ready_seconds kept_bytes kept_seconds kept_queries",
            lambda _: True,
            "for a model, which is served without an index",
        ),
        idle_where(
            "request_bytes",
            lambda limits: limits.request_bytes > limits.upload_bytes_in_all,
            "above {upload_bytes_in_all}, which holds for all requests together",
            "give less, or raise {upload_bytes_in_all}",
        ),
    )

    @classmethod
    def of(cls, limits: ServingLimits) -> Self:
        """These limits, with those of any server that differ from their defaults there.

        >>> limits = ModelLimits.of(ServingLimits(connections=8))
        >>> limits.connections, limits.uploads_per_client
        (8, 128)
        """
        if isinstance(limits, cls):
            return limits
        given = {one.name: getattr(limits, one.name) for one in fields(limits)}
        return cls(**{name: value for name, value in given.items() if value != getattr(ServingLimits, name)})
