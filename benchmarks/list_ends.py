"""Other programs' lists of photos, cut by each program's own threshold and by ours: F1 of what is shown.

    RUNGWISE_DATA=... python benchmarks/list_ends.py MODEL

Vectors of the validation and test photos of Flickr8K lie in faiss, LanceDB, Qdrant (in memory) and PostgreSQL with
pgvector. Each is asked for the first 100 of 300 phrases, 300 captions and texts that fit nothing; what is true is as
in ``cutting.py``. The program's own threshold is faiss's range search, LanceDB's distance range, Qdrant's score
threshold, or a condition on pgvector's distance. Two are chosen on the validation queries, with half of the texts that
fit nothing among them: the best by the mean F1 of all queries, and the best by the mean of the three kinds' F1. Ours:
without judgements, from lists of scores or with vectors; and learnt from the same validation queries. F1 is in percent,
100 where rightly nothing is shown. Each mean stands beside its paired difference to the threshold that is the best by
it, with half of the 95 % interval (bootstrap over queries).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1]))
import cutting_data as worlds
from measuring import needs
from rungwise.calibration import UNRELATED, Calibration, ListEnds
from rungwise.data import read
from rungwise.integrations import engines
from rungwise.models import load_dual_encoder
from rungwise.quality.typed_queries import TextedPictures
from rungwise.similarity import unit_rows

DEPTH, COUNT, DRAWS = 100, 300, 2000
Cuts = Callable[[NDArray[np.float32], Sequence[float]], int]


class Held(ABC):
    """One program that holds the vectors of a split, searched without and with its own threshold."""

    name: str
    engine: Any

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.fill(vectors, [str(number) for number in range(len(vectors))])

    @abstractmethod
    def fill(self, vectors: NDArray[np.float32], ids: list[str]) -> None:
        """Take in the vectors."""

    @abstractmethod
    def shown(self, query: NDArray[np.float32], least: float) -> int:
        """Number of hits that the program shows with its own threshold, at this cosine."""


class Faiss(Held):
    """faiss."""

    name = "faiss"

    def fill(self, vectors: NDArray[np.float32], ids: list[str]) -> None:
        """An exact index of inner products."""
        import faiss

        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)
        self.engine = engines.FaissEngine(self.index, ids)

    def shown(self, query: NDArray[np.float32], least: float) -> int:
        """By a range search."""
        limits, _, _ = self.index.range_search(query[None], least)
        return int(limits[1])


class Lance(Held):
    """LanceDB."""

    name = "LanceDB"

    def fill(self, vectors: NDArray[np.float32], ids: list[str]) -> None:
        """A table without an index, so that the search is exact."""
        import lancedb
        import pyarrow as pa

        place = tempfile.mkdtemp()
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        self.table = lancedb.connect(place).create_table("photos", pa.table({"id": ids, "vector": column}))
        self.engine = engines.LanceDBEngine(place, "photos")

    def shown(self, query: NDArray[np.float32], least: float) -> int:
        """By a range of distances."""
        search = self.table.search(query).distance_type("cosine").distance_range(upper_bound=1 - least)
        return len(search.select(["id", "_distance"]).limit(self.engine.count()).to_arrow())


class Qdrant(Held):
    """Qdrant's local mode."""

    name = "Qdrant"

    def fill(self, vectors: NDArray[np.float32], ids: list[str]) -> None:
        """A collection in memory."""
        from qdrant_client import QdrantClient, models

        self.client = QdrantClient(":memory:")
        params = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
        self.client.create_collection("photos", vectors_config=params)
        points = [models.PointStruct(id=int(one), vector=row.tolist()) for one, row in zip(ids, vectors, strict=True)]
        self.client.upsert("photos", points)
        self.engine = engines.QdrantEngine(self.client, "photos")

    def shown(self, query: NDArray[np.float32], least: float) -> int:
        """By a threshold of scores."""
        found = self.client.query_points("photos", query.tolist(), limit=self.engine.count(), score_threshold=least)
        return len(found.points)


class Pgvector(Held):
    """PostgreSQL with pgvector."""

    name = "pgvector"

    def fill(self, vectors: NDArray[np.float32], ids: list[str]) -> None:
        """A table without an index, so that the search is exact."""
        import pgserver
        import psycopg

        self.server = pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="stop")
        self.connection = psycopg.connect(self.server.get_uri(), autocommit=True)
        self.connection.execute("CREATE EXTENSION vector")
        self.connection.execute(f"CREATE TABLE photos (id text, embedding vector({vectors.shape[1]}))")
        with self.connection.cursor() as cursor:
            rows = [(one, str(row.tolist())) for one, row in zip(ids, vectors, strict=True)]
            cursor.executemany("INSERT INTO photos VALUES (%s, %s::vector)", rows)
        self.engine = engines.PgvectorEngine(self.server.get_uri(), "photos")

    def shown(self, query: NDArray[np.float32], least: float) -> int:
        """By a condition on the distance."""
        found = self.connection.execute(
            "SELECT count(*) FROM photos WHERE embedding <=> %s::vector <= %s", (str(query.tolist()), 1 - least)
        )
        return int(found.fetchone()[0])  # type: ignore[index]


class Split:
    """Queries of one split: kinds, vectors, what is relevant, and the vectors of the photos."""

    def __init__(self, whole: TextedPictures, seed: int, half: int) -> None:
        _, asked = worlds.photo_queries(whole, COUNT, seed)
        asked["unrelated"] = asked["unrelated"][half::2]
        every = [(kind, one) for kind, some in asked.items() for one in some]
        self.kinds = np.array([kind for kind, _ in every])
        self.relevant = np.stack([one.relevant for _, one in every])
        self.texts = [one.text for _, one in every]
        self.queries = unit_rows(np.asarray(whole.model.encode_text(self.texts)))
        self.photos = unit_rows(whole.images)

    def f1(self, order: NDArray[np.int64], cuts: Sequence[int]) -> NDArray[np.float64]:
        """(queries,) F1 in percent of the first hits."""
        values = []
        for row, relevant, cut in zip(order, self.relevant, cuts, strict=True):
            total = cut + int(relevant.sum())
            values.append(200 * relevant[row[:cut]].sum() / total if total else 100.0)
        return np.array(values)

    def by_kind(self, values: NDArray[np.float64]) -> dict[str, float]:
        """Mean of (queries,) values of each kind."""
        return {str(kind): float(values[self.kinds == kind].mean()) for kind in np.unique(self.kinds)}


def thresholds(split: Split, order: NDArray[np.int64], scores: NDArray[np.float64]) -> dict[str, float]:
    """The thresholds of the highest mean F1 of all queries, and of the highest mean of the kinds."""
    tried = np.quantile(scores, np.linspace(0, 1, 1500))
    values = [split.f1(order, (scores >= least).sum(axis=1)) for least in tried]
    best = {
        "queries": max(range(len(tried)), key=lambda at: float(values[at].mean())),
        "kinds": max(range(len(tried)), key=lambda at: float(np.mean(list(split.by_kind(values[at]).values())))),
    }
    return {name: float(tried[at]) for name, at in best.items()}


def half(values: NDArray[np.float64]) -> float:
    """Half of the 95 % interval of a mean."""
    drawn = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return float(high - low) / 2


def ours(val: Split, test: Split, foreign: NDArray[np.float32], held: Held, held_val: Held) -> dict[str, Cuts]:
    """How many hits of a list each of our ways shows."""

    def asker(of: Held) -> Callable[[str], NDArray[np.float64]]:
        by_text = dict(zip(UNRELATED, foreign, strict=True))
        return lambda text: of.engine.search(by_text[text], DEPTH)[1]

    lists = ListEnds.of_lists(asker(held), depth=DEPTH)
    vectors = ListEnds.of_vectors(test.photos, len(test.photos), unrelated=foreign)
    found = [held_val.engine.search(query, DEPTH) for query in val.queries]
    scores = np.stack([one for _, one in found])
    degrees = np.stack([row[np.array(ids, int)] for (ids, _), row in zip(found, val.relevant, strict=True)])
    nothing = np.stack([asker(held_val)(text) for text in UNRELATED])
    of_lists = ListEnds.of_lists(
        asker(held), depth=DEPTH, calibration=Calibration.fit(scores, degrees, 1, unrelated=nothing)
    )
    whole = Calibration.fit(val.queries @ val.photos.T, val.relevant, 1, unrelated=foreign @ val.photos.T)
    of_vectors = ListEnds.of_vectors(test.photos, len(test.photos), calibration=whole)
    alone = ListEnds(Calibration.unsupervised())
    return {
        "the list alone": lambda query, list_: alone.judge(list_).cut,
        "lists of unrelated texts": lambda query, list_: lists.judge(list_).cut,
        "a sample of vectors": lambda query, list_: vectors.judge(list_, query).cut,
        "learnt, lists": lambda query, list_: of_lists.judge(list_).cut,
        "learnt, vectors": lambda query, list_: of_vectors.judge(list_, query).cut,
    }


def measure(kind: type[Held], val: Split, test: Split, foreign: NDArray[np.float32]) -> None:
    """Print one program's rows."""
    held, held_val = kind(test.photos), kind(val.photos)
    found = {}
    for name, split, of in (("val", val, held_val), ("test", test, held)):
        every = [of.engine.search(query, len(split.photos)) for query in split.queries]
        order = np.array([[int(one) for one in ids] for ids, _ in every])
        found[name] = order, np.stack([scores for _, scores in every])
    order, scores = found["test"]
    rows = {
        f"its threshold, {least:.3f}, by {name}": test.f1(order, [held.shown(query, least) for query in test.queries])
        for name, least in thresholds(val, *found["val"]).items()
    }
    by_queries, by_kinds = rows.values()
    for name, cut in ours(val, test, foreign, held, held_val).items():
        cuts = [cut(query, row[:DEPTH].tolist()) for query, row in zip(test.queries, scores, strict=True)]
        rows[name] = test.f1(order, cuts)
    hits = np.stack([test.relevant[at][row] for at, row in enumerate(order)])
    totals = hits.sum(axis=1)[:, None]
    best = (200 * hits.cumsum(axis=1) / (np.arange(1, hits.shape[1] + 1) + totals)).max(axis=1)
    rows["the best cut of each query"] = np.where(totals[:, 0] == 0, 100, best)
    kinds = test.by_kind(by_kinds)
    print(f"\n{held.name:34}" + "".join(f"{one:>11}" for one in kinds) + f"{'queries':>22}{'kinds':>22}")
    for name, values in rows.items():
        by_kind, of_kinds = list(test.by_kind(values).values()), values - by_kinds
        margin = sum(half(of_kinds[test.kinds == one]) ** 2 for one in kinds) ** 0.5 / len(kinds)
        less = float(np.mean(list(test.by_kind(of_kinds).values())))
        means = _beside(values.mean(), (values - by_queries).mean(), half(values - by_queries))
        print(
            f"  {name:32}"
            + "".join(f"{one:11.1f}" for one in by_kind)
            + means
            + _beside(np.mean(by_kind), less, margin),
            flush=True,
        )


def _beside(mean: float, less: float, margin: float) -> str:
    return f"{mean:8.1f} {f'({less:+.1f} ±{margin:.1f})':>13}"


def main() -> None:
    """Measure each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model whose similarity is the cosine")
    parser.add_argument("--keep", type=Path, help="folder of a file of vectors, so that they are encoded once")
    asked = parser.parse_args()
    needs(
        faiss="rungwise[search]", lancedb="rungwise[search]", qdrant_client="qdrant-client", pgserver="pgserver",
        psycopg="psycopg[binary]",
    )  # fmt: skip
    model = load_dual_encoder(Path(asked.model))
    data = read(Path(os.environ["RUNGWISE_DATA"]) / "flickr8k")
    val, test = (
        Split(worlds.texted(model, data.split(name), asked.keep and asked.keep / f"flickr8k-{name}.npz"), seed, at)
        for at, (name, seed) in enumerate((("val", 2), ("test", 1)))
    )
    foreign = unit_rows(np.asarray(model.encode_text(UNRELATED)))
    print(f"{len(test.photos):,} photos, {len(test.texts)} queries; 'kinds' is the mean of the three kinds")
    for kind in (Faiss, Lance, Qdrant, Pgvector):
        measure(kind, val, test, foreign)


if __name__ == "__main__":
    main()
