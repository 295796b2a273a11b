"""What an index keeps when things go wrong: SIGKILL at random moments, a full disk, corrupt files, several processes.

python benchmarks/keeping.py
python benchmarks/keeping.py --moments 5 --stores exact

A process of its own changes an index and says on its output what it was told is stored. It is killed at a random moment
of its time. Then the index must open, hold everything that was said, hold nothing twice, and the same change must
finish. One line for each kind of change and store tells how often that was so; the first fault is printed in full.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.data.features import FeatureRows
from rungwise.data.folder import PictureFolder, read_folder
from rungwise.index import Index, looking
from rungwise.models.contracts import DualEncoder, EncodedImages
from rungwise.similarity import Cosine

PICTURES, DIMENSION, BATCH = 1000, 64, 100
GONE = 500
"""Pictures that a deletion removes."""
CORRUPT = 0.01
SECONDS_TOGETHER = 8.0


class Given(DualEncoder):
    """A model whose vectors are the features that it is given; a picture file is its mean colour."""

    dimension, fingerprint, similarity = DIMENSION, "given", Cosine()

    def encode_image(self, pictures, *, progress=None, cache=None):
        """The features as they are, brought to length 1."""
        if isinstance(pictures, FeatureRows):
            return EncodedImages(np.asarray(pictures[:], np.float32), np.arange(len(pictures)))
        return EncodedImages(self.encode_text([str(one) for one in pictures]), np.arange(len(pictures)))

    def encode_text(self, texts):
        """A vector for each text, always the same one."""
        rows = [np.random.default_rng(list(text.encode())).normal(size=DIMENSION) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(-1, DIMENSION)


def collection(count: int = PICTURES) -> ImageCaptions:
    """Rows of features with two captions each, the same in every process."""
    rows = np.random.default_rng(0).normal(size=(count, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    captions = tuple(f"picture {number // 2}, {number % 2}" for number in range(2 * count))
    ids = tuple(f"{number:05d}" for number in range(count))
    return ImageCaptions(ids, captions, np.arange(2 * count) // 2, features=FeatureRows(rows), name="rows")


def say(*words: str) -> None:
    """One line to whoever started this process."""
    print(*words, flush=True)


def indexing(place: Path) -> None:
    """Bring the index up to date, in many batches."""
    looking._FIRST = looking._MOST = BATCH
    index = Index.open(place)
    say("ready")
    index.update(collection(), Given(), stored=lambda ids: say("stored", *ids))


def deletion(place: Path) -> None:
    """Remove half of the pictures, in many steps."""
    index = Index.open(place)
    ids = collection().image_ids[:GONE]
    say("ready")
    for start in range(0, GONE, BATCH // 2):
        say("removing", *ids[start : start + BATCH // 2])
        index.remove(ids[start : start + BATCH // 2])
        say("removed", *ids[start : start + BATCH // 2])


def compaction(place: Path) -> None:
    """Compact."""
    index = Index.open(place)
    say("ready")
    index.compact()


ACTIONS: dict[str, Callable[[Path], None]] = {
    "indexing": indexing,
    "deletion": deletion,
    "compaction": compaction,
}


def prepared(action: str, store: str, place: Path) -> None:
    """The index before the change."""
    index = Index.create(place, Given(), name="rows", store=store)
    if action != "indexing":
        looking._FIRST = looking._MOST = BATCH
        index.update(collection(), Given())
    if action == "compaction":
        index.remove(collection().image_ids[1::2])


def child(action: str, place: Path) -> subprocess.Popen[str]:
    """A process that makes the change, once it is about to begin."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", action, str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while (line := process.stdout.readline()) and line.strip() != "ready":
        pass
    return process


def said(process: subprocess.Popen[str]) -> dict[str, list[list[str]]]:
    """What a process said by its end, by the first word; a line that was cut off does not count."""
    assert process.stdout is not None
    found: dict[str, list[list[str]]] = {"stored": [], "removing": [], "removed": []}
    for line in process.stdout.read().split("\n")[:-1]:
        word, *ids = line.split(" ")
        if word in found:
            found[word].append([one for one in ids if one])
    process.wait()
    return found


def fault(action: str, place: Path, heard: dict[str, list[list[str]]]) -> str:
    """What is wrong with the index now; empty if nothing is."""
    data = collection()
    row = {one: number for number, one in enumerate(data.image_ids)}
    try:
        index = Index.open(place)
    except UserError as error:
        return f"it does not open: {error}"
    ids = [item.id for item in index.items()]
    there = set(ids)
    if len(there) != len(ids):
        return f"{len(ids) - len(there)} rows stand twice"
    if action == "indexing":
        if lost := {one for some in heard["stored"] for one in some} - there:
            return f"{len(lost)} acknowledged rows are lost"
    elif action == "deletion":
        gone = {one for some in heard["removed"] for one in some}
        doubtful = {one for some in heard["removing"] for one in some} - gone
        if gone & there:
            return f"{len(gone & there)} rows are back"
        if set(data.image_ids) - gone - doubtful - there:
            return "rows are lost that nobody removed"
        if doubtful & there not in (set(), doubtful):
            return "half of a step was done"
    elif there != set(data.image_ids[::2]):
        return "compaction changed the rows"
    for one, stored in index.picture_store.get(sorted(there)).items():
        if not np.allclose(stored.vector, data.features[np.array([row[one]])][0], atol=1e-6):
            return f"row {one} has another vector"
    held = set(index.captions())
    if lacking := [item.id for item in index.items() if not held.issuperset(item.captions)]:
        return f"captions of {len(lacking)} pictures have no vector"
    if there and index.similar(min(there), k=3)[0].id not in there:
        return "a search finds what is not there"
    return ""


def finished(action: str, place: Path) -> str:
    """Make the same change again, and see that it ends where it should."""
    done_quietly(action, place)
    data, index = collection(), Index.open(place)
    if action == "deletion":
        index.compact()  # which clears away what a process left that died between pictures and captions
    wanted = {"indexing": data.image_ids, "deletion": data.image_ids[GONE:], "compaction": data.image_ids[::2]}[action]
    if sorted(item.id for item in index.items()) != sorted(wanted):
        return "the next run does not finish the change"
    if len(set(index.captions())) != 2 * len(wanted):
        return "captions are left that no picture has"
    return fault(action, place, {"stored": [], "removing": [], "removed": []}) if action == "compaction" else ""


def done_quietly(action: str, place: Path) -> None:
    """The change in this process, without a word."""
    before, sys.stdout = sys.stdout, io.StringIO()
    try:
        ACTIONS[action](place)
    finally:
        sys.stdout = before


def kills(action: str, store: str, scratch: Path, moments: int, seed: int) -> tuple[int, int, str]:
    """How many kills there were, how many of them came before the end, and the first fault."""
    draw = random.Random(f"{seed} {action} {store}")
    before, place = scratch / "before", scratch / "index"
    prepared(action, store, before)
    shutil.copytree(before, place)
    start = time.perf_counter()
    process = child(action, place)
    start = time.perf_counter()
    said(process)
    seconds = time.perf_counter() - start
    early, first = 0, ""
    for moment in range(moments):
        shutil.rmtree(place)
        shutil.copytree(before, place)
        process = child(action, place)
        time.sleep(draw.uniform(0, seconds))
        early += process.poll() is None
        process.kill()
        heard = said(process)
        wrong = fault(action, place, heard) or finished(action, place)
        if wrong and not first:
            first = f"{action}, {store}, moment {moment + 1}: {wrong}"
    return moments, early, first


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Callable[[int], None]]:
    """A disk of a few bytes; yields what makes it larger."""
    library = ctypes.CDLL(None, use_errno=True)

    def mount(bytes_: int, flags: int = 0) -> None:
        if library.mount(b"rungwise", os.fsencode(place), b"tmpfs", flags, f"size={bytes_}".encode()):
            raise OSError(ctypes.get_errno(), "this process may not mount a small disk")

    place.mkdir()
    mount(size)
    try:
        yield lambda more: mount(more, 32)
    finally:
        library.umount2(os.fsencode(place), 2)


def full_disks(store: str, scratch: Path, sizes: Sequence[int]) -> tuple[int, int, str]:
    """Indexing on disks that are too small, then with room again."""
    early, first = 0, ""
    for size in sizes:
        with small_disk(scratch / f"disk {size}", size) as grow:
            place = scratch / f"disk {size}" / "index"
            prepared("indexing", store, place)
            process = child("indexing", place)
            heard = said(process)
            assert process.stderr is not None
            words = process.stderr.read().strip().splitlines()
            early += process.returncode != 0
            wrong = fault("indexing", place, heard)
            if process.returncode not in (0, 2) or (
                process.returncode == 2 and not any("full" in one for one in words)
            ):
                wrong = wrong or f"it ended with {process.returncode}: {words[-1:]}"
            grow(1 << 28)
            wrong = wrong or finished("indexing", place)
            first = first or (f"full disk of {size} bytes, {store}: {wrong}" if wrong else "")
    return len(sizes), early, first


def corrupt(store: str, scratch: Path) -> tuple[int, int, str]:
    """One file in a hundred is damaged; all others are found, and the damaged ones are listed each time."""
    photos, draw = scratch / "photos", random.Random(0)
    photos.mkdir()
    for number in range(300):
        file = io.BytesIO()
        Image.new("RGB", (32, 32), (number % 256, number // 2, 40)).save(file, "JPEG")
        (photos / f"{number}.jpg").write_bytes(file.getvalue())
    bad = draw.sample(sorted(photos.iterdir()), int(300 * CORRUPT))
    for path in bad:
        path.write_bytes(path.read_bytes()[: draw.randrange(100)])

    class Reading(Given):
        def encode_image(self, pictures, *, progress=None, cache=None):
            from rungwise.data.collection import Issue
            from rungwise.data.pictures import load_array

            kept, issues = [], []
            for at, one in enumerate(pictures):
                try:
                    load_array(one)
                    kept.append(at)
                except UserError as error:
                    issues.append(Issue("unreadable picture", str(one), str(error)))
            rows = self.encode_text([str(pictures[at]) for at in kept])
            return EncodedImages(rows, np.array(kept, np.int64), tuple(issues))

    index = Index.create(scratch / "index", Reading(), name="photos", store=store)
    wrong = ""
    for _ in range(2):
        changes = index.update(read_folder(PictureFolder(photos)), Reading())
        if len(changes.issues) != len(bad) or len(index) != 300 - len(bad):
            wrong = f"corrupt files, {store}: {changes}, {len(changes.issues)} issues"
    return len(bad), len(bad), wrong


def reading(place: Path) -> None:
    """Open and search without end; every row that is found must be whole."""
    data = collection()
    row = {one: number for number, one in enumerate(data.image_ids)}
    end, looked = time.monotonic() + SECONDS_TOGETHER, 0
    while time.monotonic() < end:
        index = Index.open(place)
        ids = [item.id for item in index.items()]
        assert len(set(ids)) == len(ids), "a row stands twice"
        for hit in index.search(data.features[np.array([looked % PICTURES])], k=5)[0]:
            vector = index.picture_store.get([hit.id])[hit.id].vector
            assert np.allclose(vector, data.features[np.array([row[hit.id]])][0], atol=1e-6), "a row of two halves"
        looked += 1
    say("looked", str(looked))


def writing(place: Path) -> None:
    """Take away and bring back without end; a second writer waits, or says that another one writes."""
    looking._FIRST = looking._MOST = BATCH
    end, done, waited = time.monotonic() + SECONDS_TOGETHER, 0, 0
    while time.monotonic() < end:
        index = Index.open(place)
        index.remove(collection().image_ids[:BATCH])
        try:
            index.update(collection(), Given())
            done += 1
        except UserError as error:
            if "writes here now" not in str(error):
                raise
            waited += 1
            time.sleep(0.05)
    say("done", str(done), str(waited))


def together(store: str, scratch: Path) -> tuple[int, int, str]:
    """Two writers and three readers at once."""
    place = scratch / "index"
    prepared("deletion", store, place)
    command = [sys.executable, __file__, "--child"]
    kinds = ["writing"] * 2 + ["reading"] * 3
    processes = [
        subprocess.Popen([*command, kind, str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for kind in kinds
    ]
    counts, first = 0, ""
    for kind, process in zip(kinds, processes, strict=True):
        out, errors = process.communicate()
        if process.returncode:
            first = first or f"{kind}, {store}: {errors.strip().splitlines()[-1:]}"
        else:
            counts += sum(int(word) for word in out.split() if word.isdigit())
    return len(kinds), counts, first or fault("indexing", place, {"stored": []})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--stores", default="lance,exact")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=2, metavar=("ACTION", "PLACE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        try:
            ({**ACTIONS, "reading": reading, "writing": writing})[asked.child[0]](Path(asked.child[1]))
        except UserError as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    table = Table(title="What an index keeps")
    for column in ("what happens", "store", "times", "came before the end", "faults", "seconds"):
        table.add_column(column, justify="left" if column in ("what happens", "store") else "right")
    faults = []
    for store in asked.stores.split(","):
        cases: list[tuple[str, Callable[[Path], tuple[int, int, str]]]] = [
            (f"SIGKILL during {action}", lambda place, a=action: kills(a, store, place, asked.moments, asked.seed))  # noqa: B023
            for action in ACTIONS
        ]
        sizes = [1 << 17, 1 << 18, 1 << 19, 1 << 20, 3 << 19]
        cases.append(("disk full", lambda place: full_disks(store, place, sizes)))  # noqa: B023
        cases.append(("1 % corrupt files", lambda place: corrupt(store, place)))  # noqa: B023
        cases.append(("2 writers, 3 readers", lambda place: together(store, place)))  # noqa: B023
        for name, case in cases:
            with tempfile.TemporaryDirectory() as scratch:
                start = time.perf_counter()
                try:
                    times, early, wrong = case(Path(scratch))
                except OSError as error:
                    times, early, wrong = 0, 0, ""
                    name += f" (left out: {error.strerror or error})"
                if wrong:
                    faults.append(wrong)
                seconds = time.perf_counter() - start
                table.add_row(name, store, str(times), str(early), str(int(bool(wrong))), f"{seconds:.0f}")
                print(json.dumps([name, store, times, early, wrong]), file=sys.stderr, flush=True)
    Console(width=110).print(table)
    for one in faults:
        print(one)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
