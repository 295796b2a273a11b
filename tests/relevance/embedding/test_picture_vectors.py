import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.relevance.embedding import read_picture_vectors, write_picture_vectors

DATA = ImageCaptions(("a", "b", "c"), (), np.array([]), name="these data")
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_what_was_written_is_read(tmp_path):
    write_picture_vectors(tmp_path / "v.npz", ROWS, "5eed", DATA.image_ids)
    found = read_picture_vectors(tmp_path / "v.npz")
    np.testing.assert_array_equal(found.vectors, ROWS)
    assert (found.model, found.ids) == ("5eed", DATA.image_ids)


def test_one_array_of_any_file_of_numbers_is_read(tmp_path):
    np.save(tmp_path / "v.npy", ROWS)
    np.savez(tmp_path / "v.npz", anything=ROWS)
    (tmp_path / "v.csv").write_text("\n".join(",".join(map(str, row)) for row in ROWS.tolist()))
    for name in ("v.npy", "v.npz", "v.csv"):
        found = read_picture_vectors(tmp_path / name)
        np.testing.assert_array_equal(found.vectors, ROWS)
        assert (found.model, found.ids) == ("", ())


def test_rows_are_found_by_id_or_by_their_place_in_the_whole(tmp_path):
    np.save(tmp_path / "v.npy", ROWS)
    part = DATA.select([2, 0])
    np.testing.assert_array_equal(read_picture_vectors(tmp_path / "v.npy").of(part, DATA, "v"), ROWS[[2, 0]])
    np.testing.assert_array_equal(read_picture_vectors(tmp_path / "v.npy").of(DATA, DATA, "v"), ROWS)
    write_picture_vectors(tmp_path / "v.npz", ROWS, "5eed", ("b", "x", "a"))
    found = read_picture_vectors(tmp_path / "v.npz")
    np.testing.assert_array_equal(found.of(DATA.select([0, 1]), DATA, "v"), ROWS[[2, 0]])
    with pytest.raises(UserError, match="no vector of 1 pictures of these data, such as 'c'"):
        found.of(DATA, DATA, "v")
    np.save(tmp_path / "two.npy", ROWS[:2])
    with pytest.raises(UserError, match="2 vectors for 3 pictures of these data"):
        read_picture_vectors(tmp_path / "two.npy").of(DATA, DATA, "v")
    with pytest.raises(UserError, match=r"2 vectors for 1 \(of 3\) pictures"):
        read_picture_vectors(tmp_path / "two.npy").of(DATA.select([0]), DATA, "v")


BAD = {
    "several arrays": {"a": ROWS, "b": ROWS},
    "a model of numbers": {"images": ROWS, "model": np.array(3)},
    "two models": {"images": ROWS, "model": np.array(["a", "b"])},
    "a long model": {"images": ROWS, "model": np.array("a" * 300)},
    "a model of two lines": {"images": ROWS, "model": np.array("a\nb")},
    "ids of numbers": {"images": ROWS, "image_ids": np.arange(3)},
    "two ids": {"images": ROWS, "image_ids": np.array(["a", "b"])},
    "an id twice": {"images": ROWS, "image_ids": np.array(["a", "b", "a"])},
    "three ranks": {"images": ROWS[None]},
    "texts": {"images": np.array([["a"]])},
    "objects": {"images": np.array([[None]], object)},
}


@pytest.mark.parametrize("said", BAD)
def test_what_are_no_vectors_is_refused_in_one_line(said, tmp_path):
    np.savez(tmp_path / "v.npz", **BAD[said], allow_pickle=True)
    with pytest.raises(UserError) as caught:
        read_picture_vectors(tmp_path / "v.npz")
    assert "v.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_place_of_another_ending_is_refused(tmp_path):
    with pytest.raises(UserError, match="written as .npz"):
        write_picture_vectors(tmp_path / "v.npy", ROWS, "", DATA.image_ids)
