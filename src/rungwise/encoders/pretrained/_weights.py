"""The half of a checkpoint that one tower needs, compared with the network before memory is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from rungwise.core import UserError, read_json
from rungwise.core.formats import read_tensors, tensor_form

INDEX = "model.safetensors.index.json"
_COPY = "copy the folder anew"


def checkpoint_files(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """The safetensors files of a checkpoint: the first of these names, or those that an index lists.

    Raises:
        UserError: If there are none, or only pickled ones.
    """
    index = folder / INDEX
    if index.exists():
        said = read_json(index)
        listed = said.get("weight_map") if isinstance(said, dict) else None
        files = list(listed.values()) if isinstance(listed, dict) else []
        if not files or not all(isinstance(one, str) and Path(one).name == one for one in files):
            raise UserError(f"{index}: names no safetensors files of this folder; {_COPY}")
        return [folder / one for one in sorted(set(files))]
    for name in names:
        if (folder / name).exists():
            return [folder / name]
    pickled = next((one for pattern in ("*.bin", "*.pt", "*.pth") for one in sorted(folder.glob(pattern))), None)
    if pickled is not None:
        raise UserError(
            f"{pickled}: weights as a pickle, which can run code and is not read; get {names[0]} from where the model"
            " comes from, or save the model with safetensors"
        )
    raise UserError(f"{folder}: no weights here ({names[0]} is missing); {_COPY}")


def load_half(
    build: Callable[[], nn.Module],
    files: list[Path],
    owned: Callable[[str], str | None],
    where: Path,
) -> nn.Module:
    """A tower with its weights, in float32.

    Args:
        build: Makes the tower; called on torch's device ``meta`` first, which takes no memory.
        files: Files of the checkpoint.
        owned: Function from a checkpoint's tensor name to the tower's; None for tensors of other parts.
        where: File of the configuration, for errors.

    Raises:
        UserError: If tensors are missing, have other shapes or hold NaN or infinity, or there are more of them.
    """
    try:
        with torch.device("meta"):
            wanted = {name: tensor_form(tensor) for name, tensor in build().state_dict().items()}
    except (RuntimeError, ValueError, TypeError, AssertionError, ArithmeticError, LookupError, AttributeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"{where}: no network can be built as it says ({reason}); {_COPY}") from error
    found: dict[str, Tensor] = {}
    for file in files:
        for name, tensor in read_tensors(file).items():
            own = owned(name)
            if own is None:
                continue
            if own not in wanted:
                raise UserError(
                    f"{file}: {name}: {where.name} asks for no such tensor; the files belong to different models"
                )
            if tensor_form(tensor) != wanted[own]:
                raise UserError(
                    f"{file}: {name}: {tensor_form(tensor)}, but {where.name} asks for {wanted[own]}; the files"
                    " belong to different models"
                )
            found[own] = tensor
    missing = sorted(wanted.keys() - found.keys())
    if missing:
        raise UserError(f"{files[0]}: {len(missing)} tensors are missing, such as {missing[0]}; {_COPY}")
    tower = build()
    tower.load_state_dict(found)
    _refuse_numbers_that_are_none(files[0], tower.state_dict())
    return tower


def _refuse_numbers_that_are_none(file: Path, weights: Mapping[str, Tensor]) -> None:
    for name, tensor in weights.items():
        if (
            tensor.is_floating_point()
            and tensor.numel()
            and not torch.isfinite(torch.stack(torch.aminmax(tensor))).all()
        ):
            raise UserError(f"{file}: {name}: holds NaN or infinite numbers; {_COPY}")
