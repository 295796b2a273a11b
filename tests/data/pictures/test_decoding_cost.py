import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rungwise.core import Limits, UserError, limited
from rungwise.data import inspect
from rungwise.data.files import TarMember
from rungwise.data.pictures import (
    contact_sheet,
    load_array,
    load_picture,
    read_header,
    thumbnail,
    thumbnail_pixels,
    upright_size,
)
from rungwise.data.pictures._decoding_cost import count_scans, decoding_cost
from tests.hostile import bombs

MOST = Limits().picture_work
LITTLE = MOST // 100
"""So that what is refused is small."""


def steps(data: bytes) -> int:
    return decoding_cost(io.BytesIO(data), MOST).steps


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"progressive": True, "subsampling": 0}])
def test_scans_of_usual_pictures_are_few(options: dict[str, object]) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 300, 3), dtype=np.uint8))
    data = bombs.encoded(noise, "JPEG", **options)
    assert count_scans(data) == (10 if options else 1)
    assert count_scans(data + b"\xff\xda" * 1000) == count_scans(data)  # after a picture phones may put a film
    assert steps(data) < MOST / 1000


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xff\xd8", b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe0\xff\xff", b"\xff" * 999]
)
def test_scans_of_nonsense_are_none(data: bytes) -> None:
    assert count_scans(data) == 0
    assert steps(data) < 100_000


def test_a_film_behind_a_picture_counts_nothing() -> None:
    large = Image.new("L", (4000, 4000))
    data = bombs.encoded(large, "JPEG")
    assert steps(data + b"\xff\xda" * 100_000) == steps(data)


@pytest.mark.parametrize("form", ["JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000"])
def test_usual_pictures_are_far_from_the_limit(form: str) -> None:
    data = bombs.encoded(Image.new("RGB", (1000, 800), "teal"), form)
    assert steps(data) < MOST / 1000
    for cut in (0, 1, 9, 20, 40, len(data) // 2, len(data) - 1):
        assert steps(data[:cut]) < MOST / 1000
    for at in range(0, min(len(data), 400), 3):
        assert steps(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]) >= 0


def refusing() -> dict[str, Callable[[Path], object]]:
    """Doors that refuse a picture by its name."""
    return {
        "load_picture": load_picture,
        "load_array": load_array,
        "read_header": read_header,
        "bytes": lambda path: load_picture(path.read_bytes(), name=str(path)),
        "smaller": lambda path: load_picture(path, shorter_side=8),
        "thumbnail": lambda path: thumbnail(path, 8),
        "likeness": thumbnail_pixels,
        "upright": lambda path: upright_size(path.read_bytes(), str(path)),
        "packed": lambda path: load_picture(TarMember(path, 0, path.stat().st_size, "bomb.img")),
    }


@pytest.mark.parametrize("kind", bombs.REFUSED)
def test_what_takes_long_is_refused_at_every_door(kind: str, tmp_path: Path) -> None:
    make, _, small = bombs.REFUSED[kind]
    path = tmp_path / "bomb.img"
    path.write_bytes(make(*small))
    with limited(picture_work=LITTLE):
        for read in refusing().values():
            with pytest.raises(UserError) as refused:
                read(path)
            said = str(refused.value)
            assert said.startswith(str(path))
            assert "\n" not in said
            if kind != "PNG of many texts":  # which Pillow refuses by itself
                assert f"or set RUNGWISE_MAX_PICTURE_WORK above {LITTLE}" in said


def test_a_limit_that_was_raised_lets_it_through() -> None:
    data = bombs.jpeg_scans(64, 2000)
    assert load_picture(data).shape == (3, 64, 64)


def test_collections_leave_it_out_by_name(tmp_path: Path) -> None:
    from tests.colour_model import colour_pictures

    data = colour_pictures(tmp_path / "photos", ["red", "blue"])
    data.paths[1].write_bytes(bombs.jpeg_scans(64, 2000))
    with limited(picture_work=LITTLE):
        found = [one for one in inspect(data).odd if one.kind == "unreadable picture"]
        assert contact_sheet(data, tmp_path / "sheet.png") == 0
    assert [one.where for one in found] == ["1-blue"]
    assert "scans of 4,096 pixels" in found[0].detail
