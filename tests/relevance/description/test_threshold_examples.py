import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.relevance import Degrees
from rungwise.relevance.description import render_rungs, rungs, rungs_page


class Fixed(Degrees):
    """Degrees 0, 0.01, 0.02, ... of 6 images with 2 captions each."""

    image_of_caption = np.repeat(np.arange(6), 2)
    grid = (np.random.default_rng(0).permutation(72) / 100).reshape(6, 12).astype(np.float32)

    def __init__(self):
        super().__init__((6, 12))

    def block(self, images, captions):
        return self.grid[np.ix_(images, captions)]

    def options(self):
        return {}


@pytest.fixture
def data(tmp_path):
    paths = []
    for number in range(6):
        paths.append(tmp_path / f"{number}.png")
        Image.new("RGB", (20, 10), (40 * number, 0, 0)).save(paths[-1])
    return ImageCaptions(
        tuple(path.name for path in paths),
        tuple(f"caption {number} <i>" for number in range(12)),
        Fixed.image_of_caption,
        paths=tuple(paths),
    )


def others():
    own = np.arange(6)[:, None] == Fixed.image_of_caption[None, :]
    return Fixed.grid[~own]


def test_rungs_part_the_pairs_at_the_thresholds():
    cuts = [float(np.float32(0.5)), float(np.float32(0.2))]
    found = rungs(Fixed(), cuts, examples=100)
    assert [rung.share * 60 for rung in found] == pytest.approx(
        [(others() >= cuts[0]).sum(), ((others() < cuts[0]) & (others() >= cuts[1])).sum(), (others() < cuts[1]).sum()]
    )
    np.testing.assert_array_equal(np.concatenate([rung.degrees for rung in found]), np.sort(others())[::-1])
    for rung in found:
        np.testing.assert_array_equal(Fixed.grid[rung.images, rung.captions], rung.degrees)
        assert (Fixed.image_of_caption[rung.captions] != rung.images).all()


def test_examples_show_both_ends_of_a_rung():
    rung = rungs(Fixed(), [0.3], examples=4)[0]
    above = np.sort(others()[others() >= np.float32(0.3)])
    assert len(rung.degrees) == 4
    assert (rung.degrees[0], rung.degrees[-1]) == (above[-1], above[0])


def test_an_empty_rung_stays_and_is_said_to_be_empty(data):
    found = rungs(Fixed(), [5.0, 0.3])
    assert found[0].share == 0
    assert "No pair of the sample is on this rung" in rungs_page(found, data, "title")


@pytest.mark.parametrize("cuts", [[], [0.2, 0.5], [0.3, 0.3], [float("nan")]])
def test_thresholds_that_do_not_fall_are_refused(cuts):
    with pytest.raises(UserError, match="numbers that fall"):
        rungs(Fixed(), cuts)


@pytest.mark.parametrize("examples", [0, -1])
def test_rungs_without_examples_are_refused(examples):
    with pytest.raises(UserError, match=f"examples must be at least 1, got {examples}"):
        rungs(Fixed(), [0.3], examples=examples)


def test_half_a_character_is_shown_as_a_mark(data, tmp_path):
    """As JSON may hold one, and as the system gives names of files that are not UTF-8."""
    data = replace(
        data,
        image_ids=tuple(f"{name}\udcff" for name in data.image_ids),
        captions=tuple(f"{text} \ud83d!" for text in data.captions),
    )
    found = rungs(Fixed(), [0.3], examples=1)
    page = rungs_page(found, data, "title \udcff")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert "&lt;i&gt; ?!" in page
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    Console(width=120, file=file).print(render_rungs(found, data))
    file.seek(0)
    assert "<i> ?!" in file.read()


def test_the_page_stands_alone(data):
    page = rungs_page(rungs(Fixed(), [0.3], examples=3), data, "cider & co")
    assert page.count('src="data:image/jpeg;base64,') == 6
    assert "http" not in page
    assert "<script" not in page
    assert "cider &amp; co" in page
    assert "<i>" not in page
    assert re.search(r"caption \d+ &lt;i&gt;", page)


def test_a_picture_that_cannot_be_read_is_said_so(data):
    data.paths[0].write_bytes(b"not a picture")
    everything = rungs(Fixed(), [0.3], examples=100)
    page = rungs_page(everything, data, "title")
    assert "0.png" in page
    assert page.count("class=missing") == 10


def test_the_terminal_shows_ids_degrees_and_captions(data):
    console = Console(width=120, record=True)
    found = rungs(Fixed(), [0.3], examples=2)
    console.print(render_rungs(found, data))
    text = console.export_text()
    assert "rung 1: 0.3 and above" in text
    assert "rung 2: below 0.3" in text
    for rung in found:
        for image, caption, degree in zip(rung.images, rung.captions, rung.degrees, strict=True):
            assert f"{degree:.3f}" in text
            assert data.image_ids[image] in text
            assert data.captions[caption] in text
