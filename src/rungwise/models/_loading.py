"""Opening of models from a folder, a hub repository, or a published dual encoder."""

from __future__ import annotations

from pathlib import Path

from rungwise.core import UserError, is_regular, require
from rungwise.core.compute import choose_device
from rungwise.encoders.pretrained import ModelSource
from rungwise.models._average import Average, members_of
from rungwise.models._contracts import DualEncoder, PairScorer
from rungwise.models.io import IMAGE_GRAPH, read_stored


def without_torch(source: Path | str) -> bool:
    """Whether a folder holds an exported model, which runs on the processor without torch."""
    return is_regular(Path(source) / IMAGE_GRAPH)


def load(source: Path | str, device: str | None = None, *, altered: bool = False) -> PairScorer:
    """Open a model from a folder, or from a hub repository of that name; ``config.json`` names its family.

    Published dual encoders are models too: ``hf:`` with a folder or a name for CLIP and SigLIP of transformers,
    ``open_clip:`` with a folder or ``NAME/TAG``, ``st:`` with a folder or a name of sentence-transformers. Without the
    prefix, such a folder is recognised by its files.

    ``average:ONE,OTHER`` is the mean of the scores of two models or more, such as SGR and SAF, which make SGRAF: an
    :class:`~rungwise.models._average.Average`.

    Args:
        source: The folder that training wrote (``run/model``), the repository, a published model, or an average.
        device: Device such as ``"cpu"``; None takes ``cuda`` where there is one.
        altered: Whether to take the files without comparing them with the folder's seal; what they ask for is checked
            all the same.

    Returns:
        A model in evaluation mode, which is a :class:`~rungwise.models.DualEncoder` where it gives vectors.

    Raises:
        UserError: If files are missing or do not fit each other, the kind is unknown, or weights are not finite.
        MissingExtraError: If a library is missing that the model needs.
        AlteredModelError: If a file is not as it was saved.
    """
    if (names := members_of(str(source))) is not None:
        return Average([load(name, device, altered=altered) for name in names])
    if (found := ModelSource.named(source)) is not None:
        found.require_library()
        from rungwise.models.joint import pretrained  # torch, which exported models do without

        return pretrained.open_published(found, choose_device(device))
    if exported := without_torch(source):
        require("onnxruntime", f"{source}: an exported model")
    # Before anything is read; but to look for a GPU takes torch.
    place = device if exported else choose_device(device)
    return read_stored(source, place, altered=altered)


def load_dual_encoder(source: Path | str, device: str | None = None, *, altered: bool = False) -> DualEncoder:
    """Open a model that gives vectors.

    Raises:
        UserError: As :func:`load`, and if the model only scores pairs.
    """
    model = load(source, device, altered=altered)
    if not isinstance(model, DualEncoder):
        raise UserError(
            f"{source}: a model of kind {model.kind!r} scores pairs and gives no vectors, so that nothing is indexed or"
            " calibrated with it; give a dual encoder, whose best hits it orders anew: evaluate or search with --rerank"
        )
    return model
