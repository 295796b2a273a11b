"""Measurement of this machine's rates at the size of a plan: encoding, whole searches, writing and comparing rows."""

from __future__ import annotations

import io
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core.disk import explained, make_folder
from rungwise.planning._growth import growth
from rungwise.planning._model_size import model_size
from rungwise.planning._need import USUAL_DIMENSIONS, Need
from rungwise.planning._rates import HERE, QUERIES, Rate, Rates, encoder, number, sized_name, sized_rate, sizes_of
from rungwise.planning._search_parts import PARTS, search_parts

if TYPE_CHECKING:
    from rungwise.index import Index
    from rungwise.index.stores import Store, StoreBatch
    from rungwise.models import DualEncoder

_SOURCE = "measured just now"
_SIDE = 224
_WARM_UP = 8
_ROWS_AT_ONCE = 5_000
_LOOKED_AT = 20
"""Pictures that are looked at for each query that is taken from the captions of an index."""


@dataclass(frozen=True)
class MeasuredSample:
    """Largest number of rows that are drawn, written and searched, of pictures that are encoded, and of searches.

    Of ``repeats`` measurements the best counts, since other programs only slow things down.
    """

    rows: int = 100_000
    pictures: int = 64
    queries: int = 20
    repeats: int = 3


def measured(
    rates: Rates,
    need: Need,
    *,
    model: DualEncoder | None = None,
    stored: Index | None = None,
    folder: Path | None = None,
    sample: MeasuredSample | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Rates:
    """Rates where measurements of this machine replace the given ones, measured at the size of the need.

    Rates of other sizes are multiplied with what this machine takes in comparison. Memory, building, an update and the
    answer of a server are not measured.

    Args:
        rates: Rates of everything that is not measured.
        need: Need for which is measured: its pictures, captions and dimension.
        model: Model that encodes pictures and queries; None skips encoding. An index is only searched with it.
        stored: Index that is searched. Without one, rows are drawn, as many as the need has but no more than
            ``sample.rows``.
        folder: Folder for the written rows; by default the system's temporary folder.
        sample: Amounts that are measured.
        say: Callback with a line on each measurement.

    >>> from rungwise.planning._rates import STORED
    >>> here = measured(STORED, Need(200, dimension=16), sample=MeasuredSample(queries=2, repeats=1))
    >>> here["lance_insert"].machine, here["lance_insert"].rows, here["milvus_insert"] == STORED["milvus_insert"]
    ('this machine', 200, True)
    """
    sample = sample or MeasuredSample()
    if folder is not None:
        with explained(folder):
            make_folder(folder)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = Path(name)
        found = _searched(work, rates, need, model, stored, sample, say)
        if model is None:
            return found
        say(f"encoding queries, and {sample.pictures} drawn photos of {_SIDE} x {_SIDE} on {need.device}")
        encoded = _pictures_per_second(model, work, sample)
        asking = [partial(model.encode_text, ["a dog runs over the grass"])] * sample.queries
        query = min(_seconds(ask, time.process_time) for ask in asking)
    about = f"{need.model_name}, drawn photos of {_SIDE} x {_SIDE} from files"
    size = model_size(need, rates)
    of_query = Rate(
        f"the words of one query, {need.model_name}, processor time", 1000 * query, "ms", _SOURCE, machine=HERE
    )
    return {
        **found,
        encoder(need.model_name, need.device): Rate(about, encoded, "pictures/s", _SOURCE, machine=HERE),
        f"{QUERIES}{size.name}{', exported' if size.exported else ''}": of_query,
    }


def _searched(
    work: Path,
    rates: Rates,
    need: Need,
    model: DualEncoder | None,
    stored: Index | None,
    sample: MeasuredSample,
    say: Callable[[str], None],
) -> Rates:
    """Rates of everything but encoding, measured in a folder of their own."""
    rows, pictures = min(need.rows, sample.rows), min(need.pictures, sample.rows)
    say(f"writing and searching {rows:,} rows of {need.numbers} numbers in both stores")
    found = _stores(work, rates, need.numbers, rows, sample)
    if stored is not None and model is not None:
        count = len(stored)
        say(f"searching your index of {count:,} pictures")
        return _searches(found, stored, model, _queries_of(stored, sample.queries), count, need.numbers)
    from rungwise.planning._drawn_index import drawn_index, drawn_texts

    of_all = "" if pictures == need.pictures else f" (of {need.pictures:,}: no more are drawn)"
    say(f"drawing an index of {pictures:,} pictures{of_all}, and searching it")
    index, drawn = drawn_index(work / "index", pictures, need.captions, need.numbers)
    return _searches(found, index, drawn, drawn_texts(sample.queries, seed=2), pictures, need.numbers)


def _queries_of(index: Index, count: int) -> list[str]:
    """Captions of an index; where it has none, drawn texts."""
    some = islice(index.items(), _LOOKED_AT * count)
    texts = list(dict.fromkeys(text for item in some for text in item.captions[:1]))
    if len(texts) < count:
        from rungwise.planning._drawn_index import drawn_texts

        texts += drawn_texts(count - len(texts), seed=2)
    return random.Random(0).sample(texts, count)


def _searches(
    rates: Rates, index: Index, model: DualEncoder, queries: Sequence[str], pictures: int, dimension: int
) -> Rates:
    """Rates with the parts of a search in an index, which replace those of the same size and rescale the others."""
    found = search_parts(index, model, queries)
    store = index.picture_store.about()
    usual = max(1, round(pictures * dimension / USUAL_DIMENSIONS))
    for part in PARTS:
        if part != "vectors":
            rates = _rescaled(rates, part, pictures, found[part], dimension)
    if store.kind == "milvus":
        about = rates["milvus_search"].what
        return {**rates, "milvus_search": Rate(about, found["store"], "ms", _SOURCE, pictures, dimension, HERE)}
    kind = "held" if store.exact else "lists"
    rates = _rescaled(rates, f"{kind}_vectors", usual, found["vectors"], dimension)
    return _rescaled(rates, f"{kind}_search", usual, found["store"], dimension)


def _rescaled(rates: Rates, name: str, rows: int, value: float, dimension: int) -> Rates:
    """Rates where one that was measured here stands at its size, and those of other sizes in proportion to it."""
    usual = growth(rates, name, rows).value if sizes_of(rates, name) else 0.0
    factor = value / usual if usual else 1.0
    found = dict(rates)
    for rate in sizes_of(rates, name):
        about = f"{rate.source}, x {number(factor)} as measured here"
        found[sized_name(name, rate.rows or 0)] = replace(
            rate, value=rate.value * factor, source=about, dimension=dimension, machine=HERE
        )
    found[sized_name(name, rows)] = replace(sized_rate(name, rows, value, dimension), source=_SOURCE, machine=HERE)
    return found


def _stores(work: Path, rates: Rates, dimension: int, rows: int, sample: MeasuredSample) -> Rates:
    import numpy as np

    from rungwise.index import ExactStore, LanceStore
    from rungwise.similarity import Cosine, unit_rows

    draw = np.random.default_rng(0)
    queries = unit_rows(draw.standard_normal((sample.queries, dimension), np.float32))
    here: dict[str, float] = {}
    stores: dict[str, Store] = {
        "exact": ExactStore.create(work / "exact", dimension, Cosine()),
        "lance": LanceStore.create(work / "lance", "pictures", dimension, Cosine()),
    }
    for kind, made in stores.items():
        start = time.perf_counter()
        with made as store:
            store.upsert_batches(_batches(dimension, rows))
            here[f"{kind}_insert"] = rows / (time.perf_counter() - start)
            if kind == "exact":
                store.search(queries[:1], 10)  # vectors are read once
                searches = [partial(store.search, query[None], 10) for query in queries] * sample.repeats
                here["exact_speed"] = rows * dimension * 4 / min(map(_seconds, searches)) / 1e9
    return {**rates} | {
        name: replace(rates[name], value=value, source=_SOURCE, rows=rows, dimension=dimension, machine=HERE)
        for name, value in here.items()
    }


def _pictures_per_second(model: DualEncoder, work: Path, sample: MeasuredSample) -> float:
    """Pictures per second from files to vectors, with an empty cache each time."""
    from PIL import Image

    photos = []
    for at in range(sample.pictures + _WARM_UP):
        file = io.BytesIO()
        Image.effect_noise((_SIDE, _SIDE), 20 + at).convert("RGB").save(file, "JPEG")
        photos.append(work / f"{at}.jpg")
        photos[-1].write_bytes(file.getvalue())
    model.encode_image(photos[:_WARM_UP], cache=work / "cache")
    taken = [
        _seconds(partial(model.encode_image, photos[_WARM_UP:], cache=work / f"cache-{turn}"))
        for turn in range(sample.repeats)
    ]
    return sample.pictures / min(taken)


def _batches(dimension: int, rows: int) -> Iterator[StoreBatch]:
    import numpy as np

    from rungwise.index.stores import StoreBatch
    from rungwise.similarity import unit_rows

    draw = np.random.default_rng(1)
    for start in range(0, rows, _ROWS_AT_ONCE):
        numbers = range(start, min(rows, start + _ROWS_AT_ONCE))
        vectors = unit_rows(draw.standard_normal((len(numbers), dimension), np.float32))
        yield StoreBatch([str(one) for one in numbers], vectors, [{"file": f"{one}.jpg"} for one in numbers])


def _seconds(job: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    job()
    return clock() - start
