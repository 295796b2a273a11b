"""What a whole search takes beside encoding its words, part by part: vectors, words, folding, the end, records, JSON.

    python benchmarks/whole_query.py                                    # 8,000 and 100,000 pictures
    python benchmarks/whole_query.py 1000000 --out rows.jsonl
    python benchmarks/whole_query.py --beside CHECKOUT                  # and an earlier rungwise on its own index

An index of drawn vectors is made, two fifths of its pictures with a caption (``rungwise.planning``), and searched by
one client with texts of three to twelve drawn words, whose vectors are known; no text is searched twice in the same
way. Milliseconds are by the clock, for 24 hits; a part is what a search takes more than without it, in the median.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from measuring import Rows, needs, with_out

HITS = 24
WARM_UP, QUERIES = 20, 140
CAPTIONS, DIMENSION = 0.4, 512
PARTS = ("vectors", "words", "folding", "end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", type=int, nargs="*", default=[8_000, 100_000])
    parser.add_argument("--beside", type=Path, help="a checkout of rungwise")
    parser.add_argument("--folder", type=Path, help="where to work; default the system's temporary folder")
    with_out(parser)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        print(json.dumps(measured(asked.pictures[0], asked.folder)))
        return
    needs(rungwise="rungwise", lancedb="rungwise[search]", faiss="rungwise[search]")
    rows = Rows(asked.out)
    codes = {} if asked.beside is None else {"before": str((asked.beside / "src").resolve())}
    for pictures in asked.pictures:
        for name, path in {**codes, "now": ""}.items():
            with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
                command = [sys.executable, __file__, str(pictures), "--alone", "--folder", folder]
                environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
                run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            rows.add(code=name, pictures=pictures, **json.loads(run.stdout.splitlines()[-1]))


def json_of(answer: Any, items: Mapping[str, Any]) -> str:
    """The answer as JSON, with what the server sends of each hit."""
    hits = zip(answer.hits, answer.end.rungs, answer.end.degrees, strict=True)
    content = [
        {"id": hit.id, "score": hit.score, "rung": rung, "degree": degree, "captions": items[hit.id].captions,
         "columns": dict(items[hit.id].columns), "folded": answer.folded.get(hit.id, ())}
        for hit, rung, degree in hits
    ]  # fmt: skip
    return json.dumps({"hits": content, "notes": answer.notes, "reading": answer.reading, "more": answer.more})


def measured(pictures: int, folder: Path) -> dict[str, float]:
    """Median milliseconds of each part, of all of them together, and seconds of building."""
    from rungwise.index import Index, Searcher, SearchOptions
    from rungwise.planning._drawn_index import DrawnModel, drawn_index, drawn_texts

    start = time.perf_counter()
    drawn_index(folder / "index", pictures, CAPTIONS, DIMENSION)
    found: dict[str, Any] = {"build_s": round(time.perf_counter() - start, 1)}
    start = time.perf_counter()
    index = Index.open(folder / "index")
    searcher = Searcher(index, DrawnModel(DIMENSION))
    texts = [" ".join(text.split()[: 3 + at % 10]) for at, text in enumerate(drawn_texts(WARM_UP + QUERIES, seed=2))]
    known = searcher.encode_texts(texts)
    searcher.search(texts[0], HITS, vectors=known)
    found["first_search_ms"] = 1000 * (time.perf_counter() - start)
    ways = {
        "vectors": SearchOptions(words="off", fold_duplicates=False, end=False),
        "words": SearchOptions(fold_duplicates=False, end=False),
        "folding": SearchOptions(end=False),
        "end": SearchOptions(),
    }
    before, records, as_json = 0.0, [], []
    for name, options in ways.items():
        for text in texts[:WARM_UP]:
            searcher.search(text, HITS, options=options, vectors=known)
        times = []
        for text in texts[WARM_UP:]:
            start = time.perf_counter()
            answer = searcher.search(text, HITS, options=options, vectors=known)
            times.append(1000 * (time.perf_counter() - start))
            if name == "end":
                start = time.perf_counter()
                items = index.found([hit.id for hit in answer.hits])
                middle = time.perf_counter()
                json_of(answer, items)
                records.append(1000 * (middle - start))
                as_json.append(1000 * (time.perf_counter() - middle))
        median = float(np.median(times))
        found[f"{name}_ms"], before = median - before, median
    found |= {"records_ms": float(np.median(records)), "json_ms": float(np.median(as_json))}
    whole = np.add(np.add(times, records), as_json)
    return {**found, "p50_ms": float(np.median(whole)), "p99_ms": float(np.quantile(whole, 0.99))}


if __name__ == "__main__":
    main()
