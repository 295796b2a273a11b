"""``rungwise evaluate``."""

from __future__ import annotations

from rungwise.cli.evaluate._options import Evaluate
from rungwise.cli.frame import parse, with_ray

_EXAMPLES = (
    "rungwise evaluate run/model photos",
    "rungwise evaluate run/model photos --measures R@1 rsum --out result.json",
    "rungwise evaluate photos --image-embeddings i.npy --text-embeddings t.npy",
    "rungwise evaluate MODEL photos --shards 16 --ray",
    "rungwise evaluate run/model photos --rerank scan/model --top 50",
)


def main(arguments: list[str]) -> int:
    """Evaluate, print and write the result."""
    asked = parse(Evaluate, with_ray(arguments), "rungwise evaluate", examples=_EXAMPLES)
    from rungwise.cli.evaluate._run import run

    return run(asked)
