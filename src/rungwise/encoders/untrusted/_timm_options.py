"""Options that a configuration may pass to timm: plain values that shape a network, by name and type.

timm's factory takes far more than that: files to unpickle, places to download from, folders to write to, functions to
call. A configuration file may be a stranger's, so only what is listed here is passed on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard

from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core import UserError, parse_yaml, yaml_line
from rungwise.core.output import quoted
from rungwise.core.text import near_names

_LARGEST = 8192
_MODEL_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")

_ACTIVATIONS = (
    *("celu", "elu", "gelu", "gelu_tanh", "hard_mish", "hard_sigmoid", "hard_swish", "leaky_relu", "mish", "prelu"),
    *("quick_gelu", "relu", "relu6", "selu", "sigmoid", "silu", "swish", "tanh"),
)
_NORMS = (
    *("batchnorm", "batchnorm2d", "frozenbatchnorm2d", "groupnorm", "groupnorm1", "layernorm", "layernorm2d"),
    *("rmsnorm", "rmsnorm2d", "simplenorm", "simplenorm2d"),
)
_POOLS = ("avg", "max", "avgmax", "catavgmax", "fast", "fastavg", "fastmax", "fastavgmax", "token", "map", "prr")


@dataclass(frozen=True)
class _Kind:
    """Type of an option's value.

    Attributes:
        what: Description for messages.
        fits: Whether a value has the type.
    """

    what: str
    fits: Callable[[object], bool]


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LARGEST


def _one_of(*words: str) -> _Kind:
    return _Kind("one of " + ", ".join(words), lambda value: isinstance(value, str) and value in words)


_FLAG = _Kind("true or false", lambda value: isinstance(value, bool))
_SHARE = _Kind("a number of at least 0 and below 1", lambda value: _number(value) and 0 <= value < 1)
_SMALL = _Kind("a number above 0 and at most 1", lambda value: _number(value) and 0 < value <= 1)
_SIZE = _Kind(
    f"a whole number in 1..{_LARGEST}, or two of them",
    lambda value: _whole(value) or (isinstance(value, list | tuple) and len(value) == 2 and all(map(_whole, value))),
)

OPTIONS: Mapping[str, _Kind] = {
    "act_layer": _one_of(*_ACTIVATIONS),
    "always_partition": _FLAG,
    "attn_drop_rate": _SHARE,
    "class_token": _FLAG,
    "drop_path_rate": _SHARE,
    "drop_rate": _SHARE,
    "dynamic_img_pad": _FLAG,
    "dynamic_img_size": _FLAG,
    "fc_norm": _FLAG,
    "final_norm": _FLAG,
    "global_pool": _one_of(*_POOLS),
    "img_size": _SIZE,
    "init_values": _SMALL,
    "no_embed_class": _FLAG,
    "norm_eps": _SMALL,
    "norm_layer": _one_of(*_NORMS),
    "output_stride": _Kind("8, 16 or 32", lambda value: _whole(value) and value in (8, 16, 32)),
    "pad_type": _one_of("same", "valid", "symmetric"),
    "patch_drop_rate": _SHARE,
    "patch_size": _SIZE,
    "pos_drop_rate": _SHARE,
    "proj_drop_rate": _SHARE,
    "qk_norm": _FLAG,
    "qkv_bias": _FLAG,
    "strict_img_size": _FLAG,
    "window_size": _SIZE,
}
"""Options of ``model.image.options`` with their types. Not every network takes each of them."""


def check_options(options: Mapping[str, object]) -> None:
    """Refuse options of a network that are not listed, or whose value has another type.

    >>> check_options({"pad_type": "same", "drop_path_rate": 0.1})
    >>> check_options({"checkpoint_path": "weights.pth"})
    Traceback (most recent call last):
    rungwise.core.UserError: image.options: 'checkpoint_path' is no option of a backbone; there are ...
    """
    for name, value in options.items():
        if name not in OPTIONS:
            near = "".join(f"; do you mean {one}" for one in near_names(str(name), OPTIONS))
            raise UserError(
                f"image.options: {str(name)[:60]!r} is no option of a backbone; there are {', '.join(OPTIONS)}{near}"
            )
        if not OPTIONS[name].fits(value):
            raise UserError(f"image.options: {name} must be {OPTIONS[name].what}, got {repr(value)[:60]}")


def _read_options(words: list[str]) -> dict[str, Any]:
    try:
        values = parse_yaml(words[0], "the options")
    except UserError as error:
        raise ValueError(str(error)) from None
    if not isinstance(values, dict):
        raise ValueError(f"{quoted(words[0])} is no mapping; write such as '{{pad_type: same}}', or '{{}}' for none")
    return values


NetworkOptions = Annotated[
    dict[str, Any],
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="{NAME: VALUE, ...}",
        instance_from_str=_read_options,
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [yaml_line(value)],
    ),
]
"""Type of a field that holds options of a network; on the command line a mapping in YAML."""


def check_model_name(name: str) -> None:
    """Refuse names that are not in timm's own list: timm also takes repositories, paths and folders.

    >>> check_model_name("hf-hub:somebody/model")
    Traceback (most recent call last):
    rungwise.core.UserError: image.backbone: 'hf-hub:somebody/model' is no name of timm's list; give one ...
    """
    if not _MODEL_NAME.fullmatch(name):
        raise UserError(
            f"image.backbone: {name[:100]!r} is no name of timm's list; give one such as resnet152, or with its weights"
            " vit_base_patch16_224.augreg_in21k; prefixes, repositories and paths are not taken"
        )
