"""Models from their folders, whatever the family: ``config.json`` names the kind, and the family reads the rest.

Only the family that is asked for is imported, so that one that needs no torch is read without it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from rungwise.core.devices import choose_device
from rungwise.core.errors import UserError
from rungwise.core.seals import SEAL
from rungwise.encoders.pretrained.source import Source
from rungwise.models.contracts import DualEncoder, PairScorer
from rungwise.models.folder import CONFIG, FORMAT, IMAGE_GRAPH, UNSEALED, AlteredModelError, ModelFolder

FIRST_KIND = "vse"
"""Of folders that were saved before there were kinds."""

_MODULES = {"onnx": "rungwise.models.onnx", "vse": "rungwise.models.vse"}
"""Where the families of this package are, which are imported when one of them is asked for."""
_PUBLISHED = "rungwise.models.published"
"""Likewise, what makes models of other libraries' folders."""


class StoredModel(PairScorer):
    """A pair scorer that is kept in a folder; its family is found by ``kind`` as soon as its class was imported."""

    @classmethod
    @abstractmethod
    def from_folder(cls, folder: ModelFolder, device: str | None) -> Self:
        """The model of a folder whose ``config.json`` names this kind, in evaluation mode.

        Args:
            folder: Where its files are.
            device: Where it computes; None leaves the choice to the family.

        Raises:
            UserError: If files are missing or do not fit each other, or the model cannot compute there.
            AlteredModelError: If a file is not as it was saved.
        """

    @property
    @abstractmethod
    def contents(self) -> str:
        """What was read, in a few words, such as ``"12 tensors"``."""


def without_torch(source: Path | str) -> bool:
    """Whether a folder holds an exported model, which computes on the processor by itself.

    >>> without_torch("nowhere")
    False
    """
    return (Path(source) / IMAGE_GRAPH).is_file()


def load(source: Path | str, device: str | None = None, *, altered: bool = False) -> PairScorer:
    """A model from a folder, or from a hub repository of that name; ``config.json`` says which family it is.

    Published dual encoders are models too: ``hf:`` with a folder or a name for CLIP and SigLIP of transformers,
    ``open_clip:`` with a folder or ``NAME/TAG``, ``st:`` with a folder or a name of sentence-transformers. A folder of
    theirs without the prefix is told by its files.

    Args:
        source: The folder that training wrote (``run/model``), the repository, or a published model.
        device: Where it computes, such as ``"cpu"``; None takes ``cuda`` where there is one.
        altered: Take the files as they are, whatever the folder's seal says; what they ask for is checked all the same.

    Returns:
        A model in evaluation mode, which is a :class:`~rungwise.models.DualEncoder` where it gives vectors.

    Raises:
        UserError: If files are missing or do not fit each other, the kind is unknown, or weights are no finite numbers.
        AlteredModelError: If a file is not as it was saved.
    """
    if (found := Source.named(source)) is not None:
        opened: PairScorer = import_module(_PUBLISHED).opened(found, choose_device(device))
        return opened
    place = device if without_torch(source) else choose_device(device)
    folder = ModelFolder.open(source, altered=altered)
    while True:
        try:
            return _kind_of(folder, altered).from_folder(folder, place)
        except AlteredModelError:
            now = ModelFolder.open(source, altered=altered)
            if now == folder:
                raise
            folder = now  # another model took this one's place while it was read


def load_dual_encoder(source: Path | str, device: str | None = None, *, altered: bool = False) -> DualEncoder:
    """:func:`load`, for what needs vectors.

    Raises:
        UserError: As :func:`load`, and if the model scores pairs without giving vectors.
    """
    model = load(source, device, altered=altered)
    if not isinstance(model, DualEncoder):
        raise UserError(
            f"{source}: a model of kind {model.kind!r} scores pairs and gives no vectors: it can be evaluated but"
            " not indexed; give a dual encoder"
        )
    return model


def _kind_of(folder: ModelFolder, altered: bool) -> type[StoredModel]:
    facts, where = folder.json(CONFIG), str(folder.path / CONFIG)
    if facts.get("format") not in (FORMAT, UNSEALED):
        raise UserError(
            f"{where}: model format {facts.get('format')!r}, this version reads {UNSEALED} and {FORMAT};"
            " use the rungwise version that wrote it"
        )
    if facts["format"] == FORMAT and folder.seal is None and not altered:
        raise AlteredModelError(f"{folder.path / SEAL}: missing, so nobody knows whether the model is as it was saved")
    try:
        return family(facts.get("kind", FIRST_KIND))
    except ValueError as error:
        raise UserError(f"{where}: kind: {error}") from None


def family(kind: object) -> type[StoredModel]:
    """The class whose models are of this kind: one of this package, or one that the program defines.

    Raises:
        ValueError: If there is none; the message names those there are.

    >>> family("vse").__name__
    'JointEmbedding'
    >>> family("bag of words")
    Traceback (most recent call last):
    ValueError: no model family 'bag of words'; there are ...vse...
    """
    if isinstance(kind, str) and kind in _MODULES:
        import_module(_MODULES[kind])
    known = {one.kind: one for one in _below(StoredModel) if vars(one).get("kind")}  # a heir keeps its family
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"no model family {kind!r}; there are {', '.join(sorted({*_MODULES, *known}))}")
    return known[kind]


def _below(one: Any) -> Iterator[type[StoredModel]]:
    for sub in one.__subclasses__():
        yield sub
        yield from _below(sub)
