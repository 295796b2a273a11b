"""rungwise: image-text retrieval by degrees of relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rungwise.core.telemetry import switch_off
from rungwise.core.version import __version__

if TYPE_CHECKING:
    from rungwise.evaluation.evaluate import evaluate
    from rungwise.evaluation.result import Result

__all__ = ["Result", "__version__", "evaluate"]

switch_off()


def __getattr__(name: str) -> Any:
    # Evaluation loads torch; a look at the version should not wait for it.
    if name in ("Result", "evaluate"):
        from rungwise import evaluation

        return getattr(evaluation, name)
    raise AttributeError(f"module 'rungwise' has no attribute {name!r}")
