"""Two processes equal one. Also tests rungwise.training.distributed._collectives."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from rungwise.losses import Ladder, MaxOfHinges, MultiModalNCE, SemanticAdaptiveMargin, Weighted
from rungwise.similarity import cosine
from rungwise.training.distributed import GlobalNegatives, process_group
from tests.training.every_loss import (
    CaptionPairs,
    Encoders,
    Source,
    by_caption_pair,
    cases,
    gradients,
    inner,
    with_another_similarity_within,
)


def two_processes(folder: Path) -> list[dict[str, torch.Tensor]]:
    command = [sys.executable, "-m", "tests.training.one_of_two"]
    root = Path(__file__).parents[3]
    running = [subprocess.Popen([*command, str(rank), str(folder)], cwd=root) for rank in range(2)]
    try:
        assert [process.wait() for process in running] == [0, 0]
    finally:
        for process in running:
            process.kill()
    return [load_file(folder / f"{rank}.safetensors") for rank in range(2)]


def one_process() -> dict[str, torch.Tensor]:
    source, model, results = Source(), Encoders(), {}
    for name, shares, queries, loss in cases():
        images, captions = (torch.tensor(first + second) for first, second in zip(*shares, strict=True))
        model.zero_grad()
        torch.manual_seed(5)
        value = GlobalNegatives(loss, relevance=source, positives=source.positives)(
            *model(images, captions), images, captions, queries=queries
        )
        value.backward()
        results[name] = torch.cat([value.detach().reshape(1), gradients(model, loss)])
    for make in (by_caption_pair, with_another_similarity_within):
        shares, together = make()
        images, captions = (torch.tensor(first + second) for first, second in zip(*shares, strict=True))
        model.zero_grad()
        value = together(*model(images, captions), images, captions, captions)
        value.backward()
        results[make.__name__] = torch.cat([value.detach().reshape(1), gradients(model)])
    return results


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    expected = one_process()
    expected["cached"] = next(iter(expected.values()))
    largest: dict[str, float] = {}
    for rank, got in enumerate(two_processes(tmp_path)):
        assert got.keys() == expected.keys()
        for name, values in expected.items():
            assert values[0] != 0, f"{name}: nothing to compare"
            torch.testing.assert_close(
                got[name], values, rtol=1e-6, atol=1e-6, msg=lambda m, where=(rank, name): f"{where}: {m}"
            )
            family = name.split(";")[0]
            largest[family] = max(largest.get(family, 0.0), float((got[name] - values).abs().max()))
    for family, difference in largest.items():  # pytest -s
        print(f"{family:32} value and gradients differ by at most {difference:.1e} (float64)")


def test_one_process_needs_no_group() -> None:
    source, model = Source(), Encoders()
    images, captions = torch.tensor([0, 1]), torch.tensor([0, 1, 12])
    vectors = model(images, captions)
    for loss in (MaxOfHinges(), SemanticAdaptiveMargin(), MultiModalNCE()):
        assert GlobalNegatives(loss, relevance=source, positives=source.positives)(*vectors, images, captions) > 0
    with pytest.raises(ValueError, match="pass images= and captions="):
        GlobalNegatives(MaxOfHinges(), positives=source.positives)(*vectors)


def test_relevance_is_asked_by_the_reference_and_positives_by_the_image() -> None:
    source, pairs, vectors = Source(), CaptionPairs(), Encoders()(torch.tensor([0, 1]), torch.tensor([12, 1]))
    images, captions = torch.tensor([0, 1]), torch.tensor([12, 1])
    loss = GlobalNegatives(Ladder(), relevance=pairs, positives=source.positives)
    degrees = torch.from_numpy(pairs.block(captions, captions))
    positives = torch.from_numpy(source.positives(images.numpy(), captions.numpy()))
    assert loss(*vectors, images, captions, reference=captions) == Ladder()(cosine(*vectors), degrees, positives)


def test_the_source_is_asked_only_where_the_loss_reads_it() -> None:
    images, captions = torch.tensor([0, 1]), torch.tensor([0, 1])
    vectors = Encoders()(images, captions)
    for loss, asked in (
        (MaxOfHinges(), 0),
        (MaxOfHinges(mask_above=0.5), 1),
        (Weighted([MaxOfHinges(), SemanticAdaptiveMargin(), Ladder()], [1.0, 1.0, 1.0]), 1),
    ):
        source = Source()
        GlobalNegatives(loss, relevance=source)(*vectors, images, captions)
        assert len(source.asked) == asked


def test_similarities_within_a_modality_may_be_others_than_across() -> None:
    images, captions = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2])
    i, t = Encoders()(images, captions)
    for within in (cosine, inner):
        got = GlobalNegatives(MultiModalNCE(), within=within)(i, t)
        assert got == MultiModalNCE()(cosine(i, t), image_similarity=within(i, i), text_similarity=within(t, t))
    assert GlobalNegatives(MultiModalNCE(), similarity=inner)(i, t) == MultiModalNCE()(
        inner(i, t), image_similarity=inner(i, i), text_similarity=inner(t, t)
    )


def test_a_process_alone_in_its_group_still_leaves_cleanly(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyError),
        process_group("gloo", init_method=f"file://{tmp_path.as_posix()}/meet", rank=0, world_size=1),
    ):
        raise KeyError
    assert not dist.is_initialized()
