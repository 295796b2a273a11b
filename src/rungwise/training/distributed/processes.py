"""The processes of a run: one, or those that ``torchrun`` started."""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from rungwise.core.compute.devices import choose_device
from rungwise.core.errors import UserError
from rungwise.training.distributed.global_negatives import process_group
from rungwise.training.distributed.heartbeats import LOST_AFTER, heartbeats
from rungwise.training.run_folder import is_begun

LONGEST_WAIT = timedelta(hours=12)
"""For a process that reads or validates while the others wait."""


class Processes:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: Of this process, from 0.
        world: How many there are.

    >>> alone = Processes()
    >>> alone.first, alone.own(np.array([4, 2, 7])).tolist(), alone.any(False)
    (True, [4, 2, 7], False)
    """

    def __init__(self, rank: int = 0, world: int = 1, device: torch.device | None = None) -> None:
        self.rank = rank
        self.world = world
        self._device = device

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def own(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of a batch."""
        return np.array_split(chosen, self.world)[self.rank]

    def shares(self, items: int) -> list[int]:
        """How many of a batch's items each process takes.

        >>> Processes(0, 3).shares(5)
        [2, 2, 1]
        """
        return [len(part) for part in np.array_split(np.arange(items), self.world)]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process; all must ask together."""
        if self.world == 1:
            return flag
        together = torch.tensor(int(flag), device=self._device)
        dist.all_reduce(together, op=dist.ReduceOp.MAX)
        return bool(together)

    def wait(self) -> None:
        """Until all processes are here."""
        if self.world > 1:
            dist.barrier()

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """The first process goes through alone, then the others, who find what it left."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()


def asked_for() -> int:
    """How many processes ``torchrun`` started; 1 without it.

    >>> asked_for()
    1
    """
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def joined(
    device: str | None,
    *,
    lost_after: float = LOST_AFTER,
    go_on: Callable[[], str] = lambda: "start all processes again",
) -> Iterator[tuple[Processes, torch.device]]:
    """Join the processes of the run; yields them, and the device of this one. Within it, they are those that joined.

    Args:
        device: What was asked for; None takes ``cuda`` where there is one. With several processes each takes the GPU of
            its number on its machine.
        lost_after: Seconds without a sign of life after which another process counts as lost.
        go_on: What a person does when one is lost, for the message.

    Raises:
        UserError: If there is no such device.
        SystemExit: If another process is lost.
    """
    if not 0 < lost_after <= LONGEST_WAIT.total_seconds():
        raise UserError(f"lost_after must be above 0 and at most {LONGEST_WAIT.total_seconds():g} seconds")
    if asked_for() == 1:
        yield Processes(), torch.device(choose_device(device))
        return
    place = torch.device(choose_device(device))
    if place.type == "cuda" and place.index is None:
        place = torch.device(choose_device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}"))
        torch.cuda.set_device(place)
    if dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size(), place), place
        return
    with process_group("nccl" if place.type == "cuda" else "gloo", timeout=LONGEST_WAIT):
        processes = Processes(dist.get_rank(), dist.get_world_size(), place)

        def leave() -> None:
            gc.collect()
            processes.wait()

        with heartbeats(processes.rank, processes.world, leave, lost_after=lost_after, go_on=go_on):
            yield processes, place


def resuming(config: Path, out: Path, *more: str) -> str:
    """How a person goes on with a run of several processes that has lost one.

    Args:
        config: The configuration that the run keeps.
        out: Folder of the run.
        more: Further words of the command.

    >>> resuming(Path("nowhere/config.yaml"), Path("nowhere"))
    'no checkpoint was written yet; start all processes anew'
    """
    if not is_begun(config.parent):
        return "no checkpoint was written yet; start all processes anew"
    said = os.environ
    words = ["torchrun"]
    if said.get("GROUP_WORLD_SIZE", "1") != "1":
        words += ["--nnodes", said["GROUP_WORLD_SIZE"], "--node_rank", "RANK"]
        words += ["--master_addr", said.get("MASTER_ADDR", "HOST"), "--master_port", said.get("MASTER_PORT", "PORT")]
    words += ["--nproc_per_node", said.get("LOCAL_WORLD_SIZE", "1"), "-m", "rungwise", "train"]
    command = shlex.join([*words, str(config), "--out", str(out), *more, "--resume"])
    return f"go on from the last checkpoint with: {command}"


def is_first() -> bool:
    """Whether this process is the only one or the first, before they have joined.

    >>> is_first()
    True
    """
    return int(os.environ.get("RANK", "0")) == 0
