"""Every source of relevance degrees with its options, as typed data.

One dataclass a source is what a training configuration holds and what the command line is generated from; its docstring
is the one description of its options. Models and kernels are loaded when a source is built, not before.
"""

from rungwise.relevance.config._base import Building, SourceConfig, training_images
from rungwise.relevance.config._given import HumanConfig, LabelsConfig
from rungwise.relevance.config._models import BiEncoderConfig, CrossEncoderConfig
from rungwise.relevance.config._scene_graphs import SpiceConfig
from rungwise.relevance.config._sources import (
    CONFIGS,
    KINDS,
    SOURCES,
    AnySource,
    AnySourceOrNone,
    CascadeConfig,
    CombineConfig,
    VisualConfig,
    degrees_of,
    names_source,
    source_config,
)
from rungwise.relevance.config._words import CBoWConfig, CIDErConfig, CIDErDConfig, TfIdfConfig

__all__ = [
    "CONFIGS",
    "KINDS",
    "SOURCES",
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
    "SpiceConfig",
    "TfIdfConfig",
    "VisualConfig",
    "degrees_of",
    "names_source",
    "source_config",
    "training_images",
]
