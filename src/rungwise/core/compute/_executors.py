"""Executors of work that falls into parts: one after the other in this process, or shared among workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from rungwise.core._errors import UserError
from rungwise.core.compute._threads import on_this_thread

Common = TypeVar("Common")
Part = TypeVar("Part")
Result = TypeVar("Result")

_TRIES = 3
"""Number of times that a part is restarted after its worker has died."""
_AHEAD = 2
"""Parts that are handed out at a time, for each part that can run; as many results are held in memory."""


class Share(Protocol):
    """An executor of the parts of a piece of work, such as :func:`in_turn` and :class:`OnWorkers`."""

    def __call__(
        self, work: Callable[[Common, Part], Result], common: Common, parts: Iterable[Part]
    ) -> Iterator[tuple[int, Result]]:
        """Results of ``work`` for each part, with the part's number, in the order in which they are done.

        Args:
            work: A function of a module, which other processes can import.
            common: Data that all parts need, handed out once.
            parts: The parts, numbered from 0.
        """
        ...


def in_turn(
    work: Callable[[Common, Part], Result], common: Common, parts: Iterable[Part]
) -> Iterator[tuple[int, Result]]:
    """A :class:`Share` that runs in this process alone.

    >>> list(in_turn(lambda common, part: common * part, 10, [1, 2]))
    [(0, 10), (1, 20)]
    """
    for number, part in enumerate(parts):
        yield number, work(common, part)


class OnWorkers:
    """A :class:`Share` that runs on Ray's workers. A part whose worker dies is restarted.

    Args:
        ray: The connected module, from :func:`rungwise.core.compute.cluster`.
        cores: Number of cores for each part, where a machine has so many.

    Attributes:
        workers: Number of parts that run at a time.

    Raises:
        UserError: From the call, if a part fails, cannot be sent to other processes, or workers die again and again.
    """

    def __init__(self, ray: Any, *, cores: int = 1) -> None:
        self._ray = ray
        machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        self._cores = max(1, min([cores, *(one for one in machines if one)]))
        self.workers = max(1, sum(machines) // self._cores)

    def __call__(
        self, work: Callable[[Common, Part], Result], common: Common, parts: Iterable[Part]
    ) -> Iterator[tuple[int, Result]]:
        """Hand the parts to workers and yield their results as they are done."""
        ray = self._ray
        task = ray.remote(num_cpus=self._cores, max_retries=_TRIES)(_on_a_core if self._cores == 1 else _on_cores)
        try:
            shared = ray.put(common)
        except (TypeError, ValueError) as error:
            said = " ".join(str(error).split())[:200]
            raise UserError(f"this work cannot be sent to other processes ({said}); leave Ray out") from error
        waiting: dict[Any, int] = {}
        left = iter(enumerate(parts))
        try:
            while True:
                while len(waiting) < _AHEAD * self.workers and (following := next(left, None)) is not None:
                    number, part = following
                    waiting[task.remote(work, shared, part)] = number
                if not waiting:
                    return
                (done,), _ = ray.wait(list(waiting))
                yield waiting.pop(done), self._result(done)
        finally:
            for one in waiting:
                ray.cancel(one, force=True)

    def _result(self, done: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(done)
        except errors.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise UserError(str(error.cause)) from error
            said = " ".join(f"{type(error.cause).__name__}: {error.cause}".split())[:300]
            raise UserError(f"Ray: a worker failed: {said}") from error
        except errors.RayError as error:
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise UserError(
                f"Ray: workers died {_TRIES + 1} times over one part ({said}); give more parts, or workers more memory"
            ) from error


def _on_a_core(work: Callable[[Common, Part], Result], common: Common, part: Part) -> Result:
    with on_this_thread():
        return work(common, part)


def _on_cores(work: Callable[[Common, Part], Result], common: Common, part: Part) -> Result:
    return work(common, part)
