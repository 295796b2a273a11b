"""Models for commands that compute with one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import UserError, require
from rungwise.encoders.pretrained import ModelSource
from rungwise.jobs._terminal import chosen_device, say
from rungwise.parts import import_named

if TYPE_CHECKING:
    from rungwise.encoders import Precision
    from rungwise.index import Index, Meaning, Searcher
    from rungwise.models import DualEncoder, ModelFiles, PairScorer

DEFAULT = ModelSource("hf", "google/siglip2-base-patch32-256")
"""Model that ``rungwise index`` takes by default: fast on a processor, with many languages."""
_MTEB = "mteb:"
"""Prefix of the name of a model of mteb."""
_ABOUT_DEFAULT = "SigLIP 2 by Google: many languages, Apache-2.0, 1.5 GB, fetched once"
"""Facts about the default model: the licence is that of its family, the size is computed from its parameters."""


def say_default() -> None:
    """Print which default model is taken, before it is fetched; UserError without the library that it needs."""
    try:
        DEFAULT.require_library()
    except UserError as error:
        raise UserError(f"{error}; or name a model: --model") from error
    say(f"no --model given: taking {DEFAULT}")
    say(f"({_ABOUT_DEFAULT})")


def location(name: str) -> str:
    """Location of a model for a program in another folder: folders become absolute, names stay.

    >>> location("hf:google/siglip2-base-patch32-256")
    'hf:google/siglip2-base-patch32-256'
    """
    if not name:
        return ""
    if (source := ModelSource.parse(name)) is not None:
        return str(source.resolved())
    return str(Path(name).resolve()) if Path(name).exists() else name


def model_of(given: str) -> str:
    """The folder of a run's model in place of the run's; any other name as it is.

    Raises:
        UserError: If it is a folder of several seeds.
    """
    from rungwise.runs import is_run_folder
    from rungwise.training import MODEL

    place = Path(given)
    if given and (seeds := sorted(one for one in place.glob("seed-*") if is_run_folder(one))):
        raise UserError(f"{given}: holds several seeds; give one of them, such as {seeds[0]}")
    return str(place / MODEL) if given and is_run_folder(place) else given


def say_cut(model: PairScorer, texts: Sequence[str]) -> None:
    """Print how many captions are longer than the model reads; models without vectors do not say."""
    if not (cut := len(model.too_long(texts))):
        return
    which = "the text is" if len(texts) == 1 else f"{cut} of {len(texts)} captions are"
    say(f"{which} longer than the {model.longest_text} tokens that the model reads: cut")


def near_words() -> Meaning | None:
    """Source of known words near in meaning to an unknown one, where a sentence model is installed."""
    from rungwise.encoders.texts import WordMeanings
    from rungwise.index import Meaning

    words = WordMeanings.installed()
    return None if words is None else Meaning(words.encode, words.encode_known)


def read_model(name: str | PairScorer, device: str | None, *, altered: bool) -> PairScorer:
    """Load a model with :func:`rungwise.models.load`, as the options say; one that is loaded is taken as it is."""
    from rungwise.models import load  # which files of numbers do not need

    if not isinstance(name, str):
        return name
    if name.startswith(_MTEB):
        return _of_mteb(name, device)
    name = model_of(name)
    with _said_by_option():
        return load(name, _device(name, device), altered=altered)


def read_dual_encoder(name: str | PairScorer, device: str | None, *, altered: bool) -> DualEncoder:
    """Load a dual encoder, like :func:`read_model`."""
    from rungwise.models import DualEncoder, load_dual_encoder

    if not isinstance(name, str):
        if not isinstance(name, DualEncoder):
            raise UserError(f"{type(name).__name__}: is a model without vectors; only a dual encoder is indexed")
        return name
    if name.startswith(_MTEB):
        return _of_mteb(name, device)
    name = model_of(name)
    with _said_by_option():
        return load_dual_encoder(name, _device(name, device), altered=altered)


def _of_mteb(name: str, device: str | None) -> DualEncoder:
    """Load a model of mteb from this machine."""
    require("mteb", f"{name}: a model of mteb")
    from rungwise.integrations.mteb import load_mteb

    return load_mteb(name.removeprefix(_MTEB), chosen_device(device))


def model_files(name: str) -> ModelFiles | None:
    """Files of a model, by its name; None where they do not hold all of it."""
    from rungwise.models import ModelFiles

    if name.startswith(_MTEB):
        return None
    with _said_by_option():
        return ModelFiles.of(name)


def read_model_of(index: Index, name: str | PairScorer | None, device: str | None, *, altered: bool) -> DualEncoder:
    """Load the model that built an index, from the place in the index or from ``--model``.

    Raises:
        UserError: If no place is known, the model is missing, or it has no vectors.
    """
    place = name or index.manifest.model_location
    if not place:
        raise UserError("the index does not say where its model is; name it: --model")
    try:
        return read_dual_encoder(place, device, altered=altered)
    except UserError as error:
        moved = name is None and ModelSource.parse(str(place)) is None and not Path(str(place)).exists()
        raise UserError(f"{error}; if the model has moved, name it: --model") if moved else error from None


def load_in_worker(modules: tuple[str, ...], name: str, device: str | None, altered: bool, half: bool) -> DualEncoder:
    """Load the model in a worker of a cluster.

    Args:
        modules: Modules that were named, which the parts of the model may come from.
        name: Location of the model from :func:`location`.
        device: Value of ``--device``.
        altered: Value of ``--altered-model``.
        half: Whether to compute features of pictures in bfloat16 for the life of the process.
    """
    from rungwise.models import load_dual_encoder

    import_named(modules)
    if half:
        from rungwise.encoders import computed_in

        _FOR_GOOD.enter_context(computed_in("bfloat16"))
    if name.startswith(_MTEB):
        return _of_mteb(name, device)
    with _said_by_option():
        return load_dual_encoder(name, device, altered=altered)


def open_searcher(
    index: Index, *, name: str | None, device: str | None, altered: bool, modules: Sequence[str] = ()
) -> Searcher:
    """Searcher of an index in a process of its own, as a server makes it.

    Args:
        index: The index.
        name: Location of its model; None where the index says.
        device: Value of ``--device``.
        altered: Value of ``--altered-model``.
        modules: Modules that were named, which the parts of the model may come from.
    """
    from rungwise.index import Searcher

    import_named(modules)
    return Searcher(index, read_model_of(index, name, device, altered=altered), meaning=near_words())


_FOR_GOOD = ExitStack()
"""Contexts that a worker enters and never leaves."""


def _device(name: str, asked: str | None) -> str | None:
    """Device of the model; looking for a GPU needs torch, which an exported model does without."""
    from rungwise.models import without_torch

    return asked if without_torch(name) else chosen_device(asked)


@contextmanager
def encoding_in(name: str | PairScorer, precision: Precision, least_cosine: float) -> Iterator[None]:
    """Context in which missing features of pictures are computed as ``--precision`` and ``--least-cosine`` say.

    A model that computes without torch has its own precision.
    """
    from rungwise.models import without_torch

    if isinstance(name, str) and without_torch(name):
        yield
        return
    from rungwise.encoders import computed_in

    with computed_in(precision, least_cosine=least_cosine, say=say):
        yield


@contextmanager
def _said_by_option() -> Iterator[None]:
    from rungwise.models import AlteredModelError

    try:
        yield
    except AlteredModelError as error:
        raise UserError(f"{error.reason}; get the model anew, or take it as it is with --altered-model") from None
