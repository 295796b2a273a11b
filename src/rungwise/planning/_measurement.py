"""Measurement of this machine's rates within seconds: encoding, comparing all vectors, writing rows."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core.disk import explained, make_folder
from rungwise.planning._need import Device
from rungwise.planning._rates import HERE, Rate, Rates, encoder

if TYPE_CHECKING:
    from rungwise.index.stores import Store, StoreBatch
    from rungwise.models import DualEncoder

_SOURCE = "measured just now"
_SIDE = 224
_WARM_UP = 8
_ROWS_AT_ONCE = 5_000


@dataclass(frozen=True)
class MeasuredSample:
    """Numbers of vectors that are written and searched, of pictures that are encoded, and of searches.

    Of ``repeats`` measurements the best counts, since other programs only slow things down.
    """

    rows: int = 20_000
    pictures: int = 64
    queries: int = 20
    repeats: int = 3


def measured(
    rates: Rates,
    dimension: int,
    *,
    model: DualEncoder | None = None,
    name: str = "",
    device: Device = "cpu",
    folder: Path | None = None,
    sample: MeasuredSample | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Rates:
    """Rates where measurements of this machine replace the given ones.

    Args:
        rates: Rates of everything that is not measured.
        dimension: Dimension D of the random vectors.
        model: Model that encodes pictures; None skips encoding.
        name: Name of the model in the plan.
        device: Device of the model, as the plan names it.
        folder: Folder for the written rows; by default the system's temporary folder.
        sample: Amounts that are measured.
        say: Callback with a line on each measurement.

    >>> from rungwise.planning._rates import STORED
    >>> here = measured(STORED, 16, sample=MeasuredSample(rows=200, queries=2, repeats=1))
    >>> here["lance_insert"].machine, here["lance_insert"].rows, here["milvus_insert"] == STORED["milvus_insert"]
    ('this machine', 200, True)
    """
    sample = sample or MeasuredSample()
    if folder is not None:
        with explained(folder):
            make_folder(folder)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        say(f"writing and searching {sample.rows:,} rows of {dimension} numbers in both stores")
        found = _stores(Path(work), rates, dimension, sample)
        if model is None:
            return found
        say(f"encoding {sample.pictures} drawn photos of {_SIDE} x {_SIDE} on {device}")
        pictures = _pictures_per_second(model, Path(work), sample)
    what = f"{name}, drawn photos of {_SIDE} x {_SIDE} from files"
    rate = Rate(what, pictures, "pictures/s", _SOURCE, machine=HERE)
    return {**found, encoder(name, device): rate}


def _stores(work: Path, rates: Rates, dimension: int, sample: MeasuredSample) -> Rates:
    import numpy as np

    from rungwise.index import ExactStore, LanceStore
    from rungwise.similarity import Cosine, unit_rows

    draw = np.random.default_rng(0)
    queries = unit_rows(draw.standard_normal((sample.queries, dimension), np.float32))
    inserted: dict[str, float] = {}
    searched: dict[str, float] = {}
    stores: dict[str, Store] = {
        "exact": ExactStore.create(work / "exact", dimension, Cosine()),
        "lance": LanceStore.create(work / "lance", "pictures", dimension, Cosine()),
    }
    for kind, made in stores.items():
        start = time.perf_counter()
        with made as store:
            store.upsert_batches(_batches(dimension, sample.rows))
            inserted[kind] = time.perf_counter() - start
            store.search(queries[:1], 10)  # vectors are read once
            searched[kind] = min(
                _seconds(partial(store.search, query[None], 10)) for _ in range(sample.repeats) for query in queries
            )
    size = sample.rows * dimension * 4

    here = {
        "exact_insert": sample.rows / inserted["exact"],
        "lance_insert": sample.rows / inserted["lance"],
        "exact_speed": size / searched["exact"] / 1e9,
        "held_speed": size / searched["lance"] / 1e9,
    }
    return {**rates} | {
        name: replace(rates[name], value=value, source=_SOURCE, rows=sample.rows, dimension=dimension, machine=HERE)
        for name, value in here.items()
    }


def _pictures_per_second(model: DualEncoder, work: Path, sample: MeasuredSample) -> float:
    """Pictures per second from files to vectors, with an empty cache each time."""
    from PIL import Image

    photos = []
    for number in range(sample.pictures + _WARM_UP):
        file = io.BytesIO()
        Image.effect_noise((_SIDE, _SIDE), 20 + number).convert("RGB").save(file, "JPEG")
        photos.append(work / f"{number}.jpg")
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


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start
