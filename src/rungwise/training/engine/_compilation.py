"""Compilation of a run's encoders, where it is asked for and possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from rungwise.core import UserError
from rungwise.models import Autocast, Compilable, Pairs, Positions, TrainableEncoder, TrainableScorer
from rungwise.training.config import TrainConfig


def compile_encoders(
    config: TrainConfig,
    model: TrainableScorer,
    pairs: Pairs,
    autocast: Autocast,
    say: Callable[[str], None],
) -> None:
    """Compile the worthwhile parts of a model, as ``config.compile`` says, and try them on a batch.

    ``auto`` compiles on a GPU. There, a model whose batches have one shape runs from CUDA graphs, and otherwise batches
    of several lengths do not trigger compilation anew. Where ``auto`` fails, the reason is told and the model trains
    uncompiled. Names of weights do not change.

    Args:
        config: Configuration of the run.
        model: Model on its device; its weights and buffers are unchanged.
        pairs: Pairs that batches are cut from.
        autocast: Opens the context in which encoders compute.
        say: Called with sentences for a person.
    """
    wanted, device = config.compile == "yes", model.device
    if config.compile == "no" or (not wanted and device.type != "cuda"):
        return
    parts = model.compilable()
    why_not = ""
    if not parts:
        why_not = "no encoder that is trained can be compiled; a GRU is as quick as it is"
    elif config.step.encodes_twice:
        # Compiled code draws dropout otherwise without a graph than with one.
        why_not = "encoders that see a chunk twice must draw the same both times, which compiled ones do not"
    if not why_not:
        why_not = _compiled(config, model, parts, pairs, autocast)
    if why_not and wanted:
        raise UserError(f"compile: {why_not}; set compile: no")
    if not why_not:
        say(f"{len(parts)} of the model's parts are compiled")
    elif parts:
        say(f"the encoders are not compiled: {why_not}")


def _compiled(
    config: TrainConfig, model: TrainableScorer, parts: Sequence[Compilable], pairs: Pairs, autocast: Autocast
) -> str:
    """Compile and try the parts; the reason where that fails, with the model as before."""
    graphs = model.device.type == "cuda" and all(part.one_shape for part in parts)
    for part in parts:
        part.module.compile(mode="reduce-overhead" if graphs else None, dynamic=None if part.one_shape else True)
    try:
        _try_batch(model, pairs, np.arange(min(config.batch_size, len(pairs))), autocast)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except RuntimeError as error:  # all errors of torch's compiler are such
        for part in parts:
            part.module._compiled_call_impl = None  # the only way back that torch has
        return _reason(error)
    return ""


def _try_batch(model: TrainableScorer, pairs: Pairs, chosen: Positions, autocast: Autocast) -> None:
    """One forward and backward pass, which leaves weights and buffers unchanged."""
    assert isinstance(model, TrainableEncoder)  # which alone have parts to compile
    training, buffers = model.training, {name: one.clone() for name, one in model.named_buffers()}
    model.train()
    with autocast():
        images, captions = model.embed(model.batch(pairs, chosen))
    (images.sum() + captions.sum()).backward()  # type: ignore[no-untyped-call]
    model.zero_grad(set_to_none=True)
    model.train(training)
    with torch.no_grad():
        for name, one in model.named_buffers():
            one.copy_(buffers[name])


def _reason(error: RuntimeError) -> str:
    """One line on the failure, with what a person can do."""
    inner: BaseException | None = error
    while inner is not None and inner.__cause__ is not None:
        inner = inner.__cause__
    lines = [line.strip() for line in str(inner or error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    if "compiler" in str(error).lower() or "triton" in str(error).lower():
        return f"torch found no working compiler ({said}); install g++ (on a GPU Triton, too)"
    return f"torch could not compile them ({said})"
