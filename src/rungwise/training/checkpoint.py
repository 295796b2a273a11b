"""The state of a run in one file that is replaced as a whole: tensors, and the numbers beside them as JSON.

Nothing random needs saving: batches are drawn from (seed, epoch) and other draws from (seed, step).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.training.collapse import CollapseMemory


@dataclass
class RunState:
    """Where a run stands, after its last finished step.

    Attributes:
        epoch: Epochs finished.
        step: Steps finished in the present epoch.
        total_steps: Steps finished in all.
        loss_sum: Sum of the losses of the present epoch's pairs.
        pairs: Pairs seen in the present epoch.
        best_rsum: Of the snapshot kept.
        best_epoch: Of the snapshot kept, from 1; 0 when there is none yet.
        history: One mapping of numbers an epoch.
        identity: Hashes of what the run was started with.
        collapse: What the collapse watch remembers.
    """

    epoch: int = 0
    step: int = 0
    total_steps: int = 0
    loss_sum: float = 0.0
    pairs: int = 0
    best_rsum: float = -1.0
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    identity: dict[str, str] = field(default_factory=dict)
    collapse: CollapseMemory = field(default_factory=CollapseMemory)


def trained_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters that are trained, and the buffers beside them; a frozen part is left out."""
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    idle = {name.rsplit(".", 1)[0] for name in frozen}
    state: dict[str, Tensor] = model.state_dict()
    return {name: tensor for name, tensor in state.items() if name not in frozen and name.rsplit(".", 1)[0] not in idle}


def save_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: RunState) -> None:
    """Write the run's state; a reader sees the old file or the new one, never a mixture.

    Raises:
        UserError: If the disk is full; the old checkpoint then stays.
    """
    tensors = {f"model/{name}": tensor for name, tensor in trained_tensors(model).items()}
    for name, parameter in _named(model, optimizer):
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer/{name}/{key}"] = value
    with replacing(path) as draft:
        contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, draft, metadata={"state": json.dumps(asdict(state))})


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, identity: dict[str, str]
) -> RunState:
    """Put a run back where it stood.

    Args:
        path: Of the checkpoint.
        model: Of the same make; changed in place.
        optimizer: Of the model's parameters; changed in place.
        identity: What the run is about to go on with.

    Raises:
        UserError: If there is no checkpoint, or if it belongs to other data or another configuration.
    """
    try:
        with safe_open(path, framework="pt") as file:
            saved = json.loads(file.metadata()["state"])
            state = RunState(**saved | {"collapse": CollapseMemory(**saved.get("collapse", {}))})
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(f"{path}: no checkpoint to resume from; start without --resume") from None
    except (SafetensorError, TypeError, KeyError, ValueError) as error:
        raise UserError(f"{path}: not a readable checkpoint ({error}); start without --resume") from error
    for what, value in identity.items():
        if state.identity.get(what) != value:
            raise UserError(
                f"{path}: the run was started with another {what} ({state.identity.get(what, 'none')[:12]} then,"
                f" {value[:12]} now); resume with the same, or start anew"
            )
    trained = {name.removeprefix("model/"): tensor for name, tensor in tensors.items() if name.startswith("model/")}
    model.load_state_dict(trained, strict=False)
    for name, parameter in _named(model, optimizer):
        moments: dict[str, Any] = {}
        prefix = f"optimizer/{name}/"
        for key, tensor in tensors.items():
            if key.startswith(prefix):
                # Fused Adam walks through memory: its moments must be laid out like the parameter, not like the file.
                like = torch.empty_like(parameter) if tensor.shape == parameter.shape else tensor
                moments[key.removeprefix(prefix)] = like.copy_(tensor).to(parameter.device)
        if moments:
            optimizer.state[parameter] = moments
    return state


def _named(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[tuple[str, nn.Parameter]]:
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return [(name, parameter) for name, parameter in model.named_parameters() if id(parameter) in held]
