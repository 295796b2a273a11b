"""``rungwise index``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rungwise.cli.models import encoding_in, read_dual_encoder
from rungwise.cli.terminal import progress_bar, say, say_issues
from rungwise.core.errors import UserError
from rungwise.data.readers import read
from rungwise.index import Index, storage


@dataclass
class MakeIndex:
    """Encode pictures (and their captions, if there are any) so that they can be searched.

    Attributes:
        pictures: Folder of pictures, with or without captions.
        model: Folder of a model, or a hub repository.
        out: Folder of the index.
        overwrite: Replace an index that is there.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        precision: Of picture features that are not at hand; auto takes bfloat16 where it is faster and close enough.
        least_cosine: What auto asks of features in bfloat16: the cosine to those in float32, picture by picture.
        altered_model: Take a model whose files are not as its SHA256SUMS says.
    """

    pictures: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PICTURES")]
    model: str
    out: Path
    overwrite: bool = False
    device: str | None = None
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    least_cosine: float = 0.999
    altered_model: bool = False


def main(arguments: list[str]) -> int:
    """Build, and print what was indexed."""
    asked = tyro.cli(MakeIndex, args=arguments, prog="rungwise index")
    if storage.is_index(asked.out) and not asked.overwrite:
        raise UserError(
            f"{asked.out}: an index stands here already; name another folder, or replace it with --overwrite"
        )
    model = read_dual_encoder(asked.model, asked.device, altered=asked.altered_model)
    data = read(asked.pictures)
    say_issues(data.issues)
    start = time.perf_counter()
    encoding = encoding_in(asked.model, asked.precision, asked.least_cosine)
    with encoding, progress_bar("pictures", len(data)) as advance:
        index = Index.build(
            data,
            model,
            asked.out,
            model_location=str(Path(asked.model).resolve()) if Path(asked.model).exists() else asked.model,
            progress=advance,
            overwrite=asked.overwrite,
        )
    seconds = time.perf_counter() - start
    if index.issues:
        say(f"{len(index.issues)} pictures could not be read and are left out:")
        say_issues(index.issues)
    say(f"{len(index)} pictures, {len(index.captions)} captions indexed in {seconds:.1f} s: {asked.out}")
    say(f'next: rungwise search {asked.out} "a text"   or   rungwise serve {asked.out}')
    return 0
