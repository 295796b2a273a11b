"""Full text in Milvus: how many texts must be ranked for a query, what is lost by fewer, and what it takes.

    python benchmarks/words_in_milvus.py FLICKR30K/captions.en.token.gz
    python benchmarks/words_in_milvus.py FLICKR30K/captions.en.token.gz --looked-at 40000 --queries 20    # all texts

A row has the captions of one picture, but for one caption of some pictures, which is a query. All texts ranked by BM25
in memory are the standard: what share of their 50 best scores the store's 50 rows have, how many of the 50 rows are the
same, and whether the picture whose caption was left out is among the first ten. A server is started on this machine.
The numbers of rows that hold each word are counted before, as they are for the next query with the same word.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))  # the server comes from the tests
_BEST = 50
_ROWS = 4000
_DIMENSION = 8
"""Vectors are not asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, help="lines of PICTURE#NUMBER, a tab, and a caption, packed by gzip")
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--looked-at", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    asked = parser.parse_args()
    captions: dict[str, list[str]] = defaultdict(list)
    with gzip.open(asked.captions, "rt", encoding="utf-8") as lines:
        for line in lines:
            name, _, text = line.rstrip("\n").partition("\t")
            captions[name.partition("#")[0]].append(text)
    names = list(captions)
    chosen = np.random.default_rng(0).choice(names, min(asked.queries, len(names)), replace=False).tolist()
    queries = {name: captions[name].pop(0) for name in chosen}
    texts = {name: "\n".join(some) for name, some in captions.items()}
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), texts, queries, asked.looked_at)


def measure(folder: Path, texts: dict[str, str], queries: dict[str, str], looked_at: list[int]) -> None:
    """Fill a store, and print what each number of texts gives."""
    from tests.milvus_server import local_milvus

    from rungwise.index import WORDS
    from rungwise.index.stores import WordIndex
    from rungwise.index.stores.milvus import MilvusStore, full_text
    from rungwise.similarity import Cosine

    everything, names = WordIndex(texts.items()), list(texts)
    table = Table(title=f"{len(names):,} rows, {len(queries)} queries, {_BEST} rows each")
    titles = "texts", "of the best scores", "least", "of the best rows", "own in ten", "all ranked", "ms", "most"
    for column in titles:
        table.add_column(column, justify="right")
    with (
        local_milvus(folder) as server,
        MilvusStore.create(f"{server.address}/made", "pictures", _DIMENSION, Cosine()) as store,
    ):
        for start in range(0, len(names), _ROWS):
            some = names[start : start + _ROWS]
            vectors = np.eye(_DIMENSION, dtype=np.float32)[np.arange(len(some)) % _DIMENSION]
            store.upsert(some, vectors, [{WORDS: texts[name]} for name in some])
        for number in looked_at:
            full_text.LOOKED_AT = number
            kept, same, own, own_of_all, times = [], [], [], [], []
            for name, query in queries.items():
                scores = dict(zip(*everything.best(query, len(names)), strict=True))
                best = list(scores)[:_BEST]
                store.find_words(query, _BEST)
                start_of = time.perf_counter()
                found = store.find_words(query, _BEST).ids[0]
                times.append(1000 * (time.perf_counter() - start_of))
                kept.append(sum(scores[one] for one in found) / sum(scores[one] for one in best))
                same.append(len(set(found) & set(best)) / len(best))
                own.append(name in found[:10])
                own_of_all.append(name in best[:10])
            shares = (np.mean(kept), min(kept), np.mean(same), np.mean(own), np.mean(own_of_all))
            took = statistics.median(times), max(times)
            table.add_row(f"{number:,}", *(f"{100 * one:.1f} %" for one in shares), *(f"{one:.0f}" for one in took))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
