"""What a file of weights says of the network that it was trained in, by the metadata of its safetensors header.

Weights give poor features under another padding or normalisation, and nothing else shows it. Such a file may be a
stranger's: of its metadata only values of the expected form are read, and all others are passed over. They decide
nothing; where the configuration says otherwise, one sentence says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from rungwise.core import UserError, yaml_line
from rungwise.core.output import quoted
from rungwise.encoders._preprocessing import LARGEST_SIDE
from rungwise.encoders.untrusted._timm_options import check_model_name

_LONGEST = 200
_TOLERANCE = 1e-3
_NUMBER = re.compile(r"[0-9]{0,3}\.?[0-9]{1,20}")

Channels = tuple[float, float, float]


@dataclass(frozen=True)
class WeightsMetadata:
    """A network and the preprocessing of its pictures, as far as a file of weights names them; None where it does not.

    Attributes:
        timm: Name of the network in timm's list.
        pad_type: Padding of its convolutions: same, valid or symmetric.
        input: Side in pixels of the square that it sees.
        mean: Mean of each channel of pixels in 0..1.
        std: Standard deviation of each channel of pixels in 0..1.
    """

    timm: str | None = None
    pad_type: str | None = None
    input: int | None = None
    mean: Channels | None = None
    std: Channels | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> Self:
        """Read the metadata of a file, in which one number of ``mean`` or ``std`` stands for three.

        >>> WeightsMetadata.of({"mean": "0.5", "pad_type": "same", "input": "many", "author": "somebody"})
        WeightsMetadata(timm=None, pad_type='same', input=None, mean=(0.5, 0.5, 0.5), std=None)
        """
        said = {name: text.strip() for name, text in metadata.items() if name in _READERS and len(text) <= _LONGEST}
        return cls(**{name: _READERS[name](text) for name, text in said.items()})

    def warning(self, file: str, ours: WeightsMetadata, options: Mapping[str, Any]) -> str:
        """One sentence on where a configuration differs from this file, with the flags that follow the file.

        Args:
            file: Name of the file.
            ours: What the configuration has.
            options: Options of the configuration's network.

        Returns:
            The sentence; empty where the file says nothing else than the configuration.

        >>> said, ours = WeightsMetadata(input=224), WeightsMetadata("mobilenetv2_100", input=64)
        >>> said.warning("net.safetensors", ours, {})
        "weights 'net.safetensors' say input 224, and the configuration has input 64: ... --model.image.size 224"
        """
        names = [one.name for one in fields(self) if _differ(getattr(self, one.name), getattr(ours, one.name))]
        if not names:
            return ""
        theirs, own = (", ".join(f"{name} {_text(getattr(one, name))}" for name in names) for one in (self, ours))
        values = {name: _text(getattr(self, name)) for name in names}
        values["pad_type"] = f"'{yaml_line({**options, 'pad_type': self.pad_type})}'"
        flags = " ".join(f"{_FLAGS[name]} {values[name]}" for name in names)
        return (
            f"weights {quoted(file)} say {theirs}, and the configuration has {own}: features of pictures may be poor;"
            f" to do as the file says, train with {flags}"
        )


_FLAGS = {
    "timm": "--model.image.backbone",
    "pad_type": "--model.image.options",
    "input": "--model.image.size",
    "mean": "--model.image.mean",
    "std": "--model.image.std",
}


def _network(text: str) -> str | None:
    try:
        check_model_name(text)
    except UserError:
        return None
    return text


def _padding(text: str) -> str | None:
    return text if text in ("same", "valid", "symmetric") else None


def _side(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) and 1 <= int(text) <= LARGEST_SIDE else None


def _channels(text: str) -> Channels | None:
    """One or three numbers in 0..1, separated by commas or spaces, in brackets or not."""
    words = [one for one in re.split(r"[,\s]+", re.sub(r"^[\[(]|[\])]$", "", text)) if one]
    if len(words) not in (1, 3) or not all(_NUMBER.fullmatch(one) for one in words):
        return None
    first, second, third = map(float, words if len(words) == 3 else words * 3)
    return (first, second, third) if max(first, second, third) <= 1 else None


def _deviations(text: str) -> Channels | None:
    found = _channels(text)
    return found if found is not None and min(found) > 0 else None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "timm": _network,
    "pad_type": _padding,
    "input": _side,
    "mean": _channels,
    "std": _deviations,
}


def _differ(said: Any, ours: Any) -> bool:
    if said is None or ours is None:
        return False
    if isinstance(said, str):
        return said.partition(".")[0] != str(ours).partition(".")[0]  # behind the dot are the weights of a network
    if isinstance(said, int):
        return bool(said != ours)
    return not all(math.isclose(one, other, abs_tol=_TOLERANCE) for one, other in zip(said, ours, strict=True))


def _text(value: str | int | Sequence[float]) -> str:
    return str(value) if isinstance(value, str | int) else " ".join(f"{one:.4g}" for one in value)
