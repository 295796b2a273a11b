"""``rungwise search``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.models import read_dual_encoder, say_cut
from rungwise.cli.terminal import say
from rungwise.core.errors import UserError
from rungwise.index import Index, Searcher


@dataclass
class Search:
    """Find pictures by a text, or pictures and captions by a picture.

    Attributes:
        index: Folder of the index.
        text: What to look for.
        image: A picture to look for instead.
        k: How many to show.
        model: The model that built the index, if it has moved.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        altered_model: Take a model whose files are not as its SHA256SUMS says.
    """

    index: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="INDEX")]
    text: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[TEXT]")] = None
    image: Path | None = None
    k: int = 10
    model: str | None = None
    device: str | None = None
    altered_model: bool = False


def main(arguments: list[str]) -> int:
    """Print the hits."""
    asked = tyro.cli(Search, args=arguments, prog="rungwise search")
    if (asked.text is None) == (asked.image is None):
        raise UserError('give either a text or --image FILE, as in: rungwise search INDEX "a red boat"')
    if asked.k < 1:
        raise UserError(f"--k must be at least 1, got {asked.k}")
    index = Index.open(asked.index)
    place = asked.model or index.manifest.model_location
    model = read_dual_encoder(place, asked.device, altered=asked.altered_model)
    searcher = Searcher(index, model)
    if line := index.stand_in(model):
        say(line)
    if asked.text is not None:
        say_cut(model, [asked.text])
        hits, captions = searcher.search_text(asked.text, asked.k), []
    else:
        assert asked.image is not None
        vector = searcher.encode_picture(asked.image)
        hits = index.search(vector, asked.k)[0]
        captions = searcher.captions_near(vector, asked.k)
    items = index.found([hit.id for hit in hits])
    width = max((len(hit.id) for hit in hits), default=0)
    say(f"{'score':<6} {'picture':<{width}} file")
    for hit in hits:
        say(f"{hit.score:<6.3f} {hit.id:<{width}} {items[hit.id].path or 'no file'}")
    if captions:
        say("\nscore  caption")
        for caption in captions:
            say(f"{caption.score:<6.3f} {caption.text}")
    return 0
