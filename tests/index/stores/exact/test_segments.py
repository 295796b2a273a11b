"""Files of a store that are not as they were written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError, limited
from rungwise.core.disk.locks import LOCKS
from rungwise.index import ExactStore
from rungwise.index.stores import write_description
from rungwise.similarity import Cosine

VECTORS = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


@pytest.fixture
def store(tmp_path: Path) -> ExactStore:
    store = ExactStore.create(tmp_path / "store", 4, Cosine())
    store.upsert(list("abcdef"), VECTORS, [{"n": n} for n in range(6)])
    store.upsert(["g", "h"], VECTORS[:2])
    store.delete(["b"])
    assert len(store.snapshot.parts) == 2
    return store


def fields_of(folder: Path) -> dict:
    return json.loads((folder / "store.json").read_text())


def plainly(folder: Path, **changes: object) -> None:
    (folder / "store.json").write_text(json.dumps(fields_of(folder) | changes))


def with_checksum(folder: Path, **changes: object) -> None:
    fields = fields_of(folder) | changes
    del fields["checksum"]
    write_description(folder / "store.json", fields)


def save(folder: Path, vectors: np.ndarray) -> None:
    np.save(folder / "vectors-0.npy", vectors)


def with_nan(vectors: np.ndarray) -> np.ndarray:
    return np.where(np.arange(24).reshape(6, 4) == 9, np.nan, vectors).astype(np.float32)


def doubled(folder: Path) -> None:
    """The rows of the first part a second time, in a part of their own."""
    first = fields_of(folder)["parts"][0] | {"deleted": []}
    for name in ("vectors-{}.npy", "rows-{}.jsonl"):
        shutil.copy(folder / name.format(0), folder / name.format(9))
    with_checksum(folder, parts=[first, first | {"number": 9}])


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda folder: save(folder, VECTORS[::-1].copy()), r"vectors-0\.npy: damaged .*checksums differ"),
        (lambda folder: save(folder, with_nan(VECTORS)), r"vectors-0\.npy: damaged \(row 2 .* holds NaN"),
        (lambda folder: plainly(folder, similarity={"kind": "inner"}), r"store\.json: damaged .*checksums differ"),
        (lambda folder: plainly(folder, parts=fields_of(folder)["parts"][:1]), r"store\.json: damaged .*checksums"),
        (lambda folder: plainly(folder, side="text"), r"store\.json: damaged .*checksums differ"),
        (lambda folder: plainly(folder, checksum=None), r"store\.json: damaged .*checksums differ"),
        (doubled, r"store\.json: damaged \(id 'a' stands twice\)"),
        (lambda folder: with_checksum(folder, dimension=0), r"dimension: must be at least 1"),
    ],
)
def test_what_was_tampered_with_is_refused(store: ExactStore, tamper: Callable[[Path], None], message: str) -> None:
    tamper(store.folder)
    with pytest.raises(UserError, match=message) as error:
        ExactStore.open(store.folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("at", range(8))
def test_one_flipped_bit_in_any_file_is_noticed(store: ExactStore, at: int) -> None:
    for path in sorted(store.folder.iterdir()):
        if path.name in LOCKS:
            continue
        before = path.read_bytes()
        head = 128 if path.suffix == ".npy" else 0  # which says shape and type, checked by themselves
        data = bytearray(before)
        data[head + (len(data) - head) * at // 8] ^= 4
        path.write_bytes(data)
        with pytest.raises(UserError, match=path.name.replace(".", r"\.")):
            ExactStore.open(store.folder)
        path.write_bytes(before)
    assert ExactStore.open(store.folder).count() == 7


def test_large_files_are_looked_through_only_on_request(store: ExactStore) -> None:
    save(store.folder, VECTORS[::-1].copy())
    with limited(checked_bytes=95):
        assert ExactStore.open(store.folder).count() == 7
        with pytest.raises(UserError, match="checksums differ"):
            ExactStore.open(store.folder, all_vectors=True)
    with limited(checked_bytes=96), pytest.raises(UserError, match="checksums differ"):
        ExactStore.open(store.folder)


def test_a_store_without_parts_is_no_empty_one(store: ExactStore) -> None:
    fields = {name: value for name, value in fields_of(store.folder).items() if name not in ("parts", "checksum")}
    write_description(store.folder / "store.json", fields)
    with pytest.raises(UserError, match=r"store\.json: parts: is missing"):
        ExactStore.open(store.folder)


def test_an_id_may_stand_again_where_it_was_deleted_before(store: ExactStore) -> None:
    store.upsert(["b", "a"], VECTORS[:2])
    assert [one for one, _ in ExactStore.open(store.folder).records()] == list("cdefghba")
