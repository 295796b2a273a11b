"""``rungwise evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from rungwise.cli.terminal import console, progress_bar, say, say_issues
from rungwise.data.readers import read
from rungwise.data.splits import with_splits
from rungwise.errors import UserError
from rungwise.evaluation import DEFAULT_MEASURES, evaluate, render_table
from rungwise.models import load
from rungwise.relevance.scenes import SceneRelevance


@dataclass
class Evaluate:
    """How well a model ranks the captions of pictures and the pictures of captions.

    Attributes:
        model: Folder of a model, or a hub repository.
        data: Folder or caption file.
        split: The pictures to rank; "all" takes every one.
        protocol: Which gallery: full, coco-1k-5fold, one-caption-per-image.
        measures: Such as R@1, Recall@5, MedR, MeanR, rsum; graded ones (CS@100, nDCG@10, NCS@10) need degrees.
        out: Write the result as JSON here.
        join_restval: Count COCO's restval pictures as training pictures.
        cache: Folder of the feature cache; default RUNGWISE_CACHE or the system's.
    """

    model: tyro.conf.Positional[str]
    data: tyro.conf.Positional[Path]
    split: str = "test"
    protocol: str = "full"
    measures: tuple[str, ...] = DEFAULT_MEASURES
    out: Path | None = None
    join_restval: bool = False
    cache: Path | None = None


def main(arguments: list[str]) -> int:
    """Print the table, write the JSON."""
    asked = tyro.cli(Evaluate, args=arguments, prog="rungwise evaluate")
    model = load(asked.model)
    data = with_splits(read(asked.data, join_restval=asked.join_restval))
    say_issues(data.issues)
    chosen = data if asked.split == "all" else data.split(asked.split)
    if not chosen.paths or not chosen.captions:
        raise UserError(
            f"{chosen.name}: evaluation needs pictures and captions; there are {len(chosen.captions)} captions"
        )
    with progress_bar("pictures", len(chosen)) as advance:
        encoded = model.encode_image(chosen.paths, progress=advance, cache=asked.cache)
    if encoded.issues:
        say(f"{len(encoded.issues)} of {len(chosen)} pictures could not be read and are left out, with their captions")
        say_issues(encoded.issues)
        chosen = chosen.select(np.asarray(encoded.kept))
    result = evaluate(
        image_embeddings=encoded.vectors,
        text_embeddings=model.encode_text(chosen.captions),
        image_of_caption=chosen.image_of_caption,
        relevance=SceneRelevance.load(asked.data, chosen) if chosen.layout == "scenes" else None,
        measures=asked.measures,
        protocol=asked.protocol,
        data_name=chosen.name,
        data_hash=chosen.content_hash(),
        model_hash=model.fingerprint,
    )
    console.print(render_table(result))
    if asked.out:
        result.to_json(asked.out)
        say(f"written: {asked.out}")
    return 0
