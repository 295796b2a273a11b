"""Shards, joined, are to the bit what all queries at once give; killed runs go on; what is damaged is made again."""

import signal
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError, digest_of_json
from rungwise.core.compute import OnWorkers, cluster, in_turn
from rungwise.relevance import CIDEr, CIDErD, Labels, TfIdf, write_degrees
from rungwise.relevance.config import KINDS
from rungwise.relevance.embedding import VectorSource
from rungwise.relevance.embedding import _base as vectors
from rungwise.relevance.lexical import _base as base
from rungwise.relevance.precomputed import prepare, remove, write_in_shards
from rungwise.relevance.precomputed._shards import edges_of
from rungwise.relevance.storage import KeptFolder
from rungwise.similarity import unit_rows
from tests.relevance.lexical.test_cider import random_collection

IMAGES = 64


class Embedded(VectorSource):
    """Vectors by the hash of a text, equal for equal texts."""

    fingerprint = "embedded"

    @cached_property
    def vectors(self):
        rows = [np.random.default_rng(list(text.encode())).normal(size=48) for text in self.captions]
        return unit_rows(np.array(rows, np.float32))


def collection():
    """Captions that are often equal, of images with none up to a dozen captions."""
    texts, owners = random_collection(captions=300, images=60, words=7)
    texts[20:40] = texts[:20]
    owners[owners == 3] = 4
    return texts, owners


SOURCES = {
    "cider-d": lambda *data: CIDErD(*data, tokenizer=str.split, images=IMAGES),
    "cider-d, apart": lambda *data: CIDErD(*data, tokenizer=str.split, images=IMAGES, leave_one_out=True),
    "cider": lambda *data: CIDEr(*data, tokenizer=str.split, images=IMAGES),
    "tfidf, max": lambda *data: TfIdf(*data, tokenizer=str.split, images=IMAGES),
    "tfidf, mean": lambda *data: TfIdf(
        *data, tokenizer=str.split, images=IMAGES, reference="mean", leave_one_out=True, orders=2
    ),
    "tfidf, paired": lambda *data: TfIdf(
        *data, tokenizer=str.split, images=IMAGES, reference=np.r_[-1, 5:298:5, np.arange(4)]
    ),
    "vectors": lambda *data: Embedded(*data, images=IMAGES),
    "vectors, apart": lambda *data: Embedded(*data, images=IMAGES, reference="mean", leave_one_out=True),
}


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def at_once(source, place, k, direction):
    place.mkdir()
    write_degrees(source, place, k=k, direction=direction)
    return files_of(place)


def sharded(source, place, shards, *, k=5, direction="t2i", share=in_turn, say=lambda _: None):
    folder = place / f"degrees {len(list(place.iterdir()))}"
    folder.mkdir()
    made = write_in_shards(
        source, folder, place / "work", k=k, direction=direction, shards=shards, share=share, say=say
    )
    return files_of(folder), made


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("name", SOURCES)
def test_shards_are_to_the_bit_what_one_run_writes(name, direction, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "_QUERIES", 5)
    monkeypatch.setattr(base, "_IMAGES", 25)
    source = SOURCES[name](*collection())
    for k, shards in ((1, 3), (7, 1), (7, 7), (1000, 2)):
        expected = at_once(source, tmp_path / f"at once {k}, {shards}", k, direction)
        found, made = sharded(source, tmp_path, shards, k=k, direction=direction)
        assert found == expected
        assert [shard.number for shard in made] == list(range(1, shards + 1))
        assert sum(shard.queries for shard in made) == (IMAGES if direction == "i2t" else 300)


def test_the_best_of_blocks_of_images_are_the_best_of_all(monkeypatch):
    monkeypatch.setattr(base, "_IMAGES", 9)
    source = SOURCES["cider-d, apart"](*collection())
    for direction, matrix in (("i2t", source.dense()), ("t2i", source.dense().T)):
        expected = np.argsort(-matrix, axis=1, kind="stable")[:, :12]
        np.testing.assert_array_equal(source.topk(12, direction)[0], expected)
        np.testing.assert_array_equal(source.topk(12, direction, range(10, 31))[0], expected[10:31])


@pytest.mark.slow
def test_workers_give_the_same_bits(two_workers: None, tmp_path):
    for name in ("cider-d, apart", "tfidf, paired", "vectors"):
        place = tmp_path / name
        place.mkdir()
        source = SOURCES[name](*collection())
        with cluster() as ray:
            found, _ = sharded(source, place, 3, share=OnWorkers(ray))
        assert found == at_once(source, place / "at once", 5, "t2i")


@pytest.mark.slow
def test_weights_that_workers_make_have_the_same_bits(two_workers: None, monkeypatch):
    texts, owners = collection()
    expected = CIDErD(texts, owners)
    monkeypatch.setattr("rungwise.relevance.lexical._ngram_counts.CAPTIONS", 90)
    with cluster() as ray:
        found = CIDErD(texts, owners, share=OnWorkers(ray))
    assert found.content_hash() == expected.content_hash()
    assert found.weights.answers.tobytes() == expected.weights.answers.tobytes()


def noting(ranked):
    """A share that notes which queries are ranked."""

    def share(work, common, parts):
        def noted():
            for part in parts:
                ranked.append(part)
                yield part

        return in_turn(work, common, noted())

    return share


def goes_on(tmp_path):
    """A run whose first shard of three stands ranks the others alone, and gives what one run gives."""
    ranked, said = [], []
    source = SOURCES["cider-d"](*collection())
    found, made = sharded(source, tmp_path, 3, share=noting(ranked), say=said.append)
    assert ranked == [range(100, 200), range(200, 300)]
    assert [shard.found for shard in made] == [True, False, False]
    assert "1 of 3 shards found" in said[0]
    assert found == at_once(source, tmp_path / "at once", 5, "t2i")


def test_a_run_that_was_interrupted_goes_on_where_it_was(tmp_path):
    def interrupted(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sharded(SOURCES["cider-d"](*collection()), tmp_path, 3, say=interrupted)
    goes_on(tmp_path)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path):
    """The driver is killed as soon as it has said that one shard stands."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.relevance.precomputed.test_shards import SOURCES, collection, sharded\n"
        "def killed(line):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "sharded(SOURCES['cider-d'](*collection()), Path(sys.argv[1]), 3, say=killed)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, cwd=Path(__file__).parents[3])
    assert ended.returncode == -signal.SIGKILL
    goes_on(tmp_path)


@pytest.mark.parametrize("damage", ["values", "indices", "cut", "no seal", "gone", "note"])
def test_a_damaged_shard_is_made_again(damage, tmp_path):
    source = SOURCES["cider-d"](*collection())
    expected, _ = sharded(source, tmp_path, 3)
    key = digest_of_json([source.content_hash(), 5, "t2i", 100, 200])
    place = KeptFolder(tmp_path / "work").place("shard", key)
    match damage:
        case "values" | "indices":
            file = place / f"{damage}.npy"
            bytes_ = bytearray(file.read_bytes())
            bytes_[-3] ^= 1
            file.write_bytes(bytes_)
        case "cut":
            (place / "values.npy").write_bytes((place / "values.npy").read_bytes()[:-8])
        case "no seal":
            (place / "SHA256SUMS").unlink()
        case "gone":
            (place / "indices.npy").unlink()
        case "note":
            (place / "kept.json").write_text("[]")
    ranked, said = [], []
    found, _ = sharded(source, tmp_path, 3, share=noting(ranked), say=said.append)
    assert ranked == [range(100, 200)]
    assert said[0].startswith("shard 2 of 3 is made again: ")
    assert found == expected


@pytest.mark.parametrize("change", [{"k": 6}, {"direction": "i2t"}, {"shards": 4}, {"source": "cider"}])
def test_shards_of_other_degrees_are_begun_anew(change, tmp_path):
    asked = {"source": "cider-d", "shards": 3, "k": 5, "direction": "t2i"}
    sources = {name: SOURCES[name](*collection()) for name in ("cider-d", "cider")}

    def run(source, shards, **how):
        return sharded(sources[source], tmp_path, shards, **how)

    run(**asked)
    asked |= change
    said, ranked = [], []
    found, made = run(**asked, say=said.append, share=noting(ranked))
    assert said[0].endswith("shards of other captions, options, --top, direction or number; begun anew")
    assert len(ranked) == asked["shards"] == len(made) == len(list((tmp_path / "work").glob("shard-*")))
    assert found == at_once(sources[asked["source"]], tmp_path / "at once", asked["k"], asked["direction"])


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "letters.txt").write_text("dear")
    for touch in (prepare, remove):
        with pytest.raises(UserError, match=r"holds 'letters.txt', which is no part of the shards"):
            touch(work)
    with pytest.raises(UserError, match=r"letters.txt"):
        sharded(SOURCES["cider-d"](*collection()), tmp_path, 2)
    assert (work / "letters.txt").read_text() == "dear"


def test_what_a_killed_run_was_writing_is_swept(tmp_path):
    draft = tmp_path / "work" / ".shard-0123456789abcdef.0123456789abcdef.partial"
    draft.mkdir(parents=True)
    prepare(tmp_path / "work")
    assert not draft.exists()


def test_shards_that_were_half_removed_are_no_strangers(tmp_path):
    (tmp_path / "work" / "shard-0123456789abcdef").mkdir(parents=True)
    prepare(tmp_path / "work")
    remove(tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_shards_end_where_blocks_end(monkeypatch):
    source = SOURCES["vectors"](*collection())
    assert edges_of(source, "i2t", 7) == [0, 64]
    assert edges_of(source, "t2i", 3) == [0, 128, 256, 300]
    with pytest.raises(UserError, match="shards must be at least 1, got 0"):
        edges_of(source, "t2i", 0)
    with pytest.raises(UserError, match="give consecutive ones among them"):
        source.topk(1, "t2i", range(0, 301))


def test_other_sources_are_refused(tmp_path):
    labels = Labels(["pets", "sport"], [0, 1])
    with pytest.raises(UserError, match="Labels cannot be ranked in shards"):
        sharded(labels, tmp_path, 2)
    assert {kind for kind, config in KINDS.items() if config.IN_SHARDS} == {
        "cider-d", "cider", "tfidf", "cbow", "bi-encoder"
    }  # fmt: skip


def test_more_shards_than_queries_are_as_many_as_queries(tmp_path):
    source = TfIdf(["a dog", "a cat"], [0, 1])
    _, made = sharded(source, tmp_path, 50, k=1)
    assert [shard.queries for shard in made] == [1, 1]
