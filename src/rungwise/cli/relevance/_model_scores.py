"""``rungwise relevance model-scores``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rungwise.cli.frame import Data, parse
from rungwise.core import UserError, digest_of_parts
from rungwise.core.disk import usable_cache
from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER
from rungwise.core.text import idle_where, idle_without
from rungwise.jobs import (
    ADVANCED,
    AlteredModel,
    Cache,
    Device,
    Layout,
    LeastCosine,
    MemberKey,
    Precision,
    program,
    read_model,
    say,
)
from rungwise.jobs.evaluation import read_part, scores_of
from rungwise.relevance import Direction, write_degrees
from rungwise.relevance.embedding import require_ending, write_picture_vectors
from rungwise.relevance.storage.saved import refuse_other, replacing
from rungwise.runs import is_run_folder
from rungwise.training import MODEL

if TYPE_CHECKING:
    from rungwise.models import PairScores

_COMMAND = "rungwise relevance model-scores"
_EXAMPLES = (
    f"{_COMMAND} photos --model runs/vse0 --out opinion",
    f"{_COMMAND} photos --model runs/vse0 --vectors seen.npz",
)


@dataclass
class ModelScoresCommand:
    """Write what a model of pictures and captions believes: its own similarity as degrees of relevance.

    Another model may learn from them. The model itself is never judged by them: they carry its fingerprint, and
    "rungwise evaluate" refuses it.

    Attributes:
        model: Folder or name of a model, or a run.
        out: Folder to write the degrees to.
        vectors: Write the model's vectors of the pictures to this file (.npz), for "rungwise relevance visual".
        split: The pictures to take; "all" takes every one.
        top: Write only so many best candidates of each query.
        direction: Whose best candidates: captions for every picture (i2t, the default) or pictures for every caption
            (t2i).
    """

    data: Data
    model: str
    out: Path | None = field(default=None, metadata=WRITTEN_FOLDER)
    vectors: Path | None = field(default=None, metadata=WRITTEN_FILE)
    split: str = "all"
    top: int | None = field(default=None, metadata=ADVANCED)
    direction: Direction | None = field(default=None, metadata=ADVANCED)
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    precision: Precision = field(default="float32", metadata=ADVANCED)
    least_cosine: LeastCosine = field(default=0.999, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)

    IDLE = (
        idle_without("top", "out"),
        idle_without("direction", "top"),
        idle_where(
            "least_cosine",
            lambda asked: asked.precision != "auto",
            "without {precision} auto",
            "give both, or leave {} out",
        ),
    )


def main(arguments: list[str]) -> int:
    """Read the data, encode them, and write the degrees."""
    asked = parse(ModelScoresCommand, arguments, _COMMAND, examples=_EXAMPLES)
    _check(asked)
    if asked.vectors is not None:
        require_ending(asked.vectors)
    usable_cache(asked.cache)
    if asked.out is not None:
        refuse_other(asked.out)
    data = read_part(asked.data, asked.split, layout=asked.layout, key=asked.key)
    name = str(Path(asked.model) / MODEL) if is_run_folder(Path(asked.model)) else asked.model
    model = read_model(name, asked.device, altered=asked.altered_model)
    scores = scores_of(model, name, data, asked)
    if len(scores.kept) < len(data):
        raise UserError(
            f"{asked.data}: {len(data) - len(scores.kept)} pictures could not be read, and degrees are of all; mend"
            " them or take them out of the data"
        )
    if asked.vectors is not None:
        _write_vectors(asked.vectors, name, getattr(model, "stands_for", "") or model.fingerprint, scores)
    if asked.out is not None:
        from rungwise.relevance.embedding import ModelScores as Source

        source = Source(
            scores,
            data.image_of_caption,
            model=model.fingerprint,
            images=len(data),
            scored=_scored(scores),
            captions=data.captions,
            made_of=model.made_of,
        )
        with replacing(asked.out) as draft:
            write_degrees(source, draft, k=asked.top, direction=asked.direction or "i2t")
        say(f"written: {asked.out} ({len(data)} images x {len(data.captions)} captions)")
        say(f"content hash: {source.content_hash()}")
    say(f"this is the opinion of model {model.fingerprint[:16]}, which is not judged by it")
    return 0


def _check(asked: ModelScoresCommand) -> None:
    if asked.out is None and asked.vectors is None:
        raise UserError("nothing is to be written: give --out FOLDER for degrees, or --vectors FILE.npz")
    if asked.top is not None and asked.top < 1:
        raise UserError(f"--top must be at least 1, got {asked.top}")


def _vectors(scores: PairScores) -> tuple[np.ndarray, np.ndarray] | None:
    """Vectors of pictures and of captions, where the model has them."""
    from rungwise.models import VectorScores

    return (scores.image_vectors, scores.text_vectors) if isinstance(scores, VectorScores) else None


def _write_vectors(path: Path, name: str, model: str, scores: PairScores) -> None:
    sides = _vectors(scores)
    if sides is None:
        raise UserError(f"--vectors: {name} scores pairs and has no vectors of pictures; leave it out")
    write_picture_vectors(path, sides[0], model, scores.data.image_ids)
    say(f"written: {path} ({len(sides[0])} vectors)")
    say(f"next: {program()} relevance visual DATA --vectors {path} --out DEGREES")


def _scored(scores: PairScores) -> str:
    """Hash of both sides' vectors, or of ids and captions where the model has no vectors."""
    sides = _vectors(scores)
    if sides is None:
        return scores.data.content_hash()
    return digest_of_parts(sides)
