"""Also tests rungwise.encoders.images._pipeline."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.data import Issue
from rungwise.data.pictures import load_picture
from rungwise.encoders import Preprocessing, computed_in
from rungwise.encoders.images import Backbone, ImageConfig, encoded, feature_rows, picture_features, pixel_rows
from rungwise.encoders.images._pipeline import Encoded

SMALL = "test_resnet.r160_in1k"
COUNT = 21


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Of several shapes and formats, one cut off, one missing, one twice."""
    draw = np.random.default_rng(0)
    paths = []
    for number in range(COUNT):
        form = ("png", "jpg")[number % 2]
        path = tmp_path / f"{number:02}.{form}"
        shape = ((40, 50), (90, 30), (33, 200))[number % 3]
        Image.fromarray(draw.integers(0, 256, (*shape, 3), dtype=np.uint8)).save(path)
        paths.append(path)
    paths[5].write_bytes(paths[5].read_bytes()[:300])
    paths[8].unlink()
    paths[13].write_bytes(paths[4].read_bytes())
    return paths


READABLE = [number for number in range(COUNT) if number not in (5, 8)]


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert after == request.param, "encoding leaves the setting as it was"


def side(**options: object) -> Backbone:
    torch.manual_seed(0)
    return Backbone(ImageConfig(SMALL, weights="random", size=32, **options)).eval()  # type: ignore[arg-type]


def one_by_one(backbone: Backbone, paths: list[Path]) -> torch.Tensor:
    """Each picture decoded, prepared and encoded by itself."""
    with torch.inference_mode():
        return torch.stack([backbone(backbone.preprocessing.apply(load_picture(path))[None])[0] for path in paths])


@pytest.mark.parametrize(
    ("options", "batch", "threads"),
    [
        ({}, 1, 1),
        ({}, 4, 3),
        ({"crops": "10C"}, 64, 3),
        ({"pool": "regions"}, 1, 3),
        ({"pool": "flatten"}, 4, 1),
        ({"crops": "RC"}, 64, 1),
    ],
    indirect=["threads"],
)
def test_rows_are_those_of_pictures_encoded_one_by_one(
    options: dict[str, object], batch: int, threads: int, pictures: list[Path], tmp_path: Path
) -> None:
    backbone = side(**options)
    done: list[int] = []
    rows = feature_rows(backbone, pictures, tmp_path / "cache", batch=batch, progress=done.append)
    assert rows.kept.tolist() == READABLE
    assert sum(done) == COUNT
    assert rows.computed == len(READABLE) - 1, "equal files are encoded once"
    assert [(issue.kind, Path(issue.where).name) for issue in rows.issues] == [
        ("unreadable picture", "05.jpg"),
        ("missing picture", "08.png"),
    ]
    expected = one_by_one(backbone, [pictures[number] for number in READABLE])
    found = rows.take(np.arange(len(READABLE)))
    assert found.shape[1:] == backbone.feature_shape
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    again = feature_rows(backbone, pictures[::-1], tmp_path / "cache", batch=batch)
    assert (again.computed, len(again)) == (0, len(READABLE))
    assert torch.equal(again.take(np.arange(len(again))), found.flip(0))


def test_features_without_a_cache_are_the_same(threads: int, pictures: list[Path]) -> None:
    backbone = side()
    sources = [path if number % 2 or number == 8 else path.read_bytes() for number, path in enumerate(pictures)]
    features, kept, issues = picture_features(backbone, sources, batch=4)
    assert kept.tolist() == READABLE
    assert [Path(issue.where).name for issue in issues] == ["05.jpg", "08.png"]
    expected = one_by_one(backbone, [pictures[number] for number in READABLE])
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)
    nothing, kept, _ = picture_features(backbone, [])
    assert nothing.shape == (0, backbone.features)
    assert not len(kept)


def test_bfloat16_has_rows_of_its_own_and_the_fingerprint_stays(pictures: list[Path], tmp_path: Path) -> None:
    backbone = side()
    exact = feature_rows(backbone, pictures, tmp_path / "cache")
    before = backbone.fingerprint()
    with computed_in("bfloat16"):
        half = feature_rows(backbone, pictures, tmp_path / "cache")
        again = feature_rows(backbone, pictures, tmp_path / "cache")
    assert (half.computed, again.computed) == (exact.computed, 0)
    assert backbone.fingerprint() == before
    everything = np.arange(len(READABLE))
    assert not torch.equal(half.take(everything), exact.take(everything))
    assert torch.cosine_similarity(half.take(everything), exact.take(everything)).min() > 0.99
    assert {folder.name.removesuffix("-2")[32:] for folder in (tmp_path / "cache" / "features").iterdir()} == {
        "",
        "-bfloat16",
    }


def test_auto_probes_the_first_pictures_that_can_be_read(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.encoders._precision.native_bfloat16", lambda device: True)
    seen: list[int] = []
    monkeypatch.setattr(
        "rungwise.encoders._precision.Computing._passes",
        lambda *arguments: bool(seen.append(len(arguments[2])) or True),
    )
    backbone = side()
    with computed_in("auto"):
        feature_rows(backbone, pictures[:10], tmp_path / "few")
        assert not seen, "too few to be worth it"
        feature_rows(backbone, pictures, tmp_path / "cache")
    assert seen == [16]
    with computed_in("auto"):
        feature_rows(backbone, pictures, tmp_path / "few")
        feature_rows(backbone, pictures[10:], tmp_path / "few")
    assert seen == [16], "where features in float32 are at hand, the others are computed alike"
    assert len(list((tmp_path / "few" / "features").iterdir())) == 1
    assert [folder.name[32:] for folder in (tmp_path / "cache" / "features").iterdir()] == ["-bfloat16-2"]


def test_pixels_with_room_are_kept_once_and_drawn_anew(threads: int, pictures: list[Path], tmp_path: Path) -> None:
    seen = Preprocessing(size=16, crop=0.5, crops="RC", mirrored=True)
    rows = pixel_rows(seen, pictures, tmp_path / "cache")
    everything = np.arange(len(rows))
    assert rows.kept.tolist() == READABLE
    expected = torch.stack([seen.apply(load_picture(pictures[number])) for number in READABLE])
    assert torch.equal(rows.take(everything), expected)
    torch.manual_seed(0)
    first = rows.visit(everything)
    assert first.shape == expected.shape
    assert not torch.equal(first, expected)
    assert not torch.equal(rows.visit(everything), first)
    torch.manual_seed(0)
    assert torch.equal(rows.visit(everything), first)
    assert pixel_rows(seen, pictures, tmp_path / "cache").computed == 0
    still = pixel_rows(Preprocessing(size=16, crop=0.5), pictures, tmp_path / "cache")
    assert still.computed == rows.computed, "other rows, which need less room"
    assert torch.equal(still.visit(everything), expected)


def test_work_is_begun_on_every_core_and_given_in_order(threads: int) -> None:
    """Each thread waits until all are at work; on one thread nobody is waited for."""
    together = threading.Barrier(threads)
    names = set()

    def prepare(position: int) -> torch.Tensor:
        if position < threads:
            together.wait()
        names.add(threading.current_thread().name)
        return torch.tensor(position)

    found = list(encoded(50, prepare, lambda some: some * 2, torch.device("cpu"), batch=threads))
    assert [one.positions for one in found] == [[position] for position in range(50)]
    assert [one.values.tolist() for one in found if one.values is not None] == [
        [2 * position] for position in range(50)
    ]
    assert len(names) == threads


def test_each_thread_computes_on_one_core() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = []
        list(encoded(4, torch.tensor, lambda some: seen.append(torch.get_num_threads()) or some, torch.device("cpu")))
        fresh: list[int] = []
        thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
        thread.start()
        thread.join()
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
    assert fresh == [2], "threads that begin later have the usual number"


def test_an_error_of_the_network_is_raised(threads: int) -> None:
    def fails(some: torch.Tensor) -> torch.Tensor:
        raise MemoryError("no memory")

    with pytest.raises(MemoryError):
        list(encoded(10, torch.tensor, fails, torch.device("cpu"), batch=2))


def test_nobody_waits_for_work_that_is_given_up(threads: int) -> None:
    begun: list[int] = []

    def prepare(position: int) -> torch.Tensor:
        begun.append(position)
        return torch.tensor(position)

    for _ in encoded(10_000, prepare, lambda some: some, torch.device("cpu"), batch=threads):
        break
    assert len(begun) < 100


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_a_device_is_given_batches_in_order(batch: int, alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of GPUs, played on the processor: the same pictures, issues and gaps come out."""
    from rungwise.encoders.images import _pipeline as pipeline

    def prepare(position: int) -> torch.Tensor | Issue | None:
        if position % 7 == 3:
            return Issue("unreadable picture", str(position))
        return None if position % 7 == 5 else torch.tensor([position])

    def tell(parts: Iterator[Encoded]) -> tuple[list[int], list[int], list[int], int]:
        positions, values, issues, asked = [], [], [], 0
        for part in parts:
            positions += part.positions
            values += [] if part.values is None else part.values.ravel().tolist()
            issues += [position for position, _ in part.issues]
            asked += part.asked
        return positions, values, issues, asked

    cpu = torch.device("cpu")
    on_device = tell(pipeline._on_device(30, prepare, lambda some: some + 1, cpu, batch, alike))
    assert on_device == tell(encoded(30, prepare, lambda some: some + 1, cpu, batch=batch))
    assert on_device[3] == 30
    assert on_device[1] == [position + 1 for position in on_device[0]]


def test_features_do_not_depend_on_company_or_cores_to_the_last_bit(pictures: list[Path], tmp_path: Path) -> None:
    backbone, before = side(), torch.get_num_threads()
    found = {}
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            rows = feature_rows(backbone, pictures, tmp_path / f"all of {threads}")
            found[threads] = dict(zip(rows.kept.tolist(), rows.take(np.arange(len(rows))), strict=True))
        alone = {}
        for at in (0, 3, 20):
            rows = feature_rows(backbone, [pictures[at]], tmp_path / f"only {at}")
            alone[at] = rows.take(np.arange(1))[0]
        few = feature_rows(backbone, pictures[15:19], tmp_path / "few")
    finally:
        torch.set_num_threads(before)
    assert sorted(found[1]) == READABLE
    assert all(torch.equal(found[1][at], found[2][at]) for at in READABLE)
    assert all(torch.equal(found[1][at], feature) for at, feature in alone.items())
    assert all(torch.equal(found[1][15 + at], few.take(np.array([at]))[0]) for at in range(4))
