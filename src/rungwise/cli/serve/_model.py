"""``rungwise serve-model``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rungwise.cli.frame import parse
from rungwise.cli.serve._entrance import IDLE_OPEN, exposure, listed, say_how_to_ask, settings_of, token_of, tokens_of
from rungwise.core.text import refuse_idle
from rungwise.jobs import ADVANCED, AlteredModel, Device, flag, read_dual_encoder, say, say_now
from rungwise.model_server import ModelLimits

_EXAMPLES = (
    "rungwise serve-model runs/vsepp/model",
    "rungwise serve-model exported --host 0.0.0.0 --open --allowed-host rungwise",
    "rungwise serve-model hf:google/siglip2-base-patch32-256 --name siglip2",
)


@dataclass
class ServeModel:
    """Encode pictures and texts for other programs, until Ctrl-C.

    Answers POST /predict in the form of Immich's machine-learning service, and POST /v1/embeddings in OpenAI's.

    Attributes:
        model: A model that gives vectors: a folder, an export, or a published one.
        name: Name under which the model answers; repeatable. Requests for another are then refused. Without it, any
            name is answered, and said once.
        host: Address to listen on. With 0.0.0.0 other machines are let in, with the token that is then printed.
        port: Number after the colon; 0 takes any free one.
        token: A password for every request. Better set RUNGWISE_TOKEN: others can read a command line.
        tokens: A file of several tokens, one NAME RIGHT TOKEN a line, as the command rungwise token prints them. The
            right watch asks for /ping and /metrics, read for vectors too. Or set RUNGWISE_TOKENS to such lines.
        open: No token, beyond this machine too. Immich sends none.
        allowed_host: Another name under which programs ask, such as that of a container; repeatable.
        log: Write a line of JSON for every request to the standard error.
        limits: What clients may hold of the server.
    """

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    device: Device = field(default=None, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    name: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    host: str = "127.0.0.1"
    port: int = 3003
    token: str | None = None
    tokens: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    allowed_host: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    log: Literal["none", "json"] = field(default="none", metadata=ADVANCED)
    limits: ModelLimits = field(default_factory=ModelLimits, metadata=ADVANCED)

    IDLE = (IDLE_OPEN,)


def main(arguments: list[str]) -> int:
    """Serve a model until Ctrl-C."""
    asked = parse(ServeModel, arguments, "rungwise serve-model", examples=_EXAMPLES)
    refuse_idle(asked.limits, option=lambda name: flag(f"limits.{name}"))
    tokens = tokens_of(asked)
    token, beyond = token_of(asked, tokens)
    from rungwise.model_server import create_model_app
    from rungwise.serving import RequestLog, serve_app

    model = read_dual_encoder(asked.model, asked.device, altered=asked.altered_model)
    if model.similarity.kind not in ("cosine", "shifted_cosine"):
        say(f"vectors are compared by {model.similarity.kind}: programs that compare by cosine rank otherwise")
    if model.reads_words:
        model.encode_text(["a"])  # what a first call loads and compiles would take long beside clients
    if beyond:
        say(exposure("pictures and texts can be encoded", guarded=not asked.open))
    if tokens is not None:
        say(listed(tokens))

    def ready(address: str) -> None:
        say(f"vectors of {model.dimension} numbers at {address}   (Ctrl-C ends)")
        say_how_to_ask(asked.host, address, token)

    serve_app(
        lambda settings, _: create_model_app(model, settings=settings, names=asked.name, say=say_now),
        settings=settings_of(asked, token, tokens, log=RequestLog(sys.stderr) if asked.log == "json" else None),
        open_browser=False,
        ready=ready,
    )
    return 0
