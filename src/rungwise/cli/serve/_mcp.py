"""``rungwise mcp``."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from rungwise.cli.frame import Limits, Port, parse
from rungwise.cli.serve._entrance import IDLE_OPEN, exposure, listed, say_how_to_ask, settings_of, token_of, tokens_of
from rungwise.cli.serve._streams import input_until_interrupted, output_kept_free
from rungwise.core import UserError, require
from rungwise.core.text import idle_where, idle_without, refuse_idle
from rungwise.jobs import ADVANCED, AlteredModel, Device, flag, near_words, read_model_of, say
from rungwise.serving import ServingLimits

if TYPE_CHECKING:
    from rungwise.integrations.mcp import SearchServer
    from rungwise.models import DualEncoder
    from rungwise.serving import Client

INDEX_TOKEN = "RUNGWISE_INDEX_TOKEN"
"""Environment variable of the token of the server that INDEX names, where it is another than RUNGWISE_TOKEN."""

_EXAMPLES = (
    "rungwise mcp photos.index",
    "rungwise mcp http://127.0.0.1:8000/",
    "rungwise mcp photos.index --http --port 8010",
)


@dataclass
class Mcp:
    """Let an assistant search an index, by the Model Context Protocol.

    Speaks over its standard input and output, as programs with an assistant start it, until the input ends. With --http
    it listens instead.

    Attributes:
        index: Folder of the index. Or the address of a rungwise server, http://HOST:PORT/. Its token is that of
            RUNGWISE_INDEX_TOKEN, else the one in the address, else that of RUNGWISE_TOKEN.
        model: The model that built the index, if it has moved.
        previews: The most small images of an answer, 0 to 16.
        allow_grades: Also offer a tool that stores grades of pictures, right, close or wrong.
        http: Listen at an address, until Ctrl-C. The protocol is at its path /mcp.
        host: Address to listen on. With 0.0.0.0 other machines are let in, with the token that is then printed.
        token: A password for every request. Better set RUNGWISE_TOKEN: others can read a command line.
        tokens: A file of several tokens, one NAME RIGHT TOKEN a line, as the command rungwise token prints them. The
            right read lets search, grade also grade. Or set RUNGWISE_TOKENS to such lines.
        open: No token, beyond this machine too. Whoever can reach the address may search.
        allowed_host: Another name under which programs ask, such as that of a proxy; repeatable.
    """

    index: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="INDEX")]
    model: str | None = None
    device: Device = field(default=None, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    previews: int = 4
    allow_grades: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    http: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    host: str = "127.0.0.1"
    port: Port = 8000
    token: str | None = None
    tokens: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    allowed_host: tyro.conf.UseAppendAction[tuple[str, ...]] = field(default=(), metadata=ADVANCED)
    limits: Limits = field(default_factory=ServingLimits, metadata=ADVANCED)

    IDLE = (
        idle_without("host port token tokens open allowed_host limits", "http"),
        IDLE_OPEN,
        idle_where(
            "model device altered_model",
            lambda asked: _is_server(asked.index),
            "for the address of a server, which has a model of its own",
        ),
    )


def main(arguments: list[str]) -> int:
    """Serve an assistant until the input ends, or over HTTP until Ctrl-C."""
    asked = parse(Mcp, arguments, "rungwise mcp", examples=_EXAMPLES)
    refuse_idle(asked.limits, option=lambda name: flag(f"limits.{name}"))
    require("mcp", "rungwise mcp")
    from rungwise.integrations.mcp import MOST_PREVIEWS

    if not 0 <= asked.previews <= MOST_PREVIEWS:
        raise UserError(f"--previews must be 0 to {MOST_PREVIEWS}, got {asked.previews}")
    if asked.http:
        return _over_http(asked)
    with ExitStack() as stack:
        with output_kept_free():
            server = _server(asked, stack)
        with input_until_interrupted():
            server.run()
    return 0


def _over_http(asked: Mcp) -> int:
    tokens = tokens_of(asked)
    token, beyond = token_of(asked, tokens)
    from rungwise.serving import serve_app

    with ExitStack() as stack:
        server = _server(asked, stack)
        from rungwise.integrations.mcp import PATH, create_mcp_app

        if beyond:
            say(exposure("pictures and captions can be searched", guarded=not asked.open))
        if tokens is not None:
            say(listed(tokens))

        def ready(address: str) -> None:
            say(f"the Model Context Protocol at {address.rstrip('/')}{PATH}   (Ctrl-C ends)")
            say_how_to_ask(asked.host, address, token, PATH)

        serve_app(
            lambda settings, _: create_mcp_app(server, settings),
            settings=settings_of(asked, token, tokens),
            open_browser=False,
            ready=ready,
        )
    return 0


def _server(asked: Mcp, stack: ExitStack) -> SearchServer:
    """The server of the protocol; what it stands on ends with the stack."""
    from rungwise.integrations.mcp import SearchServer

    client = _remote(asked) if _is_server(asked.index) else _local(asked, stack)
    return SearchServer(client, previews=asked.previews, grades=asked.allow_grades)


def _remote(asked: Mcp) -> Client:
    """Connection to a server that runs, which has been asked once."""
    from rungwise.serving import Client

    client = Client.at(asked.index, os.environ.get(INDEX_TOKEN) or None)
    client.about()
    return client


def _local(asked: Mcp, stack: ExitStack) -> Client:
    """Connection to a server of the index, in the background of this process."""
    from rungwise.core.disk import usable_cache
    from rungwise.index import Index
    from rungwise.integrations.mcp import local_client

    place: Any = asked.index if "://" in asked.index else Path(asked.index)
    index = Index.open(place)
    usable_cache()  # where a picture that is searched with is kept
    model = _model(asked, index, asked.model)
    if line := index.manifest.stand_in(model):
        say(line)
    return stack.enter_context(
        local_client(index, model, meaning=near_words(), reload=lambda index: _model(asked, index, None))
    )


def _model(asked: Mcp, index: Any, place: str | None) -> DualEncoder:
    return read_model_of(index, place, asked.device, altered=asked.altered_model)


def _is_server(place: str) -> bool:
    return place.startswith(("http://", "https://"))
