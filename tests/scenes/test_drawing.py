from itertools import combinations, product

import numpy as np
import pytest

from rungwise.scenes import Scene, SceneObject
from rungwise.scenes._description import COLOURS, SHAPES, SIZES, TEXTURES
from rungwise.scenes._drawing import BACKGROUNDS, INK, draw_scene


def pixels(scene, side):
    return np.asarray(draw_scene(scene, side), dtype=np.int16)


def alone(shape="circle", colour="red", size="small", texture="plain", background=0):
    return Scene((SceneObject(shape, colour, size, texture, 0.5, 0.5),), background)


@pytest.mark.parametrize("side", [32, 64, 101, 160])
def test_side_is_as_asked(side):
    assert pixels(alone(), side).shape == (side, side, 3)


def test_objects_stay_within_their_extent():
    empty = pixels(Scene((), 0), 160)
    for shape, size in product(SHAPES, SIZES):
        drawn = np.argwhere((pixels(alone(shape, size=size), 160) != empty).any(axis=2))
        extent = 32 if size == "small" else 64
        widths = np.ptp(drawn, axis=0) + 1
        assert (widths <= extent).all()
        assert (widths > 0.8 * extent).all()
        assert (np.abs(drawn.mean(axis=0) - 79.5) < 0.13 * extent).all()


def test_place_is_from_the_left_and_from_the_top():
    empty = pixels(Scene((), 0), 100)
    scene = Scene((SceneObject("square", "blue", "small", "plain", 0.2, 0.7),))
    row, column = np.argwhere((pixels(scene, 100) != empty).any(axis=2)).mean(axis=0)
    assert abs(column - 19.5) < 1
    assert abs(row - 69.5) < 1


def test_plain_objects_show_their_ink():
    for shape, colour in product(SHAPES, COLOURS):
        assert tuple(pixels(alone(shape, colour, "large"), 160)[80, 80]) == INK[colour]


def test_hollow_objects_show_the_background():
    for shape in SHAPES:
        assert (pixels(alone(shape, texture="hollow"), 160)[80, 80] > 200).all()


def test_inks_are_well_apart():
    assert min(np.abs(np.subtract(INK[a], INK[b])).sum() for a, b in combinations(COLOURS, 2)) > 80
    assert all(min(end) > 200 for ends in BACKGROUNDS for end in ends)


@pytest.mark.parametrize("side", [64, 160])
def test_every_appearance_looks_different(side):
    for size in SIZES:
        looks = {
            key: pixels(alone(*key[:2], size, key[2]), side) for key in product(SHAPES, ("red", "black"), TEXTURES)
        }
        inside = (2 * side // 5, 2 * side // 5)
        for a, b in combinations(looks, 2):
            assert np.abs(looks[a] - looks[b]).sum() / (3 * inside[0] * inside[1]) > 1, (a, b, size)


def test_edges_are_antialiased():
    values = np.unique(pixels(alone("circle", "black"), 160)[:, :, 0])
    assert len(values) > 40
