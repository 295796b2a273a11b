"""Search in an index through its server; no model is loaded here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.index.update import SIDE
from rungwise.serving import Client, RankingOptions
from rungwise.serving.schemas import answer_of_json

if TYPE_CHECKING:
    from rungwise.index import Answer
    from rungwise.jobs.searches._options import Search


@dataclass(frozen=True)
class Served:
    """What a server answered.

    Attributes:
        client: Connection to the server.
        answer: The answer; a hit of a filter alone has no score (NaN).
        hits: The hits as they were sent: id, score, captions, columns, folded and so on.
        captions: Captions that are most like the one picture that was given, with their scores.
    """

    client: Client
    answer: Answer
    hits: tuple[Mapping[str, Any], ...]
    captions: tuple[tuple[str, float], ...] = ()

    __repr__ = short_repr


def ask_server(asked: Search) -> Served:
    """Search with a server.

    Raises:
        UserError: If the server cannot be reached, refuses, or is none of rungwise.
    """
    client = Client.at(str(asked.index), asked.token)
    sent = [client.send(one if isinstance(one, Path) else one.read()) for one in asked.image]
    found = client.search(
        asked.query or "",
        asked.k,
        offset=asked.offset,
        where=asked.where or "",
        like=asked.like,
        unlike=asked.unlike,
        pictures=sent,
        options=RankingOptions(
            fold=asked.fold,
            diversity=asked.diversity or None,
            words=asked.words,
            end=None if asked.end == "on" else False,
        ),
        everything=True,
    )
    captions: Mapping[str, Any] = {}
    if len(sent) == 1 and not (asked.query or asked.like or asked.unlike):
        captions = client.captions(sent[0], asked.k)
    with client.reading_answers():
        return Served(
            client,
            answer_of_json(found, ends=asked.end == "on").with_pictures(partial(_small_picture, client)),
            tuple(dict(hit) for hit in found["hits"]),
            tuple((str(one["text"]), float(one["score"])) for one in captions.get("captions", ())),
        )


def _small_picture(client: Client, item_id: str) -> bytes | None:
    try:
        return client.picture(item_id, side=SIDE)
    except UserError:
        return None
