"""Every source of relevance degrees with its options, as typed data.

One dataclass a source is what a training configuration holds and what the command line is generated from; its docstring
is the one description of its options. Models and kernels are loaded when a source is built, not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import BeforeValidator

from rungwise.core.configuration import from_plain
from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.relevance.base import Degrees
from rungwise.relevance.config.base import Building, SourceConfig, training_images
from rungwise.relevance.config.composed import CascadeConfig, CombineConfig
from rungwise.relevance.config.given import HumanConfig, LabelsConfig
from rungwise.relevance.config.models import BiEncoderConfig, CrossEncoderConfig
from rungwise.relevance.config.words import CBoWConfig, CIDErConfig, CIDErDConfig, TfIdfConfig
from rungwise.relevance.storage import load

__all__ = [
    "CONFIGS",
    "KINDS",
    "AnySource",
    "AnySourceOrNone",
    "BiEncoderConfig",
    "Building",
    "CBoWConfig",
    "CIDErConfig",
    "CIDErDConfig",
    "CascadeConfig",
    "CombineConfig",
    "CrossEncoderConfig",
    "HumanConfig",
    "LabelsConfig",
    "SourceConfig",
    "TfIdfConfig",
    "degrees_of",
    "names_source",
    "source_config",
    "training_images",
]

CONFIGS: tuple[type[SourceConfig], ...] = (
    CIDErDConfig,
    CIDErConfig,
    TfIdfConfig,
    CBoWConfig,
    BiEncoderConfig,
    CrossEncoderConfig,
    CascadeConfig,
    LabelsConfig,
    HumanConfig,
    CombineConfig,
)
"""Every source, in the order of their list on the command line."""

KINDS: dict[str, type[SourceConfig]] = {config.kind: config for config in CONFIGS}
"""Configurations by the name of their source."""


def source_config(value: str | Mapping[str, Any] | SourceConfig, where: str = "relevance") -> SourceConfig:
    """The configuration of a source from its name, or from a mapping with its ``kind`` and options.

    Args:
        value: Such as ``"tfidf"``, ``{"kind": "tfidf", "tokenizer": "unicode"}``, or that mapping as a text in braces.
        where: What to name in an error.

    Raises:
        UserError: If there is no such source, or an option is unknown or of the wrong type.

    >>> source_config("bi-encoder").kind
    'bi-encoder'
    >>> source_config("{kind: tfidf, orders: 2}").orders
    2
    >>> source_config("bleu")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: relevance: no source 'bleu'; there are cider-d, cider, tfidf, cbow, bi-encoder, ...
    """
    if isinstance(value, SourceConfig):
        return value
    if isinstance(value, str):
        value = _in_braces(value, where) or {"kind": value}
    if not isinstance(value, Mapping):
        raise UserError(f"{where}: give the name of a source or a mapping with its kind, got {type(value).__name__}")
    options = dict(value)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        said = "the mapping has no kind" if kind is None else f"no source {kind!r}"
        raise UserError(f"{where}: {said}; there are {', '.join(KINDS)}")
    return from_plain(KINDS[kind], options, where)


AnySource = Annotated[SourceConfig, BeforeValidator(source_config)]
"""A field of a configuration that holds a source; YAML may give a name or a mapping."""

AnySourceOrNone = Annotated[
    SourceConfig | None, BeforeValidator(lambda value: None if value is None else source_config(value))
]
"""The same where there may be none."""


def degrees_of(
    value: str | Mapping[str, Any] | SourceConfig, data: ImageCaptions, *, building: Building | None = None
) -> Degrees:
    """Degrees of a collection: built by a source, or saved in a folder.

    Args:
        value: What :func:`source_config` takes, or the path of a folder that
            :meth:`rungwise.relevance.base.Degrees.save` made; a folder that has the name of a source is ``./name``.
        data: The collection that the degrees must be of.
        building: See :meth:`SourceConfig.build`.

    Raises:
        UserError: As :func:`source_config` and ``build``; or if there is no such folder, or its degrees are of other
            data.
    """
    if not isinstance(value, str) or names_source(value):
        return source_config(value).build(data, building=building)
    if not Path(value).expanduser().exists():
        raise UserError(f"{value}: neither a folder of saved degrees nor a source; sources are {', '.join(KINDS)}")
    stored = load(Path(value).expanduser(), data=data)
    owners = stored.image_of_caption
    if stored.shape != (len(data), len(data.captions)) or (
        owners is not None and not np.array_equal(owners, data.image_of_caption)
    ):
        raise UserError(
            f"{value}: degrees of {stored.shape[0]} images and {stored.shape[1]} captions, but {data.name} has"
            f" {len(data)} and {len(data.captions)}, or in another order; save the degrees of these data"
        )
    return stored


def names_source(text: str) -> bool:
    """Whether a text is the name of a source, or one with options in braces, and not a path.

    >>> names_source("tfidf"), names_source("{kind: tfidf}"), names_source("./tfidf")
    (True, True, False)
    """
    return text in KINDS or text.lstrip().startswith("{")


def _in_braces(text: str, where: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{where}: {text!r} is not YAML; write it as '{{kind: tfidf, tokenizer: unicode}}'") from error
    return dict(found)
