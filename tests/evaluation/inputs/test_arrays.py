"""What an auditor brings in files.

Also tests rungwise.evaluation.inputs._array_files.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from rungwise.core import UserError, limited
from rungwise.data import ImageCaptions
from rungwise.evaluation.inputs import (
    owners_by_count,
    read_embeddings,
    read_owners,
    read_relevance,
    read_similarity,
    split_key,
)
from rungwise.relevance import CIDErD, Labels
from tests.odd_files import on_posix, put

VECTORS = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    return path


def test_embeddings_are_the_same_in_every_kind_of_file(tmp_path):
    pa = pytest.importorskip("pyarrow")
    np.save(tmp_path / "v.npy", VECTORS)
    np.savez(tmp_path / "v.npz", only=VECTORS)
    save_file({"image": torch.from_numpy(VECTORS), "text": torch.zeros(2, 2)}, tmp_path / "v.safetensors")
    parquet(tmp_path / "v.parquet", embedding=VECTORS.tolist(), note=["x"] * 6)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 4)
    parquet(tmp_path / "f.parquet", whatever=fixed)
    for name, key in (("v.npy", None), ("v.npz", None), ("v.safetensors", "image"), ("v.parquet", None)):
        np.testing.assert_allclose(read_embeddings(tmp_path / name, key).vectors, VECTORS)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "f.parquet").vectors, VECTORS)
    assert isinstance(read_embeddings(tmp_path / "v.npy").vectors, np.memmap)


def test_bfloat16_is_read(tmp_path):
    save_file({"v": torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16)}, tmp_path / "v.safetensors")
    assert read_embeddings(tmp_path / "v.safetensors").vectors.tolist() == [[1.0, 2.0]]


def test_ids_put_vectors_in_the_order_of_the_data(tmp_path):
    file = parquet(tmp_path / "v.parquet", id=list("cbadef"), vector=VECTORS.tolist())
    ordered = read_embeddings(file).ordered(["a", "b", "c"], "images")
    np.testing.assert_allclose(ordered.vectors, VECTORS[[2, 1, 0]])
    with pytest.raises(UserError, match=r"has no vector for 1 of 2 images, the first is 'z'"):
        read_embeddings(file).ordered(["a", "z"], "images")


def test_lengths_are_told_where_they_are_not_one(tmp_path):
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    for vectors, warned in ((unit, False), (unit * 3, True), (unit * np.arange(1, 7)[:, None], True)):
        np.save(tmp_path / "v.npy", vectors)
        found = read_embeddings(tmp_path / "v.npy")
        assert (found.warning is not None) == warned
    assert "lengths 1 to 6" in found.warning


@pytest.mark.parametrize(
    ("make", "key", "said"),
    [
        (lambda p: np.save(p / "v.npy", VECTORS[0]), None, r"v.npy: shape \(4,\) of float32 is not embeddings"),
        (lambda p: np.save(p / "v.npy", np.array([["a"]])), None, "v.npy: shape .* is not embeddings"),
        (lambda p: np.save(p / "v.npy", np.array([[None]])), None, "v.npy: cannot be read as numpy's"),
        (lambda p: (p / "v.npy").write_bytes(b""), None, "v.npy: cannot be read as numpy's"),
        (lambda p: np.savez(p / "v.npz", a=VECTORS, b=VECTORS), None, r"holds 2 arrays \(a, b\); say which"),
        (lambda p: np.savez(p / "v.npz", a=VECTORS), "c", "has no 'c'; there are a"),
        (lambda p: (p / "v.npz").write_bytes(b"PK\x03\x04 and no more"), None, "v.npz: cannot be read as numpy's"),
        (lambda p: np.save(p / "v.npy", VECTORS), "c", "holds one array without a name; leave out 'c'"),
        (lambda p: (p / "v.safetensors").write_bytes(b"no"), None, "cannot be read as safetensors"),
        (
            lambda p: parquet(p / "v.parquet", vector=[[1.0], [1.0, 2.0]]),
            None,
            "row 1: a vector of 2 where row 0 has 1",
        ),
        (lambda p: parquet(p / "v.parquet", vector=[[1.0], None]), None, "is empty or has gaps"),
        (lambda p: parquet(p / "v.parquet", id=["a"], vector=[1.0]), None, "holds no lists of numbers"),
        (lambda p: parquet(p / "v.parquet", id=["a", "a"], vector=[[1.0], [2.0]]), None, "id 'a' stands twice"),
        (lambda p: (p / "v.csv").write_text("1"), None, "embeddings come as .npy"),
    ],
)
def test_a_mistake_in_a_file_gets_its_one_line(tmp_path, make, key, said):
    make(tmp_path)
    [file] = tmp_path.iterdir()
    with pytest.raises(UserError, match=said) as caught:
        read_embeddings(file, key)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named_by_its_row(tmp_path, value):
    broken = VECTORS.copy()
    broken[4, 2] = value
    np.save(tmp_path / "v.npy", broken)
    for read in (read_embeddings, read_similarity):
        with pytest.raises(UserError, match=r"v.npy, row 4: has a value that is not finite"):
            read(tmp_path / "v.npy")


def test_similarities_in_every_kind_of_file(tmp_path):
    np.save(tmp_path / "s.npy", VECTORS)
    np.savez(tmp_path / "s.npz", s=VECTORS)
    (tmp_path / "s.json").write_text(json.dumps(VECTORS.tolist()))
    (tmp_path / "s.jsonl").write_text("\n".join(json.dumps(row) for row in VECTORS.tolist()))
    for name in ("s.npy", "s.npz", "s.json", "s.jsonl"):
        np.testing.assert_allclose(read_similarity(tmp_path / name), VECTORS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[1, 2], [3]]", "row 1: has 1 values where row 0 has 2"),
        ("[[1, true]]", "row 0: a value is no number"),
        ('{"a": 1}', "is not a list of rows"),
        ("[[1, 2", r"s.json: not valid JSON \(Expecting ',' delimiter, column 7\)"),
        ("[[1, NaN]]", "row 0: has a value that is not finite"),
        (f"[[1, 2], [3, 1{'0' * 400}]]", "row 1: a value is beyond the range of floats"),
        (f"[[1{'0' * 5000}]]", r"s.json: not valid JSON \(a number of too many digits\)"),
        ("[" * 100_000, r"s.json: not valid JSON \(nested too deeply\)"),
    ],
)
def test_a_mistake_in_json_rows_is_named(tmp_path, text, said):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UserError, match=said):
        read_similarity(tmp_path / "s.json")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.safetensors", "a.parquet", "a.json", "a"])
def test_a_missing_file_is_called_missing(tmp_path, name):
    for read in (read_embeddings, read_similarity, read_owners, lambda path: read_relevance(path, (1, 1))):
        with pytest.raises(UserError, match=r"no such file or folder; correct the path$"):
            read(tmp_path / name)


def test_a_damaged_archive_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "s.npz", s=VECTORS)
    content = bytearray((tmp_path / "s.npz").read_bytes())
    content[60:120] = bytes(60)
    (tmp_path / "s.npz").write_bytes(content)
    with pytest.raises(UserError, match="s.npz: cannot be read as numpy's"):
        read_similarity(tmp_path / "s.npz")


def test_relevance_is_a_saved_source_or_a_matrix(tmp_path):
    source = Labels(["a", "b"], [0, 1, 1])
    source.save(tmp_path / "degrees")
    np.save(tmp_path / "r.npy", source.dense())
    np.testing.assert_array_equal(read_relevance(tmp_path / "degrees", (2, 3)).dense(), source.dense())
    np.testing.assert_array_equal(read_relevance(tmp_path / "r.npy", (2, 3)), source.dense())
    np.savez(tmp_path / "r.npz", a=np.zeros((9, 9)), b=source.dense())
    np.testing.assert_array_equal(read_relevance(tmp_path / "r.npz", (2, 3), "b"), source.dense())
    for name in ("degrees", "r.npy"):
        with pytest.raises(UserError, match="it is transposed"):
            read_relevance(tmp_path / name, (3, 2))
        with pytest.raises(UserError, match="give degrees of these data"):
            read_relevance(tmp_path / name, (2, 4))


def test_degrees_of_other_captions_are_refused(tmp_path):
    data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    CIDErD(data.captions, data.image_of_caption).save(tmp_path / "degrees")
    assert read_relevance(tmp_path / "degrees", (2, 2), data=data).shape == (2, 2)
    other = replace(data, captions=("a dog", "a fox"))
    with pytest.raises(UserError, match=r"degrees of 2 images and 2 captions, but .* or other ones \(hash"):
        read_relevance(tmp_path / "degrees", (2, 2), data=other)


def test_owners_of_captions(tmp_path):
    np.save(tmp_path / "o.npy", np.array([0, 0, 1]))
    (tmp_path / "o.json").write_text("[0, 0, 1]")
    (tmp_path / "o.txt").write_text("0\n0\n1\n")
    for name in ("o.npy", "o.json", "o.txt"):
        assert read_owners(tmp_path / name).tolist() == [0, 0, 1]
    for name, text, said in (
        ("a.txt", "0\n-1\n", r"a.txt, line 2: '-1' is no position"),
        ("a.json", "[0, -1]", "a.json, caption 1: -1 is negative"),
        ("b.json", "[0, 1.0]", "is not a list of whole numbers"),
        ("c.json", f"[0, {2**63}]", "c.json, caption 1: there is no image so far up"),
        ("c.txt", f"{2**63}\n", "c.txt, caption 0: there is no image so far up"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=said):
            read_owners(tmp_path / name)
    np.save(tmp_path / "f.npy", np.array([0.0]))
    with pytest.raises(UserError, match="give one whole number a caption"):
        read_owners(tmp_path / "f.npy")


def test_counts_that_do_not_agree_are_refused_and_an_exchange_is_called_so():
    assert owners_by_count(3, (2, 6)).tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(UserError, match="images and captions are exchanged"):
        owners_by_count(3, (6, 2))
    with pytest.raises(UserError, match="2 images with 3 captions each make 6, but 7 were given"):
        owners_by_count(3, (2, 7))
    with pytest.raises(UserError, match="at least 1"):
        owners_by_count(0, (2, 0))


def test_a_colon_in_a_file_s_name_is_no_key(tmp_path):
    file = tmp_path / "a.npy:b"
    file.touch()
    assert split_key(str(file)) == (file, None)


READERS = {
    "embeddings": read_embeddings,
    "similarity": read_similarity,
    "relevance": lambda path: read_relevance(path, (6, 4)),
    "owners": read_owners,
}


@on_posix
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.safetensors", "a.parquet", "a.json", "a.jsonl", "a.txt"])
def test_nothing_but_a_file_is_read(tmp_path, name):
    """tests/core/test_untrusted_files.py has all that is no file; a pipe shows that these readers go through it."""
    put(tmp_path / name, "pipe")
    for read in READERS.values():
        with pytest.raises(UserError, match=r"a\."):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "larger than any array"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 1000)}", "cut off"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-6, -4)}", "claims the shape"),
        ("{'descr': '<f4,<f4', 'fortran_order': False, 'shape': (6, 4)}", "holds records"),
        ("(" * 5000, "no header of an array"),
    ],
)
def test_headers_that_lie_take_no_memory(tmp_path, header, said):
    text = header.encode() + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + b"\0" * 96)
    for reader in READERS.values():
        with pytest.raises(UserError, match=rf"a.npy: cannot be read as numpy's \(.*{said}"):
            reader(tmp_path / "a.npy")


def test_an_archive_that_unpacks_beyond_the_limit_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros((1000, 1000)))
    with limited(unpacked_bytes=1 << 20), pytest.raises(UserError, match="7.6 MiB, where at most 1.0 MiB are read"):
        read_similarity(tmp_path / "a.npz")


def test_one_long_row_takes_no_memory_for_all_rows(tmp_path):
    (tmp_path / "s.json").write_text(f"[[{'1,' * 100_000}1]{',[1]' * 200_000}]")
    with pytest.raises(UserError, match="row 1: has 1 values where row 0 has 100001"):
        read_similarity(tmp_path / "s.json")


@pytest.mark.parametrize("content", ["9" * 5000, "1" * 20, "\u0661\n0", "-1", "1.0", "0x1"])
def test_owners_are_whole_numbers_of_a_sane_size(tmp_path, content):
    (tmp_path / "owners.txt").write_text(content)
    if content.startswith("\u0661"):
        assert read_owners(tmp_path / "owners.txt").tolist() == [1, 0]
        return
    with pytest.raises(UserError, match="line 1: .* is no position"):
        read_owners(tmp_path / "owners.txt")


@pytest.mark.parametrize(
    "header",
    [
        '{"a":{"dtype":"F32","shape":[1000000,1000000],"data_offsets":[0,4000000000000]}}',
        '{"a":{"dtype":"F32","shape":[18446744073709551615,18446744073709551615],"data_offsets":[0,16]}}',
        '{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[16,0]}}',
        '{"a":{"dtype":"F4","shape":[8,4],"data_offsets":[0,16]}}',
        '{"a":{"dtype":"C64","shape":[1,2],"data_offsets":[0,16]}}',
        "[" * 100_000,
        "{}",
    ],
)
def test_tensors_whose_header_lies_get_one_line(tmp_path, header):
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode() + b"\1" * 16)
    with pytest.raises(UserError, match=r"a\.safetensors") as caught:
        read_embeddings(tmp_path / "a.safetensors")
    assert "\n" not in str(caught.value)
