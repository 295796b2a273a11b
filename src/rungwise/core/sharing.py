"""Work that falls into parts: done one after the other in this process, or shared out among workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from rungwise.core.errors import UserError
from rungwise.core.threads import on_this_thread

Common = TypeVar("Common")
Part = TypeVar("Part")
Result = TypeVar("Result")

_TRIES = 3
"""How often a part is begun again whose worker has died."""
_AHEAD = 2
"""Parts that are handed out at a time for each that can be worked on: so many and their results are held."""


class Share(Protocol):
    """Does the parts of a piece of work; see :func:`in_turn` and :class:`OnWorkers`."""

    def __call__(
        self, work: Callable[[Common, Part], Result], common: Common, parts: Iterable[Part]
    ) -> Iterator[tuple[int, Result]]:
        """What work makes of each part, with the part's number, in the order in which they are done.

        Args:
            work: A function of a module, which other processes can import.
            common: What all parts need, handed out once.
            parts: Numbered from 0.
        """
        ...


def in_turn(
    work: Callable[[Common, Part], Result], common: Common, parts: Iterable[Part]
) -> Iterator[tuple[int, Result]]:
    """A :class:`Share` of this process alone.

    >>> list(in_turn(lambda common, part: common * part, 10, [1, 2]))
    [(0, 10), (1, 20)]
    """
    for number, part in enumerate(parts):
        yield number, work(common, part)


class OnWorkers:
    """A :class:`Share` of Ray's workers. A part whose worker dies is begun again.

    Args:
        ray: The module, connected, as :func:`rungwise.core.cluster.cluster` gives it.

    Attributes:
        workers: How many parts are worked on at a time.

    Raises:
        UserError: From the call, if a part fails, or workers die again and again.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def __call__(
        self, work: Callable[[Common, Part], Result], common: Common, parts: Iterable[Part]
    ) -> Iterator[tuple[int, Result]]:
        """See :class:`Share`; each part has a core of its own."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=_TRIES)(_on_a_core)
        shared = ray.put(common)
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
