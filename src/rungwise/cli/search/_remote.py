"""``rungwise search http://HOST:PORT``: what is printed of a server's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rungwise.calibration import RUNGS
from rungwise.cli.search._reasons import HITS, reasons_from
from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.core import UserError
from rungwise.jobs.searches import Served, ask_server

if TYPE_CHECKING:
    from rungwise.cli.search._options import SearchCommand
    from rungwise.serving import Client


def search(asked: SearchCommand) -> SearchOutput:
    """Search with a server.

    Raises:
        UserError: If the server cannot be reached, refuses, or is none of rungwise.
    """
    served = ask_server(asked)
    with served.client.reading_answers():
        output = _output(asked, served)
        return _with_reasons(output, served.client) if asked.why else output


def _output(asked: SearchCommand, served: Served) -> SearchOutput:
    answer = served.answer
    return SearchOutput(
        query=asked.query or "",
        hits=tuple(_shown(served, place, hit) for place, hit in enumerate(served.hits)),
        reading=answer.reading,
        unknown=tuple(map(str, answer.unknown)),
        unknown_words=tuple((one.word, one.near) for one in answer.unknown),
        notes=answer.notes,
        folded=answer.folded,
        captions=served.captions,
        more=answer.more,
        first=asked.offset + 1,
        end=answer.end,
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


def _shown(served: Served, place: int, hit: Mapping[str, Any]) -> SearchedPage:
    end, item_id, has_file = served.answer.end, str(hit["id"]), bool(hit["has_file"])
    columns = {str(name): value for name, value in hit["columns"].items()}
    return SearchedPage(
        id=item_id,
        path=f"{served.client.address}images/{quote(item_id, safe='')}" if has_file else None,
        score=None if hit["score"] is None else float(hit["score"]),
        captions=tuple(map(str, hit["captions"])),
        columns=columns,
        content=partial(served.client.picture, item_id) if has_file else None,
        file_name=str(columns.get("file", item_id)),
        rung=None if end is None else end.rungs[place],
        degree=None if end is None else end.degrees[place],
        names=RUNGS if end is None else end.names,
    )
