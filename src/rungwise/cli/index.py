"""``rungwise index``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import tyro

from rungwise.cli.models import DEFAULT, encoding_in, location, read_dual_encoder, say_cut, say_default
from rungwise.cli.parsing import parse
from rungwise.cli.terminal import progress_bar, say, say_issues
from rungwise.core.errors import UserError
from rungwise.data.features import FeatureRows
from rungwise.data.readers import read
from rungwise.index import Index, storage
from rungwise.index.encoding import require_pictures

_EXAMPLES = ("rungwise index photos", "rungwise index photos --model run/model --out index")


@dataclass
class MakeIndex:
    """Encode pictures (and their captions, if there are any) so that they can be searched.

    Attributes:
        pictures: Folder of pictures, with or without captions.
        model: Folder of a model, a hub repository, or a published model: hf:, open_clip: or st:, and a folder or a
            name; default a published one, which is said and fetched.
        out: Folder of the index; default beside the pictures, PICTURES.index.
        overwrite: Replace an index that is there.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        precision: Of picture features that are not at hand; auto takes bfloat16 where it is faster and close enough.
        least_cosine: What auto asks of features in bfloat16: the cosine to those in float32, picture by picture.
        altered_model: Take a model whose files are not as its SHA256SUMS says.
    """

    pictures: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PICTURES")]
    model: str | None = None
    out: Path | None = None
    overwrite: bool = False
    device: str | None = None
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    least_cosine: float = 0.999
    altered_model: bool = False


def main(arguments: list[str]) -> int:
    """Build, and print what was indexed."""
    asked = parse(MakeIndex, arguments, "rungwise index", examples=_EXAMPLES)
    out = asked.out or beside(asked.pictures)
    if storage.is_index(out) and not asked.overwrite:
        raise UserError(f"{out}: an index stands here already; name another folder, or replace it with --overwrite")
    name = asked.model or str(DEFAULT)
    model = read_dual_encoder(name, asked.device, altered=asked.altered_model) if asked.model else None
    data = read(asked.pictures)
    say_issues(data.issues)
    if model is None:
        require_pictures(data)  # for a folder without pictures nothing is fetched
        if isinstance(data.pictures, FeatureRows):
            raise UserError(f"{data.name}: rows of features need the model that was trained on them; name it: --model")
        say_default()
        model = read_dual_encoder(name, asked.device, altered=asked.altered_model)
    say_cut(model, data.captions)
    start = time.perf_counter()
    encoding = encoding_in(name, asked.precision, asked.least_cosine)
    with encoding, progress_bar("pictures", len(data)) as advance:
        index = Index.build(
            data,
            model,
            out,
            model_location=location(name),
            progress=advance,
            overwrite=asked.overwrite,
        )
    seconds = time.perf_counter() - start
    if index.issues:
        say(f"{len(index.issues)} pictures could not be read and are left out:")
        say_issues(index.issues)
    say(f"{len(index)} pictures, {index.caption_store.count()} captions indexed in {seconds:.1f} s: {out}")
    say(f'next: rungwise search {quote(str(out))} "a text"   or   rungwise serve {quote(str(out))}')
    return 0


def beside(pictures: Path) -> Path:
    """Where the index of a folder is made if nobody says where.

    >>> beside(Path("holiday/photos")).as_posix()
    'holiday/photos.index'
    """
    named = pictures if pictures.name else pictures.resolve()
    return named.with_name(f"{named.name}.index")
