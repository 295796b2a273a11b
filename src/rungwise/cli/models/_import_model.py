"""``rungwise import``: models that other programs trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.core.disk.folders import WRITTEN_FOLDER, refuse_strangers
from rungwise.jobs import say

_EXAMPLES = ("rungwise import model_best.pth.tar coco_precomp_vocab.pkl --out model",)


@dataclass
class Import:
    """Take over a model that the VSE++ program trained (Faghri et al. 2018): the same weights, words and vectors.

    Nothing in the two files is run: they may come from anywhere.

    Attributes:
        checkpoint: The program's model_best.pth.tar.
        vocabulary: Of the same run. Such as coco_precomp_vocab.pkl, or JSON.
        out: Folder for the model.
    """

    checkpoint: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="CHECKPOINT")]
    vocabulary: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="VOCABULARY")]
    out: Path = field(metadata=WRITTEN_FOLDER)


def main(arguments: list[str]) -> int:
    """Import a model, and print what it is."""
    asked = parse(Import, arguments, "rungwise import", examples=_EXAMPLES)
    from rungwise.models.io import CONFIG

    if not (asked.out / CONFIG).is_file():
        refuse_strangers(asked.out, (), "a model")
    from rungwise.models import import_vsepp

    model = import_vsepp(asked.checkpoint, asked.vocabulary)
    model.save_pretrained(asked.out)
    side = model.config.image
    reads = f"pictures, by {side.backbone}" if side.kind == "pictures" else f"rows of {side.width} features"
    say(
        f"written: {asked.out} (reads {reads}; {len(model.state_dict()['text_encoder.words.weight'])} words;"
        f" vectors of {model.dimension}; similarity {model.similarity.kind})"
    )
    return 0
