"""Pictures opened and encoded by Ray's workers: the same index as one process makes.

Most is shown by workers in this process, in place of Ray's.
"""

import hashlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core import UserError, _untrusted_files
from rungwise.core.compute import cluster
from rungwise.core.network import file_system
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.encoders.images import ImageConfig
from rungwise.index import Index
from rungwise.index._items import Items, ItemSource
from rungwise.index.update import Changes, Workers
from rungwise.index.update import _workers as workers
from rungwise.index.update._file_reader import ToLookAt
from rungwise.models import DualEncoder, EncodedImages, JointEmbedding, VSEConfig, load_dual_encoder
from tests.colour_model import ColourModel, picture_bytes

OLD = 1_600_000_000
COUNT = 50
TWIN, BROKEN, CUT = 7, 11, 23
"""Pictures that are like an earlier one, no picture, and one that is cut off."""


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network with random weights, which every worker loads."""
    folder = tmp_path_factory.mktemp("network") / "model"
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    JointEmbedding.create(VSEConfig(image=image, dimension=16), ["a dog"]).save_pretrained(folder)
    return folder


@cache
def files() -> tuple[bytes, ...]:
    """Pictures of several shapes and formats, among them those that cause trouble."""
    draw, found = np.random.default_rng(0), []
    for number in range(COUNT):
        file = io.BytesIO()
        shape = ((40, 50), (90, 30), (33, 120))[number % 3]
        pixels = draw.integers(0, 256, (*shape, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file, ("PNG", "JPEG")[number % 2])
        found.append(file.getvalue())
    found[TWIN], found[BROKEN], found[CUT] = found[4], b"no picture", found[CUT][:400]
    return tuple(found)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, data in enumerate(files()):
        path = folder / f"{number:02}.{('png', 'jpg')[number % 2]}"
        path.write_bytes(data)
        os.utime(path, (OLD, OLD))
    return folder


def parquet_shards(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    rows = [{"bytes": data, "path": f"{number:02}.jpg"} for number, data in enumerate(files())]
    for number, some in enumerate((rows[:30], rows[30:])):
        table = pyarrow.table({"image": some, "caption": [f"picture {row['path']}" for row in some]})
        path = folder / f"train-{number:05}-of-00002.parquet"
        pyarrow.parquet.write_table(table, path, row_group_size=7)
        os.utime(path, (OLD, OLD))
    return folder


def tar_shards(folder: Path) -> Path:
    folder.mkdir()
    for shard, some in enumerate((range(20), range(20, COUNT))):
        path = folder / f"{shard:05}.tar"
        with tarfile.open(path, "w") as archive:
            for number in some:
                for suffix, data in (("jpg", files()[number]), ("txt", f"picture {number}".encode())):
                    member = tarfile.TarInfo(f"{number:02}.{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        os.utime(path, (OLD, OLD))
    return folder


def put(address: str, folder: Path) -> str:
    """The files of a folder as objects."""
    store, prefix = file_system(address)
    for path in folder.iterdir():
        with store.open_output_stream(f"{prefix}/{path.name}") as stream:
            stream.write(path.read_bytes())
    return address


def rows_of(index: Index) -> tuple[list[Any], bytes]:
    """Ids and records in order, and the bits of the vectors."""
    records = list(index.picture_store.records())
    stored = index.picture_store.get([one for one, _ in records])
    return records, b"".join(row.vector.tobytes() for row in stored.values())


def load_apart(settings: dict[str, str], model: Path, cache: Path) -> DualEncoder:
    """The model in a worker, which keeps features in a folder of its own and knows the object store of a test.

    To this worker no file is so new that it would be looked at once more by the next run.
    """
    os.environ.update(settings)
    os.environ["RUNGWISE_CACHE"] = str(cache)
    _untrusted_files._SETTLED_NS = 0
    return load_dual_encoder(model)


class Here:
    """Ray, as far as it is asked, with workers in this process."""

    class RayError(Exception):
        """Ray failed."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self) -> None:
        self.made = 0
        """Workers that were made in all."""
        self.data = SimpleNamespace(
            ActorPoolStrategy=lambda size: size,
            DataContext=SimpleNamespace(get_current=lambda: SimpleNamespace(execution_options=SimpleNamespace())),
            from_items=lambda items, override_num_blocks: _Work(self, items),
        )

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, known: Any) -> Any:
        return known

    def get(self, reference: Any) -> Any:
        return reference


class _Work:
    def __init__(self, here: Here, items: list[dict[str, Any]]) -> None:
        self._here, self._items = here, items

    def map_batches(
        self, worker: Callable[..., Any], *, fn_constructor_args: tuple[Any, ...], compute: int, **_: Any
    ) -> Any:
        self._here.made += compute
        made = [worker(*fn_constructor_args) for _ in range(compute)]

        def answers() -> Iterator[dict[str, Any]]:
            for number, item in enumerate(self._items):
                found = made[number % compute]({name: [value] for name, value in item.items()})
                yield {name: value[0] for name, value in found.items()}

        return SimpleNamespace(iter_rows=answers)


class Together:
    """An index that workers make, and one of the same pictures that this process makes.

    Args:
        place: Where both lie.
        connected: Gives Ray, or what stands in its place.
        model: In this process.
        load: Gives it in a worker.
    """

    def __init__(self, place: Path, connected: Any, model: DualEncoder, load: Any) -> None:
        self.place, self.connected, self.model, self.load = place, connected, model, load

    @classmethod
    def on_ray(cls, place: Path, model: Path) -> "Together":
        settings = {name: value for name, value in os.environ.items() if name.startswith("AWS")}
        load = partial(load_apart, settings, model, place / "cache of workers")
        return cls(place, cluster, load_dual_encoder(model), load)

    def alone(self, data: ImageCaptions) -> tuple[Index, Changes]:
        index = Index.create(self.place / "one", self.model, store="exact")
        return index, index.update(data, self.model)

    def shared(self, data: ImageCaptions, **options: Any) -> tuple[Index, Changes]:
        place = self.place / "shared"
        index = Index.open(place) if place.exists() else Index.create(place, self.model, store="exact")
        with self.connected() as ray:
            return index, index.update(data, self.model, files=Workers(ray, self.load, 2), **options)


@pytest.fixture
def together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Together]:
    """By workers in this process."""
    here, threads = Here(), torch.get_num_threads()
    monkeypatch.setattr(workers, "_SHARE", 8)
    monkeypatch.setitem(sys.modules, "ray", here)
    monkeypatch.setitem(sys.modules, "ray.data", here.data)
    yield Together(tmp_path, lambda: nullcontext(here), ColourModel(), ColourModel)
    torch.set_num_threads(threads)


@pytest.fixture
def on_ray(
    tmp_path: Path, model_folder: Path, two_workers: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Together]:
    """By Ray's workers, each of which loads a network from its folder."""
    monkeypatch.setattr(workers, "_SHARE", 8)
    monkeypatch.setattr(_untrusted_files, "_SETTLED_NS", 0)
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache of one"))
    return lambda: Together.on_ray(tmp_path, model_folder)


@pytest.mark.parametrize("kind", ["folder", "parquet", "webdataset"])
def test_the_index_is_that_of_one_process_to_the_bit(
    kind: str, photos: Path, tmp_path: Path, together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = photos
    if kind == "folder":
        monkeypatch.setattr(workers, "_WAVE", 4)  # in two waves, then
    if kind != "folder":
        place = (parquet_shards if kind == "parquet" else tar_shards)(tmp_path / "shards")
    check(read(place), together)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "webdataset"])
def test_on_ray_it_is_so_too(kind: str, photos: Path, tmp_path: Path, on_ray: Callable[[], Together]) -> None:
    check(read(photos if kind == "folder" else tar_shards(tmp_path / "shards")), on_ray())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "webdataset"])
def test_of_shards_in_an_object_store_as_well(
    kind: str, tmp_path: Path, bucket: str, on_ray: Callable[[], Together]
) -> None:
    address = put(f"{bucket}/{kind}", (parquet_shards if kind == "parquet" else tar_shards)(tmp_path / "shards"))
    local, remote = read(tmp_path / "shards"), read(address)
    assert (remote.image_ids, remote.captions, remote.splits) == (local.image_ids, local.captions, local.splits)
    assert remote.paths[0].read() == local.paths[0].read()
    check(remote, on_ray())  # which knows the settings of the bucket


def check(data: ImageCaptions, together: Together) -> None:
    """Both indexes are the same, and nothing is encoded in a second run."""
    one, expected = together.alone(data)
    done: list[int] = []
    shared, changes = together.shared(data, progress=done.append)
    assert rows_of(shared) == rows_of(one)
    assert len(shared) == COUNT - 2
    assert sum(done) == COUNT
    assert shared.left_out == one.left_out
    assert (changes.added, changes.issues) == (expected.added, expected.issues)
    assert len(changes.issues) == 2
    assert list(shared.captions()) == list(one.captions())
    together.load = refuse
    shared, again = together.shared(data)
    assert (again.encoded, again.unchanged) == (0, COUNT - 2)


class TwoGpus:
    """A cluster, as far as it is asked what it has."""

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 8.0, "GPU": 2.0}


def test_there_is_a_worker_for_each_gpu_unless_the_model_needs_none() -> None:
    assert Workers(TwoGpus(), refuse).number == 2
    apart = Workers(TwoGpus(), refuse, on_gpus=False)
    assert (apart.number, apart.gpus) == (8, 0)
    assert Workers(TwoGpus(), refuse, 3).number == 3


def refuse() -> DualEncoder:
    raise UserError("this model is not to be had")


def test_only_what_changed_is_encoded(photos: Path, together: Together) -> None:
    together.shared(read(photos))
    (photos / "02.png").write_bytes(picture_bytes((1, 2, 3)))
    (photos / "copy.png").write_bytes((photos / "04.png").read_bytes())
    _, changes = together.shared(read(photos))
    assert str(changes) == "1 added, 1 changed, 0 removed, 47 unchanged"
    assert changes.encoded == 1


def test_contents_are_told_apart_by_what_they_begin_with() -> None:
    known = workers._beginnings(["f0" * 32, "0a" * 32, "", "\udcff" * 64])
    assert [workers._is_among(known, one * 32) for one in ("0a", "f0", "0b", "ff")] == [True, True, False, False]
    assert workers._is_among(known, "0a" * 8 + "0b" * 24), "which the process that writes finds out"
    assert not workers._is_among(workers._beginnings([]), "0a" * 32)


def test_a_new_picture_that_is_taken_for_a_known_one_is_encoded_nevertheless(
    photos: Path, together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = [hashlib.sha256(path.read_bytes()).hexdigest() for path in photos.iterdir() if path.is_file()]
    beginnings = workers._beginnings
    monkeypatch.setattr(workers, "_beginnings", lambda known: beginnings([*known, *(one[:16] for one in alike)]))
    one, expected = together.alone(read(photos))
    shared, changes = together.shared(read(photos))
    assert rows_of(shared) == rows_of(one)
    assert changes.encoded == expected.encoded > COUNT / 2


class Dying(ColourModel):
    """Ends its process on its third call in the first worker that comes to it."""

    mark: Path
    calls = 0

    def encode_image(self, pictures: Any, **options: Any) -> EncodedImages:
        self.calls += 1
        if self.calls == 3 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_image(pictures, **options)


def dying(mark: Path) -> DualEncoder:
    model = Dying()
    model.mark = mark
    return model


@pytest.mark.slow
def test_the_share_of_a_worker_that_dies_is_done_again(
    photos: Path, tmp_path: Path, on_ray: Callable[[], Together]
) -> None:
    together = on_ray()
    together.model, together.load = ColourModel(), partial(dying, tmp_path / "died")
    one, _ = together.alone(read(photos))
    shared, changes = together.shared(read(photos))
    assert (tmp_path / "died").exists()
    assert rows_of(shared) == rows_of(one)
    assert changes.added == COUNT - 2


def always_dying() -> DualEncoder:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.slow
def test_workers_that_always_die_end_the_run(
    photos: Path, on_ray: Callable[[], Together], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = on_ray()
    monkeypatch.setattr(workers, "_DEATHS", 1)
    together.model, together.load = ColourModel(), always_dying
    with pytest.raises(UserError, match="Ray: .*the same command goes on from there") as raised:
        together.shared(read(photos))
    assert "\n" not in str(raised.value)


class Failing(ColourModel):
    def encode_image(self, pictures: Any, **options: Any) -> EncodedImages:
        raise ValueError("out of luck")


LINES = {refuse: r"a worker on .*: this model is not to be had", Failing: r"a worker on .*: ValueError: out of luck"}


@pytest.mark.parametrize("load", LINES)
def test_what_a_worker_cannot_do_is_one_line(load: Any, photos: Path, together: Together) -> None:
    together.load = load
    with pytest.raises(UserError, match=LINES[load]) as raised:
        together.shared(read(photos))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_on_ray_it_is_one_line_too(photos: Path, on_ray: Callable[[], Together]) -> None:
    together = on_ray()
    together.load = Failing
    with pytest.raises(UserError, match=LINES[Failing]):
        together.shared(read(photos))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Here.RayError("traceback of a worker\n\nout of memory"), "out of memory"),
        (ValueError("Failed to look up actor with name 'datasets_stats_actor'."), "Failed to look up actor with name"),
        (KeyError(), "KeyError"),
    ],
)
def test_what_ray_fails_of_is_one_line(
    error: Exception, line: str, photos: Path, together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a process of Ray's own has died, of which it would print a traceback."""
    printed, logger = io.StringIO(), logging.getLogger("ray.data")
    handler = logging.StreamHandler(printed)
    monkeypatch.setattr(logger, "handlers", [handler])

    def fails(self: _Work, *_: Any, **__: Any) -> Any:
        def answers() -> Iterator[dict[str, Any]]:
            logger.error("Full stack trace:", exc_info=error)
            raise error
            yield

        return SimpleNamespace(iter_rows=answers)

    monkeypatch.setattr(_Work, "map_batches", fails)
    with pytest.raises(UserError, match=f"^Ray: {line}.*; what is in the index stays, and the same command goes"):
        together.shared(read(photos))
    assert printed.getvalue() == ""


class Elsewhere(Workers):
    """Workers on a machine without the pictures."""

    def __call__(self, data: ImageCaptions, *rest: Any) -> Any:
        shared = super().__call__(data, *rest)
        shared._answers = lambda shares, number: iter(  # type: ignore[attr-defined]
            [{"found": json.dumps([self.said] * len(one)), "vectors": b"", "dimension": 0} for one in shares]
        )
        return shared

    said: ClassVar[dict[str, Any]] = {
        "source": [-1, ""],
        "left": {"kind": "missing picture", "where": "", "detail": "no such file"},
    }


def test_a_machine_without_the_pictures_removes_none(photos: Path, together: Together) -> None:
    index, _ = together.shared(read(photos))
    with pytest.raises(UserError, match=r"00.png: is here, and a worker does not find it; keep the pictures where"):
        index.update(read(photos), together.model, files=Elsewhere(None, refuse, 2), rehash=True)
    assert len(Index.open(index.folder)) == COUNT - 2


class Unreadable(Elsewhere):
    """Workers that can read no picture."""

    said: ClassVar[dict[str, Any]] = {
        "source": [9, "c0de"],
        "left": {"kind": "unreadable picture", "where": "", "detail": ""},
    }


@pytest.mark.parametrize(
    ("seconds", "most", "sizes"),
    [(2.0, 4096, [8, 8, 4]), (1.0, 4096, [16, 4]), (0.5, 4096, [20]), (0.5, 10, [16, 4]), (0.5, 16, [16, 4])],
)
def test_what_comes_within_some_seconds_is_written_together(
    seconds: float, most: int, sizes: list[int], photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of shares of eight pictures, each of which takes so many seconds."""
    for name, value in {"_SHARE": 8, "MOST": most}.items():
        monkeypatch.setattr(workers, name, value)
    data, times = read(photos), iter(np.arange(99) * seconds)
    asked = ToLookAt(Items(data))
    for position in range(20):
        asked.add(position, ItemSource(9, 9, ""))
    shared = Unreadable(None, refuse, 2, clock=lambda: float(next(times)))(data, None, ())
    batches = list(shared.batches(asked))
    assert [len(batch) for batch in batches] == sizes
    assert [one.id for batch in batches for one in batch] == list(data.image_ids[:20])


def test_rows_of_features_are_refused(together: Together) -> None:
    data = ImageCaptions(("a",), (), np.empty(0), features=FeatureRows(np.ones((1, 3), np.float32)), name="rows")
    with pytest.raises(UserError, match="rows: rows of features are read by one process as fast; leave --ray out"):
        together.shared(data)


def test_thumbnails_come_back(photos: Path, together: Together) -> None:
    shared, _ = together.shared(read(photos), thumbnails=True)
    assert (shared.thumbnail("00.png") or b"").startswith(b"\xff\xd8")


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on(photos: Path, tmp_path: Path, model_folder: Path) -> None:
    """The command is killed when the first rows are in; given again, it makes the index that one process makes."""
    words = [sys.executable, "-c", SMALL_SHARES, "index", str(photos), "--model", str(model_folder)]
    words += ["--precision", "float32"]
    settings = os.environ | {"RUNGWISE_CACHE": str(tmp_path / "cache")}
    out = [*words, "--out", str(tmp_path / "shared"), "--ray", "--workers", "2"]
    halting = settings | {"HALT": "1"}
    with subprocess.Popen(out, env=halting, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert b"written\n" in process.stdout, "lines until then"
        process.kill()
    then = len(Index.open(tmp_path / "shared"))
    assert 0 < then < COUNT - 2
    said = subprocess.run(out, env=settings, capture_output=True, text=True, check=True)
    assert f"{COUNT - 2 - then} added, 0 changed, 0 removed, {then} unchanged" in said.stdout
    assert "Warning" not in said.stderr
    assert "ray" not in said.stderr
    other = settings | {"RUNGWISE_CACHE": str(tmp_path / "another cache")}
    subprocess.run([*words, "--out", str(tmp_path / "one")], env=other, capture_output=True, check=True)
    assert rows_of(Index.open(tmp_path / "shared")) == rows_of(Index.open(tmp_path / "one"))


SMALL_SHARES = """
import os, signal, sys
from rungwise.cli import main
from rungwise.index.update import _workers
from rungwise.index.update import Update

_workers._SHARE, _workers._SECONDS, write = 4, 0.0, Update._write

def kill_helpers():
    # The actors that Ray Data starts for itself, which are named by their classes.
    parents, names = {}, {}
    for one in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(one)] = int(open(f"/proc/{one}/stat").read().rpartition(")")[2].split()[1])
            names[int(one)] = open(f"/proc/{one}/cmdline").read()
        except OSError:
            continue
    for pid, name in names.items():
        above = pid
        while above != os.getpid() and above in parents:
            above = parents[above]
        if above == os.getpid() and name.startswith("ray::") and "Actor" in name:
            os.kill(pid, signal.SIGKILL)
            print("killed", name, flush=True)

def writing(*words):
    write(*words)
    if os.environ.pop("KILL", ""):
        kill_helpers()
    if "HALT" in os.environ:
        print("written", flush=True)
        signal.pause()

Update._write = writing
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_helpers_of_ray_that_are_killed_are_one_line(photos: Path, tmp_path: Path, model_folder: Path) -> None:
    """The command goes on, or ends in one line and goes on when it is given again; Ray prints nothing."""
    words = [sys.executable, "-c", SMALL_SHARES, "index", str(photos), "--model", str(model_folder)]
    words += ["--precision", "float32", "--out", str(tmp_path / "index"), "--ray", "--workers", "2"]
    settings = os.environ | {"RUNGWISE_CACHE": str(tmp_path / "cache")}
    said = subprocess.run(words, env=settings | {"KILL": "1"}, capture_output=True, text=True, check=False)
    assert "killed" in said.stdout
    assert "Traceback" not in said.stdout + said.stderr
    lines = said.stderr.splitlines()
    if said.returncode:
        assert said.returncode == 2
        assert len(lines) == 1, said.stderr
        assert "; what is in the index stays, and the same command goes on from there" in lines[0]
        subprocess.run(words, env=settings, capture_output=True, check=True)
    else:
        assert not [line for line in lines if not line.startswith("pictures ")], said.stderr
    assert len(Index.open(tmp_path / "index")) == COUNT - 2
