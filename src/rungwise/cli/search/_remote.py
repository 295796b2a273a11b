"""``rungwise search http://HOST:PORT``: a server answers, and no model is loaded here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

from rungwise.calibration import RUNGS
from rungwise.cli._serve import TOKEN
from rungwise.cli.search._reasons import HITS, reasons_from
from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.core import UserError
from rungwise.serving import Client, RankingOptions

if TYPE_CHECKING:
    from rungwise.cli.search._options import SearchCommand
    from rungwise.index import End


def search(asked: SearchCommand) -> SearchOutput:
    """Search with a server.

    Raises:
        UserError: If the server cannot be reached, refuses, or is none of rungwise.
    """
    address, token = _address(asked)
    client = Client(address, token)
    sent = [client.send(file) for file in asked.image]
    answer = client.search(
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
        answered = _answered(asked, client, answer, captions)
        return _with_reasons(answered, client) if asked.why else answered
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{client.address}: what answers there is no server of this rungwise; correct the address"
        ) from error


def _answered(
    asked: SearchCommand, client: Client, answer: Mapping[str, Any], captions: Mapping[str, Any]
) -> SearchOutput:
    unknown, end = answer["unknown"], _end(answer) if asked.end == "on" else None
    return SearchOutput(
        query=asked.query or "",
        hits=tuple(_shown(client, hit, end) for hit in answer["hits"]),
        reading=str(answer["reading"]),
        unknown=tuple(str(one["line"]) for one in unknown),
        unknown_words=tuple((str(one["word"]), tuple(map(str, one["near"]))) for one in unknown),
        notes=tuple(map(str, answer["notes"])),
        folded={str(hit["id"]): tuple(map(str, hit["folded"])) for hit in answer["hits"] if hit["folded"]},
        captions=tuple((str(one["text"]), float(one["score"])) for one in captions.get("captions", ())),
        more=bool(answer["more"]),
        first=asked.offset + 1,
        end=end,
    )


def _with_reasons(answered: SearchOutput, client: Client) -> SearchOutput:
    """The output, whose first hits have where the words were found in them."""
    if not client.about().get("explains"):
        raise UserError(
            f"--why: {client.address} cannot say why; whoever runs it can start it with --rerank and a model of kind"
            " scan, sgr or saf"
        )
    first = (replace(hit, why=reasons_from(client, answered.query, hit.id)) for hit in answered.hits[:HITS])
    return replace(answered, hits=(*first, *answered.hits[HITS:]))


def _end(answer: Mapping[str, Any]) -> End | None:
    """End of relevance in the server's answer; None where it was not judged."""
    from rungwise.index import End

    end = answer.get("end")
    if end is None:
        return None
    hits = answer["hits"]
    return End(
        tuple(int(hit["rung"]) for hit in hits),
        tuple(float(hit["degree"]) for hit in hits),
        shown=int(end["shown"]),
        belief=float(end["belief"]),
        source=str(end["source"]),
        advice=tuple(map(str, end["advice"])),
        names=_names(end),
        remark=str(end["remark"]),
    )


def _names(end: Mapping[str, Any]) -> tuple[str, str, str]:
    first, second, third = map(str, end["names"])
    return first, second, third


def _shown(client: Client, hit: Mapping[str, Any], end: End | None) -> SearchedPage:
    rung, degree = (hit.get("rung"), hit.get("degree")) if end is not None else (None, None)
    item_id, has_file = str(hit["id"]), bool(hit["has_file"])
    score = hit["score"]
    columns = {str(name): value for name, value in hit["columns"].items()}
    return SearchedPage(
        id=item_id,
        path=f"{client.address}images/{quote(item_id, safe='')}" if has_file else None,
        score=None if score is None else float(score),
        captions=tuple(map(str, hit["captions"])),
        columns=columns,
        content=partial(client.picture, item_id) if has_file else None,
        file_name=str(columns.get("file", item_id)),
        rung=None if rung is None else int(rung),
        degree=None if degree is None else float(degree),
        names=RUNGS if end is None else end.names,
    )


def _address(asked: SearchCommand) -> tuple[str, str | None]:
    """Address without a token, and the token: from the option, the address, or the environment."""
    address = str(asked.index)
    try:
        parts = urlsplit(address)
    except ValueError:
        return address, asked.token
    inside = parse_qs(parts.query).get("token", [""])[0]
    token = asked.token or inside or os.environ.get(TOKEN) or None
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")), token
