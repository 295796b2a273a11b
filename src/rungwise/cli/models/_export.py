"""``rungwise export``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.core import UserError, require
from rungwise.core.disk.folders import WRITTEN_FOLDER, refuse_strangers
from rungwise.jobs import ADVANCED, AlteredModel, program, read_model, say

_EXAMPLES = ("rungwise export run/model --out exported",)


@dataclass
class Export:
    """Write a model as two ONNX graphs, which index, search and serve compute without torch.

    Each graph is compared with the model, and none is written whose vectors differ.

    Attributes:
        model: Folder of a model, or a hub repository.
        out: Folder of the exported model.
        overwrite: Replace an exported model that is there.
    """

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    out: Path = field(metadata=WRITTEN_FOLDER)
    overwrite: bool = False
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)


def main(arguments: list[str]) -> int:
    """Export a model, and print how close the graphs are to it."""
    asked = parse(Export, arguments, "rungwise export", examples=_EXAMPLES)
    from rungwise.models import without_torch
    from rungwise.models.io import parts_of_export

    if without_torch(asked.out) and not asked.overwrite:
        raise UserError(
            f"{asked.out}: an exported model stands here already; name another folder, or replace it with --overwrite"
        )
    refuse_strangers(asked.out, parts_of_export(asked.out), "an exported model")
    for library in ("onnx", "onnxruntime"):
        require(library, "to export a model")
    model = read_model(asked.model, "cpu", altered=asked.altered_model)
    from rungwise.models.export import OPSET, export_onnx  # torch, after what may be refused without it

    for agreement in export_onnx(model, asked.out):
        say(str(agreement))
    say(f"exported (ONNX, operators of version {OPSET}): {asked.out}")
    say(f"next: {program()} index PICTURES --model {asked.out} --out INDEX")
    return 0
