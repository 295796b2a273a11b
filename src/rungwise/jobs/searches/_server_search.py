"""Search in an index through its server; no model is loaded here."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.index import Answer, End, Hit
from rungwise.index.query import UnknownWord
from rungwise.index.update import SIDE
from rungwise.serving import TOKEN, Client, RankingOptions

if TYPE_CHECKING:
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
    address, token = _address(asked)
    client = Client(address, token)
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
    try:
        return Served(
            client,
            _answer(found, asked.end == "on").with_pictures(partial(_small_picture, client)),
            tuple(dict(hit) for hit in found["hits"]),
            tuple((str(one["text"]), float(one["score"])) for one in captions.get("captions", ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{client.address}: what answers there is no server of this rungwise; correct the address"
        ) from error


def _answer(found: Mapping[str, Any], ends: bool) -> Answer:
    return Answer(
        tuple(Hit(str(hit["id"]), math.nan if hit["score"] is None else float(hit["score"])) for hit in found["hits"]),
        folded={str(hit["id"]): tuple(map(str, hit["folded"])) for hit in found["hits"] if hit["folded"]},
        unknown=tuple(_unknown(one) for one in found["unknown"]),
        reading=str(found["reading"]),
        notes=tuple(map(str, found["notes"])),
        more=bool(found["more"]),
        end=_end(found) if ends else None,
    )


def _unknown(word: Mapping[str, Any]) -> UnknownWord:
    near = tuple(map(str, word["near"]))
    return UnknownWord(str(word["word"]), near, found=bool(word["found"]), misspelt=bool(word["misspelt"]))


def _end(found: Mapping[str, Any]) -> End | None:
    """End of relevance in the server's answer; None where it was not judged."""
    end = found.get("end")
    if end is None:
        return None
    first, second, third = map(str, end["names"])
    return End(
        tuple(int(hit["rung"]) for hit in found["hits"]),
        tuple(float(hit["degree"]) for hit in found["hits"]),
        shown=int(end["shown"]),
        belief=float(end["belief"]),
        source=str(end["source"]),
        advice=tuple(map(str, end["advice"])),
        names=(first, second, third),
        remark=str(end["remark"]),
    )


def _small_picture(client: Client, item_id: str) -> bytes | None:
    try:
        return client.picture(item_id, side=SIDE)
    except UserError:
        return None


def _address(asked: Search) -> tuple[str, str | None]:
    """Address without a token, and the token: from the option, the address, or the environment."""
    address = str(asked.index)
    try:
        parts = urlsplit(address)
    except ValueError:
        return address, asked.token
    inside = parse_qs(parts.query).get("token", [""])[0]
    token = asked.token or inside or os.environ.get(TOKEN) or None
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")), token
