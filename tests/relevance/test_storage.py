import json

import numpy as np
import pytest

from rungwise.errors import UserError
from rungwise.relevance import CIDErD, TfIdf, load

CAPTIONS = ["a dog runs", "a red dog", "the cat sleeps", "a cat", "blue sky", "a dog and a cat"]
OWNERS = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def source():
    return CIDErD(CAPTIONS, OWNERS)


def test_all_pairs_come_back_memory_mapped(source, tmp_path):
    source.save(tmp_path / "degrees")
    stored = load(tmp_path / "degrees", expected=source)
    assert isinstance(stored._values, np.memmap)
    np.testing.assert_array_equal(stored.dense(), source.dense())
    np.testing.assert_array_equal(stored.block([3, 0, 0], [5, 1]), source.block([3, 0, 0], [5, 1]))
    np.testing.assert_array_equal(stored.topk(2, "t2i")[0], source.topk(2, "t2i")[0])
    np.testing.assert_array_equal(stored.image_of_caption, OWNERS)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("k", [1, 2, 99])
def test_the_best_come_back_and_others_read_as_0(source, tmp_path, direction, k):
    source.save(tmp_path / "best", k=k, direction=direction)
    stored = load(tmp_path / "best")
    matrix = source.dense() if direction == "i2t" else source.dense().T
    expected = np.zeros_like(matrix)
    best = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
    np.put_along_axis(expected, best, np.take_along_axis(matrix, best, axis=1), axis=1)
    expected = expected if direction == "i2t" else expected.T
    np.testing.assert_array_equal(stored.dense(), expected)
    rows, columns = [3, 1, 1], [5, 5, 0, 2]
    np.testing.assert_array_equal(stored.block(rows, columns), expected[np.ix_(rows, columns)])
    np.testing.assert_array_equal(stored.topk(k, direction)[0], best)
    other = "t2i" if direction == "i2t" else "i2t"
    with pytest.raises(UserError, match="of each query were kept"):
        stored.topk(1, other)


def test_a_stale_file_is_refused_naming_both_hashes(source, tmp_path):
    source.save(tmp_path / "degrees")
    for other in (
        CIDErD([*CAPTIONS[:-1], "something else"], OWNERS),
        CIDErD(CAPTIONS, [0, 0, 1, 1, 3, 2]),
        CIDErD(CAPTIONS, OWNERS, leave_one_out=True),
        CIDErD(CAPTIONS, OWNERS, tokenizer=list),
        TfIdf(CAPTIONS, OWNERS),
    ):
        with pytest.raises(UserError) as caught:
            load(tmp_path / "degrees", expected=other)
        assert source.content_hash()[:16] in str(caught.value)
        assert other.content_hash()[:16] in str(caught.value)
        assert "\n" not in str(caught.value)


def test_saving_again_replaces_but_never_something_else(source, tmp_path):
    source.save(tmp_path / "degrees", k=1)
    source.save(tmp_path / "degrees")
    assert not (tmp_path / "degrees/indices.npy").exists()
    (tmp_path / "photos").mkdir()
    with pytest.raises(UserError, match="holds no relevance degrees"):
        source.save(tmp_path / "photos")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["degrees", "photos"]


def test_damage_is_named(source, tmp_path):
    with pytest.raises(UserError, match="no relevance degrees here"):
        load(tmp_path / "nowhere")
    source.save(tmp_path / "degrees")
    header = tmp_path / "degrees/relevance.json"
    good = header.read_text()
    header.write_text(json.dumps(json.loads(good) | {"shape": [7, 6]}))
    with pytest.raises(UserError, match="does not fit"):
        load(tmp_path / "degrees")
    header.write_text(good[:20])
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")
    header.write_text(good)
    values = tmp_path / "degrees/values.npy"
    values.write_bytes(values.read_bytes()[:-8])
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")


def test_what_was_saved_says_what_it_is(tmp_path):
    source = TfIdf(["a red star", "a blue heart", "a red heart"], [0, 1, 1])
    source.save(tmp_path / "all")
    source.save(tmp_path / "best", k=1, direction="t2i")
    assert load(tmp_path / "all").title() == source.title() == f"TfIdf, hash {source.content_hash()[:16]}"
    assert load(tmp_path / "best").title() == f"{source.title()}, best 1 t2i"
