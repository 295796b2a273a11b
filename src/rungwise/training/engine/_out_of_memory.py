"""One line for a run that is out of memory: which settings to lower, with their present values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rungwise.core import UserError
from rungwise.core.compute import asked_for, ran_out
from rungwise.encoders.texts import GRUConfig
from rungwise.training.config import TrainConfig
from rungwise.training.steps import Plain


@contextmanager
def memory_explained(place: str, remedies: Callable[[], str]) -> Iterator[None]:
    """Context that turns a lack of memory, of the machine or of its GPU, into one line.

    A kill by the system cannot be caught.

    Args:
        place: Where it happened, such as ``"in training on cuda:0"``.
        remedies: Function that says what to lower; called only then.
    """
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        size = asked_for(error)
        much = f", {size} more were asked for" if size else ""
        raise UserError(f"out of memory {place}{much}: {remedies()}; then start anew") from error


def for_steps(config: TrainConfig) -> str:
    """Settings that make a step smaller.

    >>> for_steps(TrainConfig(precision="bfloat16"))
    'lower batch_size (now 128), or set step: {kind: cached_gradients, chunk: 32}'
    """
    ways = [f"lower batch_size (now {config.batch_size})"]
    chunk = getattr(config.step, "chunk", None)
    if chunk is not None:
        ways.append(f"lower step.chunk (now {chunk})")
    else:
        kind = "cached_gradients" if isinstance(config.step, Plain) else config.step.kind
        ways.append(f"set step: {{kind: {kind}, chunk: {max(1, min(64, config.batch_size // 4))}}}")
    if not config.gradient_checkpointing and _trains_layers(config):
        ways.append("set gradient_checkpointing: true (now false)")
    if config.precision == "float32":
        ways.append("set precision: bfloat16 (now float32)")
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def for_model(config: TrainConfig) -> str:
    """Settings that make a model, and its reading of the data, smaller."""
    named = [name for name in ("image.backbone", "dimension") if _has(config.model, name)]
    which = f" ({', '.join(f'model.{name}' for name in named)})" if named else ""
    return f"choose a smaller model{which} or less data, or free some memory"


def _trains_layers(config: TrainConfig) -> bool:
    """Whether an encoder with layers is trained, for which gradient checkpointing works."""
    sides = [getattr(config.model, name, None) for name in ("image", "text")]
    return any(getattr(one, "frozen", True) is False and not isinstance(one, GRUConfig) for one in sides)


def _has(owner: object, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True
