"""Graded equals rungwise.evaluation.evaluate whatever the batches, and torchmetrics where the definitions agree."""

import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics import MetricCollection, MetricTracker
from torchmetrics.retrieval import RetrievalNormalizedDCG, RetrievalRecall

from rungwise.core import RungwiseWarning, UserError
from rungwise.evaluation import EvaluationSettings, Provenance, evaluate, positives_from_labels
from rungwise.integrations.torchmetrics import Graded
from rungwise.relevance.lexical import TfIdf

MEASURES = ("nDCG@3", "R@1", "MedR", "NCS@2(non_gt)", "CS@4", "rsum")
IMAGES, CAPTIONS = 6, 11
TEXTS = (
    "a red dog",
    "a dog",
    "a cat",
    "two cats",
    "a blue car",
    "a car",
    "a tree",
    "the tree",
    "a hat",
    "red hat",
    "x",
)


class World:
    """Vectors, degrees and owners; images have none to several captions."""

    def __init__(self, seed: int = 0) -> None:
        drawn = np.random.default_rng(seed)
        self.images = torch.from_numpy(drawn.normal(size=(IMAGES, 4)).astype(np.float32))
        self.texts = torch.from_numpy(drawn.normal(size=(CAPTIONS, 4)).astype(np.float32))
        self.degrees = drawn.random((IMAGES, CAPTIONS)).astype(np.float32)
        self.owners = drawn.integers(0, IMAGES - 1, CAPTIONS)

    def evaluated(self, measures=MEASURES, **given):
        return evaluate(
            image_embeddings=self.images.numpy(),
            text_embeddings=self.texts.numpy(),
            image_of_caption=self.owners,
            relevance=self.degrees,
            measures=measures,
            **given,
        )

    def pairs(self, metric, order, size):
        """Batches of pairs, in which an image comes as often as it has captions."""
        for start in range(0, len(order), size):
            captions = torch.as_tensor(order[start : start + size])
            images = torch.from_numpy(self.owners)[captions]
            metric.update(self.images[images], self.texts[captions], images, captions)

    def sides(self, metric, images=range(IMAGES), captions=range(CAPTIONS)):
        metric.update(image_embeddings=self.images[list(images)], images=list(images))
        metric.update(text_embeddings=self.texts[list(captions)], captions=list(captions))


@given(st.integers(0, 50), st.permutations(range(CAPTIONS)), st.integers(1, CAPTIONS), st.permutations(range(IMAGES)))
@settings(max_examples=40, deadline=None)
def test_numbers_are_those_of_evaluate_for_any_order_and_split(seed, order, size, images):
    world = World(seed)
    metric = Graded(MEASURES, world.degrees, image_of_caption=world.owners, direction="both")
    world.pairs(metric, order, size)
    for some in (images[:2], images[2:], images[:1]):  # those without a caption, and some again
        metric.update(image_embeddings=world.images[some], images=some)
    ours = world.evaluated()
    assert {name: float(value) for name, value in metric.compute().items()} == {
        name: ours[name] for name in metric.names
    }
    assert metric.result() == ours


def ndcg(scores, degrees, k):
    """The definition, by loops."""
    total = 0.0
    for row, own in zip(scores.tolist(), degrees.tolist(), strict=True):
        ranked = sorted(range(len(row)), key=lambda place: -row[place])
        got = sum(own[place] / np.log2(rank + 2) for rank, place in enumerate(ranked[:k]))
        best = sum(value / np.log2(rank + 2) for rank, value in enumerate(sorted(own, reverse=True)[:k]))
        total += got / best
    return 100 * total / len(scores)


def test_it_is_the_definition_and_what_torchmetrics_measures():
    world = World(3)
    metric = Graded("nDCG@5", relevance=world.degrees)
    world.sides(metric)
    scores = (world.images @ world.texts.T).T
    assert (scores < 0).any()
    theirs = RetrievalNormalizedDCG(top_k=5)
    queries = torch.arange(CAPTIONS)[:, None].expand(-1, IMAGES)
    theirs.update(scores.flatten(), torch.from_numpy(world.degrees.T.copy()).flatten(), queries.flatten())
    assert float(metric.compute()) == pytest.approx(100 * float(theirs.compute()), abs=1e-4)
    assert float(metric.compute()) == pytest.approx(ndcg(scores.numpy(), world.degrees.T, 5), abs=1e-9)


def test_a_right_answer_with_a_negative_score_is_right():
    """torchmetrics since 1.7.4 takes it for wrong."""
    image, text = torch.tensor([[1.0, 0.0], [-1.0, 0.1]]), torch.tensor([[-0.1, 1.0], [-0.5, 0.0]])
    metric = Graded("R@1", image_of_caption=[1, 1])
    metric.update(image, text, [0, 1], [0, 1])
    assert float(metric.compute()) == 100
    theirs = RetrievalRecall(top_k=1)
    theirs.update(torch.tensor([-0.05, -0.9]), torch.tensor([1, 0]), torch.tensor([0, 0]))
    assert float(theirs.compute()) == 0


def test_degrees_come_as_what_evaluations_take(tmp_path: Path):
    world = World()
    source = TfIdf(list(TEXTS), world.owners.tolist(), images=IMAGES)
    source.save(tmp_path / "degrees")
    found = []
    for relevance in (source, tmp_path / "degrees", str(tmp_path / "degrees"), torch.from_numpy(source.dense())):
        metric = Graded(["R@1", "nDCG@3"], relevance, image_of_caption=world.owners)
        world.sides(metric)
        found.append({name: float(value) for name, value in metric.compute().items()})
    assert found[1:] == found[:1] * 3
    own = Graded("R@1", tmp_path / "degrees")  # which knows whose captions they are
    world.sides(own)
    assert float(own.compute()) == found[0]["t2i/R@1"]


def test_settings_and_protocol_are_those_of_evaluate():
    labels = ["a", "b", "a", "b", "a", "b"]
    world = World()
    world.owners = np.arange(CAPTIONS) % IMAGES
    given = {
        "protocol": "labels",
        "settings": EvaluationSettings(positives=positives_from_labels(labels, world.owners)),
    }
    metric = Graded("MAP@5", image_of_caption=world.owners, **given)
    world.sides(metric)
    assert float(metric.compute()) == world.evaluated(["MAP@5"], **given)["t2i/MAP@5"]
    metric.reset()
    world.sides(metric, range(3))
    with pytest.raises(UserError, match=r"^Graded: 3 of 6 images \(3, 4, 5\) never came to update"):
        metric.compute()


def test_a_smaller_gallery_is_measured_with_a_warning():
    world, images, captions = World(), [0, 1, 2, 4], [0, 2, 3, 7, 8, 10]
    named = Provenance(image_ids=list("abcdef"), caption_ids=[str(one) for one in range(CAPTIONS)])
    metric = Graded(["nDCG@3", "R@1"], world.degrees, image_of_caption=world.owners, provenance=named)
    world.sides(metric, images, captions)
    kept = [one for one in captions if world.owners[one] in images]
    with pytest.warns(RungwiseWarning, match=r"^Graded: 2 of 6 images \(3, 5\) and 5 of 11 captions \(1, 4, 5, 6, 9\)"):
        found = metric.result()
    ours = evaluate(
        image_embeddings=world.images[images],
        text_embeddings=world.texts[kept],
        image_of_caption=[images.index(world.owners[one]) for one in kept],
        relevance=world.degrees[np.ix_(images, kept)],
        measures=["nDCG@3", "R@1"],
    )
    assert dict(found) == dict(ours)
    assert found.query_ids("i2t") == ("a", "b", "c", "e")
    alone = Graded("nDCG@3", world.degrees)
    world.sides(alone, images, captions)
    with pytest.warns(RungwiseWarning, match="smaller gallery"):
        assert float(alone.compute()) > 0
    refusing = Graded("nDCG@3", world.degrees, missing="refuse")
    world.sides(refusing, images, captions)
    with pytest.raises(UserError, match="num_sanity_val_steps=0") as refused:
        refusing.compute()
    assert "\n" not in str(refused.value)


def test_forward_gives_the_numbers_of_the_batch():
    world = World()
    metric = Graded("nDCG@3", world.degrees)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_batch = metric(world.images[:3], world.texts[:4], range(3), range(4))
        metric(world.images[2:], world.texts[4:], range(2, IMAGES), range(4, CAPTIONS))
        assert float(metric.compute()) == world.evaluated()["t2i/nDCG@3"]
    assert float(of_batch) == pytest.approx(ndcg((world.images[:3] @ world.texts[:4].T).T, world.degrees[:3, :4].T, 3))


def test_measures_of_a_collection_keep_the_vectors_once():
    world = World()
    both = MetricCollection(
        {name: Graded(name, world.degrees, image_of_caption=world.owners) for name in ("R@1", "nDCG@3")}
    )
    for start in (0, 3):
        rows = list(range(start, start + 3))
        both.update(world.images[rows], world.texts[rows], images=rows, captions=rows)
    both.update(text_embeddings=world.texts[6:], captions=range(6, CAPTIONS))
    assert both.compute_groups == {0: ["R@1", "nDCG@3"]}
    ours = world.evaluated()
    assert {name: float(value) for name, value in both.compute().items()} == {
        name: ours[f"t2i/{name}"] for name in ("R@1", "nDCG@3")
    }
    first, second = (both._modules[name].image_vectors for name in ("R@1", "nDCG@3"))
    assert first is second


def test_it_is_drawn_and_tracked():
    world = World()
    metric = Graded("nDCG@3", world.degrees)
    world.sides(metric)
    _, axes = metric.plot()
    assert axes.get_ylabel() == "nDCG@3"
    assert axes.get_ylim() == pytest.approx((-10, 110))
    several = Graded(["R@1", "rsum", "MedR"], image_of_caption=world.owners)
    world.sides(several)
    several.plot([several.compute()] * 2)
    plt.close("all")
    assert (metric.higher_is_better, metric.plot_lower_bound, metric.plot_upper_bound) == (True, 0, 100)
    assert (several.higher_is_better, several.plot_lower_bound, several.plot_upper_bound) == (None, None, None)
    assert Graded("MedR", image_of_caption=world.owners).higher_is_better is False
    assert (metric.is_differentiable, metric.full_state_update) == (False, False)
    assert repr(several) == "Graded(t2i/R@1, rsum, t2i/MedR)"
    tracker = MetricTracker(metric.clone())
    for turned in (-1, 1):
        tracker.increment()
        tracker.update(turned * world.images, world.texts, range(IMAGES), range(CAPTIONS))
    assert tracker.best_metric(return_step=True)[1] in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (["nDCG@10"], {}, r"^nDCG@10: reads degrees of relevance; give relevance$"),
        (["R@1"], {}, r"^R@1: reads which captions are an image's own; give image_of_caption$"),
        (["NCS@3(non_gt)", np.eye(2)], {}, r"give image_of_caption$"),
        (["R@1"], {"image_of_caption": [0], "direction": "both ways"}, r"^direction='both ways' is none of"),
        (["R@1"], {"image_of_caption": [0], "missing": "pass"}, r"^missing='pass' is neither"),
        (["R@1", np.eye(2)], {"image_of_caption": [0, 1, 1]}, r"names 3 captions of images up to 1, but .* \(2, 2\)"),
        (["nDCG@x", np.eye(2)], {}, "nDCG"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(arguments, options, said):
    with pytest.raises(UserError, match=said) as refused:
        Graded(*arguments, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ({"images": [0]}, "^image_embeddings are missing; give image_embeddings and images together$"),
        ({"text_embeddings": torch.ones(1, 4)}, "^captions are missing"),
        (
            {"image_embeddings": torch.ones(2, 4), "images": [0]},
            r"^image_embeddings have shape \(2, 4\) and images \(1,\)",
        ),
        ({"image_embeddings": torch.ones(1, 4), "images": [6]}, "^images: there is no position 6; .* 0 to 5$"),
        ({"text_embeddings": torch.ones(1, 4), "captions": [-1]}, "^captions: there is no position -1"),
        ({"text_embeddings": torch.ones(1, 4), "captions": [0.5]}, "^captions must be whole numbers"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_in_one_line(batch, said):
    metric = Graded("nDCG@3", World().degrees)
    with pytest.raises(UserError, match=said) as refused:
        metric.update(**batch)
    assert "\n" not in str(refused.value)


def test_nothing_that_came_is_no_number():
    metric = Graded("nDCG@3", World().degrees)
    metric.update(image_embeddings=torch.empty(0, 4), images=torch.empty(0, dtype=torch.int64))
    with pytest.raises(UserError, match="^no image or no caption has come"):
        metric.result()


PROGRAM = """
import sys
import torch
from torch import distributed
from rungwise.integrations.torchmetrics import Graded
from tests.integrations.test_torchmetrics import CAPTIONS, IMAGES, MEASURES, World

rank, world, place, turn = int(sys.argv[1]), 3, sys.argv[2], sys.argv[3] == "even"
distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=world)
data = World(5)
metric = Graded(MEASURES, data.degrees, image_of_caption=data.owners, direction="both")
if turn:  # as a DistributedSampler cuts and pads
    images = torch.tensor([place % IMAGES for place in range(rank, 3 * world, world)])
    captions = torch.tensor([place % CAPTIONS for place in range(rank, 5 * world, world)])
    metric.update(data.images[images], data.texts[captions], images, captions)
elif rank < 2:  # and one process has no batch
    data.sides(metric, range(rank, IMAGES, 2), range(rank, CAPTIONS, 2))
print({name: float(value) for name, value in metric.compute().items()})
with metric.sync_context():
    print(metric.result().queries)
distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize("turn", ["even", "odd"])
def test_three_processes_are_one(turn, tmp_path: Path):
    command = [sys.executable, "-c", PROGRAM]
    started = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "place"), turn], stdout=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    said = [one.communicate()[0] for one in started]
    ours = World(5).evaluated()
    names = Graded(MEASURES, World(5).degrees, image_of_caption=World(5).owners, direction="both").names
    wanted = f"{ {name: ours[name] for name in names} }\n{dict(ours.queries)}\n"
    assert said == [wanted] * 3
