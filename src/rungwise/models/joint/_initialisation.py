"""Joint embeddings that start from the weights of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import Tensor

from rungwise.core import UserError, identity
from rungwise.data.files import FeatureRows
from rungwise.encoders import NoHead, OneHead, stacked
from rungwise.models._contracts import WEIGHTS_WARNING
from rungwise.models.joint._config import VSEConfig
from rungwise.models.joint._joint_embedding import JointEmbedding

IMAGE_HEAD, TEXT_HEAD = "image_projection.", "text_projection."
_VIEW = ("crops", "mirrored")
"""Settings of how a picture is seen, which do not change the weights."""


@dataclass(frozen=True)
class Initialised:
    """A model and the origin of its weights.

    Attributes:
        model: The model to be trained.
        taken: Names of the parts whose weights come from the other model, such as "image encoder".
        new: Names of the parts with new weights.
    """

    model: JointEmbedding
    taken: tuple[str, ...]
    new: tuple[str, ...]


def as_it_is(start: JointEmbedding, *, image: bool, text: bool, like: VSEConfig | None = None) -> Initialised:
    """The other model unchanged, to be trained further.

    Args:
        start: The other model.
        image: Whether its image encoder is trained.
        text: Whether its text encoder is trained.
        like: A configuration of the same encoders. An encoder that it freezes is not trained; its ``crops``,
            ``mirrored`` and ``batch_norm`` replace those of the model.
    """
    own, text_config = start.config.image, start.config.text
    if like is not None:
        image, text = image and not like.image.frozen, text and not like.text.frozen
        if isinstance(own, type(like.image)):  # rows of features may stand in for it
            own = _seen_as(own, like.image)
    config = replace(start.config, image=_frozen(own, not image), text=_frozen(text_config, not text))
    return _put_together(config, start, True, True)


def with_new_heads(start: JointEmbedding, image: OneHead, text: OneHead) -> Initialised:
    """The other model with frozen encoders, and new heads on top of its own; :class:`NoHead` adds none."""
    config = replace(
        start.config,
        image=_frozen(start.config.image, True),
        text=_frozen(start.config.text, True),
        image_head=start.config.image_head if isinstance(image, NoHead) else stacked(start.config.image_head, image),
        text_head=start.config.text_head if isinstance(text, NoHead) else stacked(start.config.text_head, text),
    )
    begun = _put_together(config, start, True, True)
    for side in (begun.model.backbone, begun.model.text_encoder):
        side.requires_grad_(False)  # also one that no configuration freezes, such as a GRU
    return begun


def with_weights_that_fit(
    config: VSEConfig,
    start: JointEmbedding,
    captions: Sequence[str] | FeatureRows,
    features: FeatureRows | None = None,
) -> Initialised:
    """A new model with those of the other model's weights that fit.

    An encoder is taken whole, with its vocabulary, where both configurations describe the same one and its vectors have
    the same width. Weights of heads are taken by name and shape; a stack takes the other model's head as its first.

    Args:
        config: Configuration of the new model.
        start: The other model.
        captions: Captions of the training split.
        features: The rows that stand for pictures; None where the collection has pictures.
    """
    own_image = config.image if features is None else start.config.image
    same_image = _same(own_image, start.config.image)
    same_text = _same(config.text, start.config.text)
    if same_image and same_text and config.dimension == start.config.dimension:
        return _put_together(replace(config, image=own_image), start, True, True)
    new = JointEmbedding.create(config, captions, features)
    same_text = same_text and new.text_encoder.width == start.text_encoder.width
    return _put_together(new.config, start, same_image, same_text, new)


def _put_together(
    config: VSEConfig, start: JointEmbedding, image: bool, text: bool, new: JointEmbedding | None = None
) -> Initialised:
    """A model with the other one's encoders where they are taken, and its heads where they fit.

    ``image`` and ``text`` say whether the encoder is taken; ``new`` is a model with the encoders that are not.
    """
    sides = [(start if taken else new or start) for taken in (image, text)]
    for side, was, now in (
        (sides[0].backbone, sides[0].config.image, config.image),
        (sides[1].text_encoder, sides[1].config.text, config.text),
    ):
        if was.frozen and not now.frozen:
            side.requires_grad_(True)
    model = JointEmbedding(config, sides[0].backbone.under(config.image), lambda: sides[1].text_encoder)
    if image and start.weights_warning:
        model.provenance = {WEIGHTS_WARNING: start.weights_warning}
    found = _heads(start.state_dict())
    fitting = {}
    for name, tensor in _heads(model.state_dict()).items():
        for other in (name, _unstacked(name)):
            if other in found and found[other].shape == tensor.shape:
                fitting[name] = found[other]
                break
    model.load_state_dict(fitting, strict=False)
    parts = {"image encoder": image, "text encoder": text}
    for place, title in ((IMAGE_HEAD, "image head"), (TEXT_HEAD, "text head")):
        asked = [name for name in model.state_dict() if name.startswith(place)]
        got = [name for name in asked if name in fitting]
        if got:
            parts[title if len(got) == len(asked) else f"{title} ({len(got)} of {len(asked)} tensors)"] = True
        elif asked:
            parts[title] = False
    return Initialised(
        model,
        tuple(name for name, taken in parts.items() if taken),
        tuple(name for name, taken in parts.items() if not taken),
    )


def _heads(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if name.startswith((IMAGE_HEAD, TEXT_HEAD))}


def _unstacked(name: str) -> str:
    """Name of a tensor in a stack's first head, as it is without the stack."""
    for place in (IMAGE_HEAD, TEXT_HEAD):
        name = name.replace(f"{place}0.", place, 1)
    return name


def _same(one: Any, other: Any) -> bool:
    """Whether two configurations describe the same weights of an encoder, wherever they are loaded from."""
    names = [getattr(side, "model", getattr(side, "source", None)) for side in (one, other)]
    known = [{name: value for name, value in identity(side).items() if name not in _VIEW} for side in (one, other)]
    return names[0] == names[1] and known[0] == known[1]


def _seen_as(own: Any, like: Any) -> Any:
    """An image encoder's configuration with another one's settings of views and batch norm."""
    taken = [one.name for one in fields(own) if one.name in (*_VIEW, "batch_norm")]
    if taken and not _same(own, like):
        mine, others = (identity(one) for one in (own, like))
        name = next((one for one in mine if one not in _VIEW and mine[one] != others.get(one)), "kind")
        raise UserError(
            f"tune: model.image describes another encoder than the model that is begun from ({name}:"
            f" {others.get(name)!r}, not {mine.get(name)!r}); give it the same, or leave configured out"
        )
    return replace(own, **{name: getattr(like, name) for name in taken})


def _frozen(side: Any, frozen: bool) -> Any:
    """An encoder's configuration, frozen or not, where that is a setting."""
    known = {one.name for one in fields(side)}
    if "frozen" not in known:
        return side
    whole = {"train_layers": None} if frozen and "train_layers" in known else {}
    return replace(side, frozen=frozen, **whole)
