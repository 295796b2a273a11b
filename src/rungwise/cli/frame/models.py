"""Models for the commands that compute with one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.cli.frame.terminal import chosen_device, say
from rungwise.core.errors import UserError
from rungwise.encoders.pretrained.model_source import ModelSource

if TYPE_CHECKING:
    from rungwise.encoders.precision import Precision
    from rungwise.index import Index, Meaning
    from rungwise.models import DualEncoder, PairScorer
    from rungwise.models.lazy_model import ModelFiles

DEFAULT = ModelSource("hf", "google/siglip2-base-patch32-256")
"""What ``rungwise index`` takes where no model is named: quick on a processor, and of many languages."""
_ABOUT_DEFAULT = "SigLIP 2 by Google: many languages, Apache-2.0, 1.5 GB, fetched once"
"""The licence is that of its family; the size is reckoned from its parameters."""


def say_default() -> None:
    """Say what is taken where no model is named, before it is fetched.

    Raises:
        UserError: If the library that it needs is not installed.
    """
    try:
        DEFAULT.require_library()
    except UserError as error:
        raise UserError(f"{error}; or name a model: --model") from None
    say(f"no --model given: taking {DEFAULT}")
    say(f"({_ABOUT_DEFAULT})")


def location(name: str) -> str:
    """Where a model is, for a program that runs in another folder: folders become absolute, names stay.

    >>> location("hf:google/siglip2-base-patch32-256")
    'hf:google/siglip2-base-patch32-256'
    """
    if (source := ModelSource.parse(name)) is not None:
        return str(source.resolved())
    return str(Path(name).resolve()) if Path(name).exists() else name


def say_cut(model: PairScorer, texts: Sequence[str]) -> None:
    """Count the captions of which the model reads only the beginning; one that gives no vectors does not say."""
    if not (cut := len(model.too_long(texts))):
        return
    which = "the text is" if len(texts) == 1 else f"{cut} of {len(texts)} captions are"
    say(f"{which} longer than the {model.longest_text} tokens that the model reads: cut")


def near_words() -> Meaning | None:
    """What finds known words that mean nearly the same as an unknown one, where a sentence model is installed."""
    from rungwise.encoders.texts.word_meaning import WordMeanings
    from rungwise.index import Meaning

    words = WordMeanings.installed()
    return None if words is None else Meaning(words.encode, words.encode_known)


def read_model(name: str, device: str | None, *, altered: bool) -> PairScorer:
    """:func:`rungwise.models.load` with what the command line was told.

    Args:
        name: Of the folder or the hub repository, or of a published model.
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


def model_files(name: str) -> ModelFiles | None:
    """:meth:`rungwise.models.lazy_model.ModelFiles.of`, likewise."""
    from rungwise.models.lazy_model import ModelFiles

    with _said_by_option():
        return ModelFiles.of(name)


def read_model_of(index: Index, name: str | None, device: str | None, *, altered: bool) -> DualEncoder:
    """The model that built an index, where the index says it is or where ``--model`` says.

    Raises:
        UserError: If nobody says, it is not there, or it gives no vectors.
    """
    place = name or index.manifest.model_location
    if not place:
        raise UserError("the index does not say where its model is; name it: --model")
    try:
        return read_dual_encoder(place, device, altered=altered)
    except UserError as error:
        moved = name is None and ModelSource.parse(place) is None and not Path(place).exists()
        raise UserError(f"{error}; if the model has moved, name it: --model") if moved else error from None


def load_in_worker(name: str, device: str | None, altered: bool, half: bool) -> DualEncoder:
    """The model in a worker of a cluster.

    Args:
        name: As :func:`location` gives it.
        device: As ``--device`` says.
        altered: As ``--altered-model`` says.
        half: Compute features of pictures in bfloat16, for as long as the process lasts.
    """
    from rungwise.models import load_dual_encoder

    if half:
        from rungwise.encoders.precision import computed_in

        _FOR_GOOD.enter_context(computed_in("bfloat16"))
    with _said_by_option():
        return load_dual_encoder(name, device, altered=altered)


_FOR_GOOD = ExitStack()
"""What a worker enters and never leaves."""


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
    from rungwise.encoders.precision import computed_in

    with computed_in(precision, least_cosine=least_cosine, say=say):
        yield


@contextmanager
def _said_by_option() -> Iterator[None]:
    from rungwise.models import AlteredModelError

    try:
        yield
    except AlteredModelError as error:
        raise UserError(f"{error.reason}; get the model anew, or take it as it is with --altered-model") from None
