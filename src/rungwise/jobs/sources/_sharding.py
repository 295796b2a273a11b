"""``rungwise relevance SOURCE DATA --top K --shards N --ray``: the best candidates of every query, in shards."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rungwise.core.compute import OnWorkers, Share, cluster, in_turn
from rungwise.core.disk.locks import alone
from rungwise.data import ImageCaptions
from rungwise.jobs._terminal import say
from rungwise.relevance import Degrees, Direction
from rungwise.relevance.config import Building, SourceConfig
from rungwise.relevance.precomputed import KEPT, ShardRecord, prepare, remove, write_in_shards
from rungwise.relevance.storage.saved import replacing as replacing_degrees

_SHARDS_A_WORKER = 4
_MB = 1e6


@dataclass(frozen=True)
class InShards:
    """Writer of degrees in shards.

    Attributes:
        out: Folder of the degrees. The shards are kept beside it until all are done.
        top: Number of candidates of each query.
        direction: Direction of the queries.
        shards: Number of shards; None takes a few for each worker.
        ray: ``"local"`` or the address of a cluster; None makes one shard after the other in this process.
    """

    out: Path
    top: int
    direction: Direction
    shards: int | None
    ray: str | None

    @property
    def work(self) -> Path:
        """Folder in which shards are kept until all are done."""
        return self.out.with_name(f"{self.out.name}.shards")

    def write(self, config: SourceConfig, data: ImageCaptions, building: Building) -> Degrees:
        """Build the source and write its degrees; finished shards of an interrupted run are reused.

        Raises:
            UserError: If a worker fails, no cluster answers, or another run makes the same shards now.
        """
        prepare(self.work)
        with ExitStack() as held:
            share: Share = in_turn
            shards = self.shards or _SHARDS_A_WORKER
            if self.ray is not None:
                workers = OnWorkers(held.enter_context(cluster(self.ray)))
                share, shards = workers, self.shards or _SHARDS_A_WORKER * workers.workers
                say(f"Ray: {workers.workers} workers")
            held.enter_context(alone(self.work, "a run in shards"))
            with replacing_degrees(self.out) as draft:
                # What the source computes is kept as well, so that a run that goes on need not do it again.
                source = config.build(data, building=replace(building, share=share, cache=self.work / KEPT))
                made = write_in_shards(
                    source,
                    draft,
                    self.work,
                    k=self.top,
                    direction=self.direction,
                    shards=shards,
                    share=share,
                    say=say,
                )
            remove(self.work)
        for shard in made:
            say(line(shard, len(made)))
        return source


def line(shard: ShardRecord, shards: int) -> str:
    """Line on how a shard was made."""
    memory = "" if shard.peak is None else f", {shard.peak / _MB:,.0f} MB"
    before = ", by a run before this one" if shard.found else ""
    return f"shard {shard.number} of {shards}: {shard.queries:,} queries, {shard.seconds:.1f} s{memory}{before}"
