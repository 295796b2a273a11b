"""Checkpoints: the state of a run in one file that is replaced as a whole, tensors with numbers as JSON.

Nothing random needs saving: batches are drawn from (seed, epoch), other draws from (seed, step). The file's header
names every tensor and has a checksum of the whole content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from rungwise.core import STRICT, Count, MissingFileError, UserError, in_words, require_regular
from rungwise.core.disk import replacing
from rungwise.core.formats import write_tensors
from rungwise.core.output import short_repr
from rungwise.training.engine._collapse import CollapseMemory
from rungwise.training.steps import OptimizerConfig, Scaling, WeightAverage


@dataclass
class RunState:
    """The state of a run after its last finished step.

    Attributes:
        epoch: Number of finished epochs.
        step: Number of finished steps in the present epoch.
        total_steps: Number of finished steps in all.
        loss_sum: Sum of the losses of the present epoch's pairs.
        pairs: Number of pairs seen in the present epoch.
        best_value: Validation value of the snapshot, by the choosing measure; None when there is none yet.
        best_epoch: Epoch of the snapshot, from 1; 0 when there is none yet.
        history: Measured numbers of each epoch, and the name of the loss that it trained with.
        settings: Configuration that the run was started with, as plain values.
        data_hash: Hash of the collection that it was started with.
        frozen_hash: Hash of the model's frozen weights, which the checkpoint does not hold; empty where there are none.
        start_hash: Fingerprint of the model that it started from; empty for a new one.
        files: Hash of each text file of the model, such as its vocabulary, by file name.
        collapse: Memory of the collapse watch.
        scaling: Scaling of the losses in float16.
    """

    __pydantic_config__ = STRICT

    epoch: Count = 0
    step: Count = 0
    total_steps: Count = 0
    loss_sum: float = 0.0
    pairs: Count = 0
    best_value: float | None = None
    best_epoch: Count = 0
    history: list[dict[str, float | str]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    data_hash: str = ""
    frozen_hash: str = ""
    start_hash: str = ""
    files: dict[str, str] = field(default_factory=dict)
    collapse: CollapseMemory = field(default_factory=CollapseMemory)
    scaling: Scaling = field(default_factory=Scaling)

    __repr__ = short_repr


class Trained:
    """The tensors that a checkpoint keeps: trained parameters, their buffers, optimizer moments and averages.

    Args:
        model: The model; its frozen parts are left out.
        loss: The loss; its parameters, such as a learned temperature, are kept too.
        optimizer: Optimizer of both.
        config: Configuration of the optimizer, which names its moments.
        average: Average of the model's weights; None where the run has none.

    Attributes:
        best: Trained tensors of the best epoch, while no folder holds that model.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: nn.Module,
        optimizer: torch.optim.Optimizer,
        config: OptimizerConfig,
        average: WeightAverage | None = None,
    ) -> None:
        self.modules = {"model": model, "loss": loss}
        self.optimizer = optimizer
        self.config = config
        self.average = average
        self.best: dict[str, Tensor] | None = None

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, such as ``model/image_projection.weight`` or ``optimizer/loss/temperature.raw/step``."""
        found = {
            f"{place}/{name}": t for place, one in self.modules.items() for name, t in trained_tensors(one).items()
        }
        found |= {f"best/{name}": tensor for name, tensor in (self.best or {}).items()}
        if self.average is not None:
            found |= {f"average/{name}": tensor for name, tensor in self.average.tensors.items()}
        for name, parameter in self._stepped():
            for key, value in self.optimizer.state[parameter].items():
                found[f"optimizer/{name}/{key}"] = value
        return found

    def restore(self, tensors: dict[str, Tensor], *, steps: int = 1) -> None:
        """Put all tensors back by their names in :meth:`tensors`, after this number of steps.

        Raises:
            UserError: If a tensor is missing, left over or of another shape; nothing has been changed then.
        """
        self._refuse_others(tensors)
        self._refuse_other_moments(tensors, steps > 0)
        for place, module in self.modules.items():
            own = {name.removeprefix(f"{place}/"): t for name, t in tensors.items() if name.startswith(f"{place}/")}
            module.load_state_dict(own, strict=False)
        best, average = (
            {name.removeprefix(place): one for name, one in tensors.items() if name.startswith(place)}
            for place in ("best/", "average/")
        )
        self.best = best or None
        if self.average is not None:
            self.average.restore(average, steps)
        for name, parameter in self._stepped():
            moments: dict[str, Any] = {}
            prefix = f"optimizer/{name}/"
            for key, tensor in tensors.items():
                if key.startswith(prefix):
                    # Fused Adam walks through memory: its moments must be laid out like the parameter, not like the
                    # file.
                    like = torch.empty_like(parameter) if tensor.shape == parameter.shape else tensor
                    moments[key.removeprefix(prefix)] = like.copy_(tensor).to(parameter.device)
            if moments:
                self.optimizer.state[parameter] = moments

    def _refuse_others(self, tensors: dict[str, Tensor]) -> None:
        places = dict(self.modules)
        if any(name.startswith("best/") for name in tensors):
            places["best"] = self.modules["model"]
        wanted = {
            f"{place}/{name}": t.shape for place, one in places.items() for name, t in trained_tensors(one).items()
        }
        if self.average is not None:
            wanted |= {f"average/{name}": t.shape for name, t in self.average.tensors.items()}
        found = {name: t.shape for name, t in tensors.items() if name.split("/")[0] in (*places, "average")}
        for name in sorted(wanted.keys() | found.keys()):
            here, there = (tuple(one[name]) if name in one else "no such tensor" for one in (found, wanted))
            if here != there:
                raise _other(name, here, there)

    def _refuse_other_moments(self, tensors: dict[str, Tensor], begun: bool) -> None:
        """Refuse missing moments, without which the optimizer would start anew and the run would go on differently.

        A parameter that never had a gradient has no moments, and that is no damage.
        """
        shapes = {name: parameter.shape for name, parameter in self._stepped()}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items() if name.startswith("optimizer/")}
        moved = {name.removeprefix("optimizer/").rpartition("/")[0] for name in found}
        wanted: dict[str, tuple[int, ...]] = {}
        for name in moved & shapes.keys() or sorted(shapes)[: int(begun)]:
            kept = self.config.keeps(tuple(shapes[name]))
            wanted |= {f"optimizer/{name}/{key}": shape for key, shape in kept.items()}
        for name in sorted(wanted.keys() | found.keys()):
            here, there = (one.get(name, "no such tensor") for one in (found, wanted))
            if here != there:
                raise _other(name, here, there)

    def _stepped(self) -> list[tuple[str, nn.Parameter]]:
        held = {id(parameter) for group in self.optimizer.param_groups for parameter in group["params"]}
        named = list(self.modules["model"].named_parameters())
        named += [(f"loss/{name}", one) for name, one in self.modules["loss"].named_parameters()]
        return [(name, one) for name, one in named if id(one) in held]


def trained_tensors(module: nn.Module) -> dict[str, Tensor]:
    """The parameters of a module that are trained, and the buffers beside them."""
    frozen = {name for name, parameter in module.named_parameters() if not parameter.requires_grad}
    idle = {name.rsplit(".", 1)[0] for name in frozen}
    state: dict[str, Tensor] = module.state_dict()
    return {name: tensor for name, tensor in state.items() if name not in frozen and name.rsplit(".", 1)[0] not in idle}


def _other(name: str, here: object, there: object) -> UserError:
    return UserError(
        f"the checkpoint is of another model, vocabulary or stage, or damaged: {name}: {here}, where the run has"
        f" {there}; start anew in another folder"
    )


def save_checkpoint(path: Path, trained: Trained, state: RunState) -> None:
    """Write the run's state; a reader sees the old file or the new one, also after a power cut.

    Raises:
        UserError: If the disk is full; the old checkpoint is kept.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in trained.tensors().items()}
    with replacing(path) as draft:
        write_tensors(draft, tensors, header_of(json.dumps(asdict(state)), tensors))


def header_of(state: str, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Header of a checkpoint: the state as JSON, the names of the tensors, and a checksum of everything."""
    names = json.dumps(sorted(tensors))
    return {"state": state, "tensors": names, "sha256": _digest(state, names, tensors)}


def load_checkpoint(path: Path) -> tuple[RunState, dict[str, Tensor]]:
    """Read a run's state and its tensors, for :meth:`Trained.restore`.

    Raises:
        UserError: If there is no checkpoint, or it is damaged or altered.
    """
    with _opened(path) as file:
        said = file.metadata()
        tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = _state(path, said)
        _refuse_altered(path, said, tensors)
    return state, tensors


def read_state(path: Path) -> RunState:
    """Read a run's state alone; the tensors are neither read nor checked.

    Raises:
        UserError: If there is no checkpoint, or it cannot be read.
    """
    with _opened(path) as file:
        return _state(path, file.metadata())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a checkpoint; damage becomes a UserError of one line."""
    try:
        require_regular(path)
    except MissingFileError:
        raise missing(path) from None
    except UserError as error:
        raise UserError(f"{path}: not a readable checkpoint ({str(error).removeprefix(f'{path}: ')})") from None
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {in_words(first)}"
        raise UserError(f"{path}: not a readable checkpoint ({reason}); start anew in another folder") from None
    except (SafetensorError, OSError, RecursionError, TypeError, KeyError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path}: not a readable checkpoint ({reason}); start anew in another folder") from error


def _state(path: Path, said: Mapping[str, str]) -> RunState:
    state = TypeAdapter(RunState).validate_python(json.loads(said["state"]))
    if state.best_epoch and "rsum" not in dict(enumerate(state.history, start=1)).get(state.best_epoch, {}):
        raise ValueError(f"best_epoch: the history has no numbers of epoch {state.best_epoch}")
    return state


def missing(path: Path) -> UserError:
    """The error for a missing checkpoint."""
    return UserError(f"{path}: no checkpoint to resume from; start the run without resume")


def _refuse_altered(path: Path, said: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    for name in sorted(set(json.loads(said["tensors"])) ^ tensors.keys()):
        what = "was added to it" if name in tensors else "is missing from it"
        raise UserError(f"{path}: the checkpoint was altered: {name} {what}; restore a copy, or start anew elsewhere")
    if _digest(said["state"], said["tensors"], tensors) != said["sha256"]:
        raise UserError(
            f"{path}: the checkpoint is not as it was written (the checksums differ); restore a copy, or start anew in"
            " another folder"
        )


def _digest(state: str, names: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a checkpoint's content."""
    digest = hashlib.sha256(json.dumps([state, names]).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        if tensor.numel():
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def differing(then: Any, now: Any, name: str = "") -> list[str]:
    """Differing settings, as lines such as ``loss.margin: 0.2 then, 0.3 now``."""
    if isinstance(then, dict) and isinstance(now, dict):
        names = [*then, *(one for one in now if one not in then)]
        inner = ((one, f"{name}.{one}" if name else one) for one in names)
        return [line for one, full in inner for line in differing(then.get(one), now.get(one), full)]
    return [] if then == now else [f"{name}: {then!r} then, {now!r} now"]
