"""The model of a plan: how large it is, and what it takes to read one query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rungwise.core import UserError
from rungwise.core.disk import explained
from rungwise.planning._need import Need
from rungwise.planning._rates import DEFAULT_ENCODER, FILES, QUERIES, WEIGHTS, Rate, Rates

_EXPORTED, _WEIGHTS = ".onnx", {".safetensors", ".bin", ".pt"}
_LIKE = "quick"
"""Model whose queries stand for those of a model that was not measured."""


@dataclass(frozen=True)
class ModelSize:
    """Size and speed of the model of a plan.

    Attributes:
        name: Name of the model.
        said: Text for the head of a plan: which model, and whether it is the default.
        weights: Bytes of its files.
        exported: Whether it is an export, which needs no torch.
        query: Processor time of encoding one query.
        remark: What is assumed of it; empty if nothing is.
    """

    name: str
    said: str
    weights: Rate
    exported: bool
    query: Rate
    remark: str = ""

    @property
    def kind(self) -> str:
        """Beginning of the names of rates of such models: ``"exported"`` or ``"torch"``."""
        return "exported" if self.exported else "torch"


def model_size(need: Need, rates: Rates) -> ModelSize:
    """The model that a plan reckons with: from its folder, from a known name, else the default's.

    Raises:
        UserError: If the folder holds no weights.

    >>> from rungwise.planning._rates import STORED
    >>> model_size(Need(1000), STORED).said
    'siglip2-base-patch32-256 (the default)'
    """
    name = need.model_name or DEFAULT_ENCODER
    said = name if need.model_name else f"{name} (the default)"
    folder = need.model_folder
    exported = folder is not None and any(path.suffix == _EXPORTED for path in _files(folder))
    kind = f"{name}, exported" if exported else name
    query = rates.get(f"{QUERIES}{kind}") or rates.get(f"{QUERIES}{name}")
    remark = "" if query else f"words of a query are reckoned as with {_LIKE}; --measure --model takes yours"
    query = query or rates[f"{QUERIES}{_LIKE}, exported" if exported else f"{QUERIES}{_LIKE}"]
    if folder is None:
        weights = rates.get(f"{WEIGHTS}{name}")
        if weights is None:
            weights, remark = (
                rates[f"{WEIGHTS}{DEFAULT_ENCODER}"],
                f"the size of {name} is not known: that of the default",
            )
        return ModelSize(name, said, weights, False, query, remark)
    size = sum(_size(path) for path in _files(folder) if path.suffix in ({_EXPORTED} if exported else _WEIGHTS))
    if not size:
        raise UserError(f"{folder}: no file of weights is there; name the folder of a model, or leave out --model")
    weights = Rate(f"weights of {name} in files", float(size), "B", "its folder", machine=FILES)
    return ModelSize(name, f"{name} in {folder}", weights, exported, query, remark)


def _files(folder: Path) -> list[Path]:
    with explained(folder):
        return sorted(path for path in folder.iterdir() if path.is_file())


def _size(path: Path) -> int:
    with explained(path):
        return path.stat().st_size
