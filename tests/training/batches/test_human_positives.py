"""Pairs that people called right are neither pulled nor pushed, whatever the step."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions
from rungwise.losses import AdaptiveListwise, Loss, MaxOfHinges, SumOfHinges
from rungwise.models import JointEmbedding
from rungwise.relevance.human import Judgement, add_judgement, now
from rungwise.training.batches import TrainingPositives, read_training_positives
from rungwise.training.batches._sampling import LabelLists
from rungwise.training.config import DataConfig, TrainConfig, config_of
from rungwise.training.distributed import Processes
from rungwise.training.engine import train
from rungwise.training.steps import Plain, StepContext
from rungwise.training.steps._strategies import CachedGradients, GlobalNegativesStep
from tests.training.conftest import Said

STEPS = (Plain(), CachedGradients(chunk=3), GlobalNegativesStep(), GlobalNegativesStep(chunk=4))
MARGIN = 0.2


def judge(path: Path, data: ImageCaptions, pairs: list[tuple[int, int]], grade: int = 4, who: str = "Ada") -> Path:
    for image, caption in pairs:
        text = hash_of_text(data.captions[caption])
        add_judgement(path, Judgement(data.image_ids[image], data.caption_ids[caption], grade, who, now(), text))
    return path


def work_on(
    config: TrainConfig, data: ImageCaptions, cache: Path, called_right: TrainingPositives | None
) -> tuple[StepContext, np.ndarray]:
    """What a step works on, and the similarities of all training pictures and captions by positions in ``data``."""
    torch.manual_seed(0)
    model = JointEmbedding.create(config.model, data.captions)
    pairs = model.read(data, np.arange(12), cache=cache)
    work = StepContext(
        model, pairs, None, nullcontext, Processes(), list(model.parameters()), called_right=called_right
    )
    scores = np.full((len(data), len(data.captions)), np.nan)
    block = model.scores_of(pairs, nullcontext).block(np.arange(12), np.arange(len(pairs)))
    scores[np.ix_(pairs.images, pairs.captions)] = block
    return work, scores


def slow_hinges(scores: np.ndarray, batch: list[tuple[int, int]], right: set[tuple[int, int]], hardest: bool) -> float:
    """The hinges of a batch of (image, caption) by nested loops; what is right besides the pair is no negative."""
    total = 0.0
    for image, caption in batch:
        pushed = [scores[image, other] for _, other in batch if (image, other) not in right]
        pulled = [scores[other, caption] for other, _ in batch if (other, caption) not in right]
        for negatives in (pushed, pulled):
            hinges = [max(0.0, MARGIN + value - scores[image, caption]) for value in negatives]
            total += max(hinges, default=0.0) if hardest else sum(hinges)
    return total / len(batch)


@pytest.mark.parametrize("hardest", [True, False])
def test_the_loss_is_that_of_nested_loops_without_the_negatives_that_people_called_right(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, hardest: bool
) -> None:
    owners = coloured.image_of_caption
    called = np.array([(image, caption) for image in range(12) for caption in range(24) if (image + caption) % 3 == 0])
    loss: Loss = (MaxOfHinges if hardest else SumOfHinges)(margin=MARGIN, reduction="mean")
    chosen = np.array([20, 3, 11, 4, 8, 0])
    values = {}
    for name, called_right in (("people", TrainingPositives(called, len(coloured.captions))), ("annotation", None)):
        work, scores = work_on(config, coloured, cache, called_right)
        captions = work.pairs.captions[chosen].tolist()
        batch = [(int(owners[caption]), caption) for caption in captions]
        right = {(int(owners[caption]), caption) for caption in range(len(owners))}
        if called_right is not None:
            right |= {tuple(pair) for pair in called.tolist()}
        expected = slow_hinges(scores, batch, right, hardest)
        for step in STEPS:
            value = step.backward(work, loss, chosen, seed=0).value
            torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=1e-4)
        values[name] = expected
    assert values["people"] < values["annotation"]


def test_extra_positives_kept_as_negatives_stay_negatives(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    everything = np.array([(image, caption) for image in range(12) for caption in range(24)])
    chosen = np.array([20, 3, 11, 4])
    kept, masked = (SumOfHinges(extra_positives=extra, reduction="mean") for extra in ("keep", "mask"))
    work, _ = work_on(config, coloured, cache, TrainingPositives(everything, len(coloured.captions)))
    alone = replace(work, called_right=None)
    assert Plain().backward(work, masked, chosen, seed=0).value == 0
    value = Plain().backward(work, kept, chosen, seed=0).value
    assert value == Plain().backward(alone, kept, chosen, seed=0).value > 0


def test_blocks_are_those_of_a_set_of_pairs() -> None:
    random = np.random.default_rng(0)
    pairs = np.stack([random.integers(0, 9, 30), random.integers(0, 20, 30)], axis=1)
    found, known = TrainingPositives(pairs, 20), {tuple(pair) for pair in pairs.tolist()}
    images, captions = random.integers(0, 9, 6), random.integers(0, 20, 7)
    expected = [[(int(image), int(caption)) in known for caption in captions] for image in images]
    assert found.block(images, captions).tolist() == expected
    assert len(found) == len(known)
    assert TrainingPositives(np.empty((0, 2), np.int64), 20).block(images, captions).any() == np.False_
    inside = found.among(np.arange(4), np.arange(10))
    assert inside == sum(image < 4 and caption < 10 for image, caption in pairs.tolist())


def test_a_run_says_what_it_took_and_learns_otherwise(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    same_colour = [
        (image, caption)
        for image in range(36)
        for caption, owner in enumerate(coloured.image_of_caption.tolist())
        if owner % 4 == image % 4 and owner != image
    ]
    path = judge(tmp_path / "judgements.jsonl", coloured, same_colour[:200])
    config = replace(config, epochs=(1,), learning_rates=(1e-3,))
    judged = replace(config, data=DataConfig(judgements=str(path)))
    weights, said = [], []
    for name, one in (("plain", config), ("judged", judged)):
        watcher = Said()
        train(one, coloured, tmp_path / name, cache=cache, watcher=watcher)
        weights.append(load_file(tmp_path / name / "checkpoint.safetensors"))
        said.append([line for line in watcher.lines if "judgements" in line])
    assert said[0] == []
    assert len(said[1]) == 1
    assert said[1][0].endswith("of 200 pairs that people called right are of training pictures")
    assert any(not torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items() if "model/" in name)


def test_a_run_goes_on_with_the_judgements_that_it_was_started_with(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    path = judge(tmp_path / "judgements.jsonl", coloured, [(0, 3), (1, 8)])
    config = replace(config, epochs=(1,), learning_rates=(1e-3,), data=DataConfig(judgements=str(path)))
    train(config, coloured, tmp_path / "run", cache=cache)
    longer = replace(config, epochs=(2,))
    moved = path.rename(tmp_path / "moved.jsonl")
    judge(tmp_path / "judgements.jsonl", coloured, [(0, 3)])
    with pytest.raises(UserError, match=r"started with another data\.judgements"):
        train(longer, coloured, tmp_path / "run", cache=cache, resume=True)
    with pytest.raises(UserError, match=r"data\.judgements: True then, False now"):
        train(replace(longer, data=DataConfig()), coloured, tmp_path / "run", cache=cache, resume=True)
    same = replace(longer, data=DataConfig(judgements=str(moved)))
    assert len(train(same, coloured, tmp_path / "run", cache=cache, resume=True).history) == 2


def test_judgements_that_change_nothing_are_refused(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    def refused(path: Path, **more: object) -> str:
        given = replace(config, data=DataConfig(judgements=str(path)), **more)  # type: ignore[arg-type]
        with pytest.raises(UserError) as caught:
            train(given, coloured, tmp_path / "run", cache=cache)
        assert not (tmp_path / "run").exists()
        return str(caught.value)

    low = judge(tmp_path / "low.jsonl", coloured, [(0, 3)], grade=2)
    assert "low.jsonl calls no pair right (mean grade from 3)" in refused(low)
    last = len(coloured.captions) - 1
    validation = judge(tmp_path / "val.jsonl", coloured, [(40, 3), (0, last)])
    assert "none of the 2 pairs that people called right in" in refused(validation)
    assert "no such file" in refused(tmp_path / "nowhere.jsonl")
    good = judge(tmp_path / "good.jsonl", coloured, [(0, 3)])
    lists = {"sampler": LabelLists(irrelevant=4), "loss": config_of(AdaptiveListwise)(irrelevant="other_item")}
    labelled = replace(coloured, labels=tuple((caption,) for caption in "rgbw" * 12))
    with pytest.raises(UserError, match="data.judgements changes nothing with a sampler of lists"):
        train(
            replace(config, data=DataConfig(judgements=str(good)), **lists), labelled, tmp_path / "run",
            cache=cache,
        )  # fmt: skip


def test_judgements_that_are_left_out_are_listed(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    path = judge(tmp_path / "judgements.jsonl", coloured, [(0, 3), (1, 8)])
    changed = replace(coloured, captions=(*coloured.captions[:8], "another text", *coloured.captions[9:]))
    config = replace(config, epochs=(1,), learning_rates=(1e-3,), data=DataConfig(judgements=str(path)))
    watcher = Said()
    train(config, changed, tmp_path / "run", cache=cache, watcher=watcher)
    skipped = (tmp_path / "run" / "skipped.txt").read_text(encoding="utf-8")
    assert skipped.startswith(f"judgement of another caption\t{path}, line 2\t")
    assert any("of 1 pairs that people called right" in line for line in watcher.lines)


def test_two_people_who_disagree_have_a_mean(coloured: ImageCaptions, tmp_path: Path) -> None:
    path = judge(tmp_path / "judgements.jsonl", coloured, [(0, 3), (1, 8)])
    judge(path, coloured, [(0, 3)], grade=1, who="Bo")
    found = read_training_positives(str(path), coloured)
    assert len(found) == 1
    assert found.block([1], [8]).all()


def test_degrees_by_people_may_come_from_a_judgement_file(coloured: ImageCaptions, tmp_path: Path) -> None:
    from rungwise.training.engine import training_degrees

    path = judge(tmp_path / "judgements.jsonl", coloured, [(0, 3), (40, 8)])
    degrees = training_degrees(DataConfig(relevance=f"{{kind: human, judgements: [{path}]}}"), coloured)
    assert degrees is not None
    assert degrees.block([0], [3, 4]).tolist()[0][0] == 4.0
