"""Large batches on one device by cached gradients (GradCache, Gao et al. 2021).

A contrastive loss couples all pairs of a batch, so that accumulating losses of small batches is not the same. But it
reads only the encoders' *vectors*, which are small. So:

1. embed the batch in chunks without a graph, and keep the vectors;
2. compute the loss of all vectors and its gradient with respect to them;
3. embed the chunks once more, with a graph, and go backward from each with its vectors' gradients.

Memory is that of one chunk's graph plus one block of similarities; time is one more forward pass of the encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from torch import Tensor

Chunk = TypeVar("Chunk")


def cached_backward(
    embed: Callable[[Chunk], tuple[Tensor, Tensor]],
    chunks: Sequence[Chunk],
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    no_sync: Callable[[], AbstractContextManager[None]] | None = None,
) -> Tensor:
    """Loss of a batch, with its gradients in ``.grad``, as if the batch had been embedded with one graph.

    Dropout draws the same on a chunk's second visit as on its first, and random numbers afterwards are those that would
    have come without the second. Layers that look at the whole batch, such as batch normalisation, see one chunk at a
    time, twice.

    Args:
        embed: Function from a chunk to its image vectors (n, D) and text vectors (m, D); it sets the precision itself.
        chunks: Parts of the batch, in order.
        loss: Function from all image vectors and all text vectors to a scalar, such as :class:`GlobalNegatives
            <rungwise.training.distributed.GlobalNegatives>`.
        no_sync: Method of ``DistributedDataParallel``, with which gradients are averaged once, after the last chunk.

    Returns:
        The loss, a scalar without a graph.

    >>> from rungwise.losses import MaxOfHinges
    >>> from rungwise.similarity import cosine
    >>> layer = torch.nn.Linear(3, 2, bias=False)
    >>> halves = torch.randn(4, 3).split(2)
    >>> value = cached_backward(lambda x: (layer(x), x[:, :2]), halves, lambda i, t: MaxOfHinges()(cosine(i, t)))
    >>> value.requires_grad, layer.weight.grad.shape
    (False, torch.Size([2, 3]))
    """
    if not chunks:
        raise ValueError("a batch of no chunks has no loss: pass one at least")
    states, images, texts = [], [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(_random_state())
            image_vectors, text_vectors = embed(chunk)
            images.append(image_vectors)
            texts.append(text_vectors)
    all_images, all_texts = torch.cat(images).requires_grad_(), torch.cat(texts).requires_grad_()
    value = loss(all_images, all_texts)
    value.backward()  # type: ignore[no-untyped-call]
    image_slopes, text_slopes = (_slopes(*one) for one in ((all_images, images), (all_texts, texts)))
    afterwards = _random_state()
    for number, chunk in enumerate(chunks):
        _set_random_state(states[number])
        with no_sync() if no_sync is not None and number + 1 < len(chunks) else nullcontext():
            again = zip(embed(chunk), (image_slopes[number], text_slopes[number]), strict=True)
            trained = [(vectors, slopes) for vectors, slopes in again if vectors.requires_grad]
            torch.autograd.backward([vectors for vectors, _ in trained], [slopes for _, slopes in trained])
    _set_random_state(afterwards)
    return value.detach()


def _slopes(together: Tensor, parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The gradient of all vectors, split by chunk."""
    whole = torch.zeros_like(together) if together.grad is None else together.grad
    return torch.split(whole, [len(part) for part in parts])


def _random_state() -> list[Tensor]:
    """Random state of the processor and, where they are in use, of the GPUs."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    return [torch.get_rng_state(), *gpus]


def _set_random_state(state: Sequence[Tensor]) -> None:
    torch.set_rng_state(state[0])
    if len(state) > 1:
        torch.cuda.set_rng_state_all(list(state[1:]))
