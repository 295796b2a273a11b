import random
import struct

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError, limited
from rungwise.core.formats import read_values
from tests.core.formats.test_mat import element, matrix


def cells(*values):
    found = np.empty((1, len(values)), object)
    found[0] = values
    return found


@pytest.mark.parametrize("packed", [False, True])
def test_values_are_those_that_scipy_wrote(tmp_path, packed):
    structures = np.zeros((1, 2), dtype=[("text", object), ("votes", object), ("inside", object)])
    structures[0, 0] = "a dog", np.array([[40.0, 8.0]]), cells("a", 2.0)
    structures[0, 1] = "ein Käfer, 犬", np.array([[1, -1]], np.int8), cells()
    values = {
        "all": structures,
        "numbers": np.arange(6.0).reshape(2, 3),
        "text": "note",
        "cells": cells("x", cells("y")),
    }
    scipy.io.savemat(tmp_path / "a.mat", values, do_compression=packed)
    found = read_values(tmp_path / "a.mat", [*values, "nothing"])
    assert list(found) == list(values)
    np.testing.assert_array_equal(found["numbers"], values["numbers"])
    assert found["text"] == "note"
    assert found["cells"] == ["x", ["y"]]
    first, second = found["all"]
    assert (first["text"], first["votes"].tolist(), second["votes"].tolist()) == ("a dog", [[40, 8]], [[1, -1]])
    assert second["text"] == "ein Käfer, 犬"
    assert (first["inside"][0], first["inside"][1].item(), second["inside"]) == ("a", 2, [])


@pytest.mark.parametrize("order", ["<", ">"])
def test_texts_as_matlab_writes_them_and_both_orders_of_bytes(tmp_path, order):
    header = b"MATLAB 5.0".ljust(124) + struct.pack(f"{order}H", 0x0100) + (b"IM" if order == "<" else b"MI")
    letters = "犬 dog".encode("utf-16-le" if order == "<" else "utf-16-be")
    wide = matrix(b"wide", (1, 5), letters, kind=4, stored=4, order=order)
    plain = matrix(b"plain", (1, 3), b"dog", kind=4, stored=1, order=order)
    (tmp_path / "a.mat").write_bytes(header + wide + plain)
    assert read_values(tmp_path / "a.mat", ["wide", "plain"]) == {"wide": "犬 dog", "plain": "dog"}


HEADER = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"


def cell_of(count, body):
    inside = element(6, struct.pack("<II", 1, 0)) + element(5, struct.pack("<2i", 1, count)) + element(1, b"c") + body
    return struct.pack("<II", 14, len(inside)) + inside


def nested(depth):
    body = matrix(b"", (1, 1), struct.pack("<d", 1.0))
    for _ in range(depth):
        body = cell_of(1, body)
    return body


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (cell_of(2**31 - 1, b""), "it ends before its 2147483647 parts"),
        (nested(40), "more than 16 deep"),
        (cell_of(1, element(9, b"12345678")), "an element of type 9 where one of type 14"),
        (matrix(b"c", (2, 2), b"abcd", kind=4, stored=1), "a text of several rows"),
        (matrix(b"c", (1, 4), b"\xff\xff\xff\xff", kind=4, stored=16), "a damaged MAT file"),
        (matrix(b"c", (1, 9), b"12345678"), "8 bytes of float64 for an array of shape"),
        (matrix(b"c", (1, 1), b"12345678", kind=5), "an array of class 5, which is neither"),
        (matrix(b"c", (1, -1), b"12345678"), "an array of shape"),
        (nested(1) * 2, "'c' stands twice"),
        (nested(1)[:-4], "it ends 4 bytes early"),
    ],
    ids=["too many", "too deep", "no array", "rows", "letters", "numbers", "class", "negative", "twice", "short"],
)
def test_damage_gets_one_line(tmp_path, body, said):
    (tmp_path / "a.mat").write_bytes(HEADER + body)
    with pytest.raises(UserError, match=said) as caught:
        read_values(tmp_path / "a.mat", ["c"])
    assert "\n" not in str(caught.value)


def test_bytes_that_were_changed_never_escape(tmp_path):
    structures = np.zeros((1, 3), dtype=[("text", object), ("votes", object)])
    structures[0, :] = [("a dog", 1.0), ("a cat", -1.0), ("a fox", 1.0)]
    scipy.io.savemat(tmp_path / "a.mat", {"all": structures})
    good = (tmp_path / "a.mat").read_bytes()
    draw = random.Random(0)
    refused = 0
    for _ in range(250):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            bad[draw.randrange(128, len(bad))] = draw.choice([0, 1, 14, 255, draw.randrange(256)])
        (tmp_path / "a.mat").write_bytes(bytes(bad)[: draw.choice([len(bad), draw.randrange(len(bad))])])
        try:
            read_values(tmp_path / "a.mat", ["all"])
        except UserError:
            refused += 1
    assert refused > 125


def test_more_than_a_file_of_texts_may_hold_is_refused_before_memory_is_taken(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"numbers": np.zeros((1, 1 << 20))}, do_compression=True)
    with limited(text_bytes=1 << 20), pytest.raises(UserError, match="a.mat"):
        read_values(tmp_path / "a.mat", ["numbers"])
