"""rungwise: image-text retrieval by degrees of relevance."""

from __future__ import annotations

from rungwise.core.network import switch_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rungwise.core.version import __version__
    from rungwise.evaluation import Result, evaluate

__all__ = ["Result", "__version__", "evaluate"]

switch_off()


def __getattr__(name: str) -> Any:
    # Evaluation loads torch; a look at the version should not wait for it. The command line is loaded through here, and
    # can answer an interrupt only once that is done.
    if name == "__version__":
        from rungwise.core import version

        return version.__version__
    if name in ("Result", "evaluate"):
        from rungwise import evaluation

        return getattr(evaluation, name)
    raise AttributeError(f"module 'rungwise' has no attribute {name!r}")
