"""Systems with results and histories, made in memory and in small folders."""

import json
from dataclasses import replace

import numpy as np

from rungwise.evaluation import Provenance, evaluate
from rungwise.runs import RunWithResults, systems_of
from rungwise.training.config import TrainConfig

OWNERS = np.repeat(np.arange(20), 3)
RELEVANCE = np.random.default_rng(5).random((20, 60))


def result(seed=0, noise=1.0, measures=("R@1", "R@5", "MedR", "rsum"), graded=False, **given):
    rng = np.random.default_rng(seed)
    scores = (np.arange(20)[:, None] == OWNERS) + noise * rng.normal(size=(20, 60))
    more = {"relevance": RELEVANCE} if graded else {}
    return evaluate(
        similarity=scores,
        image_of_caption=OWNERS,
        measures=list(measures),
        provenance=Provenance(data_hash="d" * 64, data_name="toy/test", split="test"),
        **more,
        **given,
    )


def row(epoch, loss=1.0, rsum=100.0, **more):
    return {"epoch": float(epoch), "learning_rate": 0.1, "loss": loss, "rsum": rsum, **more}


def config(**changes):
    return replace(TrainConfig(), **changes)


def run(folder, rows=None, results=(), **changes):
    """A run, with a history in its folder where rows are given."""
    if rows is not None:
        folder.mkdir(parents=True)
        (folder / "history.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return RunWithResults(folder, config(**changes), tuple(results))


def systems(*runs):
    return systems_of(runs)
