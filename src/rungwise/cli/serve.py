"""``rungwise serve``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.models import read_dual_encoder
from rungwise.cli.terminal import say
from rungwise.index import Index
from rungwise.serving import serve


@dataclass
class Serve:
    """Serve the search page until Ctrl-C.

    Attributes:
        index: Folder of the index.
        model: The model that built the index, if it has moved.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        altered_model: Take a model whose files are not as its SHA256SUMS says.
        host: Address to listen on; 0.0.0.0 lets other machines in, who then can see every picture of the index.
        port: 0 takes any that is free.
        browser: Open the page.
    """

    index: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="INDEX")]
    model: str | None = None
    device: str | None = None
    altered_model: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    browser: bool = True


def main(arguments: list[str]) -> int:
    """Serve."""
    asked = tyro.cli(Serve, args=arguments, prog="rungwise serve")
    index = Index.open(asked.index)
    place = asked.model or index.manifest.model_location
    model = read_dual_encoder(place, asked.device, altered=asked.altered_model)
    serve(
        index,
        model,
        host=asked.host,
        port=asked.port,
        open_browser=asked.browser,
        ready=lambda address: say(f"{len(index)} pictures at {address}   (Ctrl-C ends)"),
    )
    return 0
