from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from rungwise.data import ImageCaptions
from rungwise.evaluation import evaluate
from rungwise.models import JointEmbedding
from rungwise.training.config import TrainConfig
from rungwise.training.snapshot_config import Snapshot
from rungwise.training.validating import Validation


def test_numbers_are_those_of_an_evaluation(config: TrainConfig, coloured: ImageCaptions, tmp_path: Path) -> None:
    model = JointEmbedding.create(config.model, coloured.captions)  # type: ignore[arg-type]
    images = np.arange(36, 48)
    pairs = model.read(coloured, images, cache=tmp_path)
    numbers = Validation(Snapshot(), pairs, nullcontext).measure(model)
    part = replace(coloured, name="part").select(images)
    expected = evaluate(**model.on(part, cache=tmp_path).for_evaluation(), image_of_caption=part.image_of_caption)
    assert numbers["rsum"] == expected["rsum"]
    assert numbers["t2i/R@5"] == expected["t2i/R@5"]
