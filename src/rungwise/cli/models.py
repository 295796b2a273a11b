"""Models for the commands that compute with one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rungwise.cli.terminal import chosen_device, say
from rungwise.core.errors import UserError

if TYPE_CHECKING:
    from rungwise.encoders.inference import Precision
    from rungwise.models import DualEncoder, PairScorer


def read_model(name: str, device: str | None, *, altered: bool) -> PairScorer:
    """:func:`rungwise.models.load` with what the command line was told.

    Args:
        name: Of the folder or the hub repository.
        device: As ``--device`` says.
        altered: As ``--altered-model`` says.
    """
    from rungwise.models import load  # which files of numbers do not need

    with _said_by_option():
        return load(name, _device(name, device), altered=altered)


def read_dual_encoder(name: str, device: str | None, *, altered: bool) -> DualEncoder:
    """:func:`rungwise.models.load_dual_encoder`, likewise."""
    from rungwise.models import load_dual_encoder

    with _said_by_option():
        return load_dual_encoder(name, _device(name, device), altered=altered)


def _device(name: str, asked: str | None) -> str | None:
    """Where the model computes; to look for a GPU takes torch, which an exported model does without."""
    from rungwise.models.loading import without_torch

    return asked if without_torch(name) else chosen_device(asked)


@contextmanager
def encoding_in(name: str, precision: Precision, least_cosine: float) -> Iterator[None]:
    """Within it, features of pictures that are not at hand are computed as the command line says.

    Args:
        name: Of the model; one that computes without torch has its own precision.
        precision: As ``--precision`` says.
        least_cosine: As ``--least-cosine`` says.
    """
    from rungwise.models.loading import without_torch

    if without_torch(name):
        yield
        return
    from rungwise.encoders.inference import computed_in

    with computed_in(precision, least_cosine=least_cosine, say=say):
        yield


@contextmanager
def _said_by_option() -> Iterator[None]:
    from rungwise.models import AlteredModelError

    try:
        yield
    except AlteredModelError as error:
        raise UserError(f"{error.reason}; get the model anew, or take it as it is with --altered-model") from None
