"""One of two processes: every case of :mod:`tests.training.every_loss` over both; writes what it got.

python -m tests.training.one_of_two RANK FOLDER
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn.parallel import DistributedDataParallel

from rungwise.training.distributed import GlobalNegatives, average_gradients, process_group
from rungwise.training.steps import cached_backward
from tests.training.every_loss import (
    Encoders,
    Source,
    by_caption_pair,
    cases,
    gradients,
    with_another_similarity_within,
)


def run(rank: int) -> dict[str, torch.Tensor]:
    source, model = Source(), DistributedDataParallel(Encoders())
    results = {}
    for name, shares, queries, loss in cases():
        together = GlobalNegatives(loss, relevance=source, positives=source.positives)
        images, captions = (torch.tensor(positions) for positions in shares[rank])
        model.zero_grad()
        torch.manual_seed(5)
        value = together(*model(images, captions), images, captions, queries=queries)
        value.backward()
        average_gradients(loss.parameters())
        results[name] = torch.cat([value.detach().reshape(1), gradients(model, loss)])
    own = 4 - rank
    assert source.asked[:2] == [(own, 7), (7, own)]
    for make in (by_caption_pair, with_another_similarity_within):
        shares, together = make()
        images, captions = (torch.tensor(positions) for positions in shares[rank])
        model.zero_grad()
        value = together(*model(images, captions), images, captions, captions)
        value.backward()
        results[make.__name__] = torch.cat([value.detach().reshape(1), gradients(model)])
    results["cached"] = cached(model, source, rank)
    return results


def cached(model: DistributedDataParallel, source: Source, rank: int) -> torch.Tensor:
    _, shares, _, loss = next(cases())
    together = GlobalNegatives(loss, relevance=source, positives=source.positives)
    images, captions = (torch.tensor(positions) for positions in shares[rank])
    model.zero_grad()
    value = cached_backward(
        lambda chunk: model(*chunk),
        list(zip(images.split(2), captions.split(2), strict=True)),
        lambda i, t: together(i, t, images, captions),
        no_sync=model.no_sync,
    )
    return torch.cat([value.reshape(1), gradients(model)])


if __name__ == "__main__":
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    with process_group("gloo", init_method=f"file://{(folder / 'meet').as_posix()}", rank=rank, world_size=2):
        save_file(run(rank), folder / f"{rank}.safetensors")
