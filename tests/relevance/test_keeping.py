"""What sources computed is made once: found by all that it depends on, made anew when in doubt.

Also tests rungwise.relevance.config._cache.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.relevance import Cascade, Degrees, TfIdf
from rungwise.relevance.config import KINDS, Building, source_config
from rungwise.relevance.config import _words as word_sources
from rungwise.relevance.config._cache import Recipe, files_hash, made_once
from rungwise.relevance.config._models import PairModelConfig
from rungwise.relevance.precomputed import CachedPairRows, CachedVectors, kept_rows
from rungwise.relevance.storage import CachedSource, KeptFolder

CAPTIONS = ("a black dog runs on grass", "a dog is running", "a black cat sleeps", "a man rides a red bicycle")
DATA = ImageCaptions(tuple("abc"), CAPTIONS, np.array([0, 0, 1, 2]), splits=("train", "train", "val"), name="these")


class Told(list[str]):
    """Lines that were said."""

    def building(self, folder: Path, **more: object) -> Building:
        return Building(cache=folder / "relevance", say=self.append, **more)  # type: ignore[arg-type]

    @property
    def made(self) -> int:
        return sum(", made in " in line for line in self)

    @property
    def found(self) -> int:
        return sum(", found in " in line for line in self)


def glove(folder: Path, scale: float = 1.0) -> Path:
    draw = np.random.default_rng(0)
    words = sorted({word for text in CAPTIONS for word in text.split()})
    rows = (f"{word} {' '.join(f'{scale * value:.4f}' for value in draw.standard_normal(4))}\n" for word in words)
    path = folder / f"glove{scale:g}.txt"
    path.write_text("".join(rows))
    return path


@pytest.mark.parametrize("kind", ["cider-d", "cider", "tfidf", "cbow"])
def test_a_second_run_finds_what_the_first_made(kind: str, tmp_path: Path) -> None:
    said = Told()
    config = source_config({"kind": kind, **({"vectors": str(glove(tmp_path))} if kind == "cbow" else {})})
    plain = config.build(DATA)
    first, second = (config.build(DATA, building=said.building(tmp_path)) for _ in range(2))
    assert (said.made, said.found) == (1, 1)
    for source in (first, second):
        np.testing.assert_array_equal(source.dense(), plain.dense())
        assert source.content_hash() == plain.content_hash()
    assert type(second) is not type(plain)


@pytest.mark.parametrize(
    "other",
    [
        replace(DATA, captions=("a black dog runs", *CAPTIONS[1:])),
        replace(DATA, image_of_caption=np.array([0, 1, 1, 2])),
        replace(DATA, image_ids=tuple("abcd"), splits=("train", "train", "val", "val")),
        {"kind": "tfidf", "orders": 2},
        {"kind": "tfidf", "tokenizer": "unicode"},
        {"kind": "tfidf", "tokenizer": "icu"},
        {"kind": "tfidf", "stem": "english"},
        {"kind": "tfidf", "leave_one_out": True},
        {"kind": "tfidf", "frequencies": "train"},
    ],
)
def test_what_differs_is_made(other: ImageCaptions | dict, tmp_path: Path) -> None:
    said = Told()
    # Without a split, so that words are counted in all captions unless they are told otherwise.
    source_config({"kind": "tfidf", "frequencies": "collection"}).build(DATA, building=said.building(tmp_path))
    options = {"kind": "tfidf", "frequencies": "collection"} | (other if isinstance(other, dict) else {})
    data = other if isinstance(other, ImageCaptions) else DATA
    got = source_config(options).build(data, building=said.building(tmp_path))
    assert (said.made, said.found) == (2, 0)
    np.testing.assert_array_equal(got.dense(), source_config(options).build(data).dense())


def test_words_counted_elsewhere_are_another_entry(tmp_path: Path) -> None:
    said, part = Told(), DATA.split("val")
    other = replace(DATA, captions=("no dog at all", *CAPTIONS[1:]))
    for whole in (DATA, other, DATA):
        told = said.building(tmp_path, whole=whole, frequencies="train")
        got = source_config("cider-d").build(part, building=told)
        np.testing.assert_array_equal(
            got.dense(), source_config("cider-d").build(part, building=replace(told, cache=None)).dense()
        )
    assert (said.made, said.found) == (2, 1)


def test_vectors_know_the_file_and_not_which_captions_stand_for_an_image(tmp_path: Path) -> None:
    said, file = Told(), glove(tmp_path)
    for options in ({"reference": "mean"}, {"reference": "max"}, {"leave_one_out": True}):
        config = source_config({"kind": "cbow", "vectors": str(file), **options})
        got = config.build(DATA, building=said.building(tmp_path))
        np.testing.assert_array_equal(got.dense(), config.build(DATA).dense())
        assert got.content_hash() == config.build(DATA).content_hash()
    assert (said.made, said.found) == (1, 2)
    moved = file.rename(tmp_path / "moved.txt")
    source_config({"kind": "cbow", "vectors": str(moved)}).build(DATA, building=said.building(tmp_path))
    assert (said.made, said.found) == (1, 3)
    again = source_config({"kind": "cbow", "vectors": str(glove(tmp_path, 2.0))})
    again.build(DATA, building=said.building(tmp_path))
    assert (said.made, said.found) == (2, 3)
    with pytest.raises(UserError, match="nowhere.txt"):
        source_config({"kind": "cbow", "vectors": str(tmp_path / "nowhere.txt")}).build(
            DATA, building=said.building(tmp_path)
        )


def test_sources_within_sources_are_found(tmp_path: Path) -> None:
    said = Told()
    config = source_config({"kind": "combine", "of": ["tfidf", "cider-d"], "how": "mean"})
    first, second = (config.build(DATA, building=said.building(tmp_path)).dense() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    of_words = [line for line in said if line.startswith("relevance: tfidf")]
    assert [", made in " in line for line in of_words] == [True, False]
    assert ", found in " in of_words[1]


def test_a_restored_source_chooses_the_pairs_of_a_cascade(tmp_path: Path) -> None:
    told = Told().building(tmp_path)
    source_config("tfidf").build(DATA, building=told)
    coarse = source_config("tfidf").build(DATA, building=told)
    assert isinstance(coarse, CachedPairRows)
    fine = source_config({"kind": "cbow", "vectors": str(glove(tmp_path))})
    for _ in range(2):
        words = fine.build(DATA, building=told)
    assert isinstance(words, CachedVectors)
    made = Cascade(coarse, words, threshold=0.1)
    expected = Cascade(source_config("tfidf").build(DATA), fine.build(DATA), threshold=0.1)  # type: ignore[arg-type]
    np.testing.assert_array_equal(made.dense(), expected.dense())
    assert made.content_hash() == expected.content_hash()


def test_what_is_damaged_is_made_anew(tmp_path: Path) -> None:
    said = Told()
    expected = source_config("tfidf").build(DATA, building=said.building(tmp_path)).dense()
    [entry] = (tmp_path / "relevance").glob("tfidf-*")
    (entry / "columns.npy").write_bytes(b"nothing")
    got = source_config("tfidf").build(DATA, building=said.building(tmp_path)).dense()
    np.testing.assert_array_equal(got, expected)
    [line] = [line for line in said if "made anew, since what was kept cannot be used" in line]
    assert "columns.npy: altered or damaged" in line
    source_config("tfidf").build(DATA, building=said.building(tmp_path))
    assert (said.made, said.found) == (2, 1)
    assert all("\n" not in line for line in said)


def test_a_place_that_cannot_be_written_costs_time_alone(tmp_path: Path) -> None:
    said = Told()
    (tmp_path / "relevance").write_text("a file stands here")
    source_config("tfidf").build(DATA, building=said.building(tmp_path)).dense()
    assert "made in" in said[-1]
    assert "not kept: " in said[-1]
    assert (tmp_path / "relevance").read_text() == "a file stands here"


def made() -> Degrees:
    return TfIdf(DATA.captions, DATA.image_of_caption)


def restored(kept: CachedSource) -> Degrees:
    return CachedPairRows(kept, DATA.captions, DATA.image_of_caption)


RECIPE = Recipe({}, kept_rows, restored)


def test_what_another_run_made_in_the_meantime_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, making = Told(), KeptFolder.making

    @contextmanager
    def after_another(self: KeptFolder, key: str) -> Iterator[None]:
        monkeypatch.setattr(KeptFolder, "making", making)
        made_once("tfidf", DATA, RECIPE, tmp_path, made, said.append)
        with self.making(key):
            yield

    monkeypatch.setattr(KeptFolder, "making", after_another)
    found = made_once("tfidf", DATA, RECIPE, tmp_path, made, said.append)
    assert (said.made, said.found) == (1, 1)
    np.testing.assert_array_equal(found.dense(), made().dense())


@pytest.mark.slow
def test_two_runs_at_once_make_it_once(tmp_path: Path) -> None:
    said, begun, released = Told(), threading.Event(), threading.Event()
    results: list[Degrees] = []

    def make() -> Degrees:
        begun.set()
        released.wait()
        return made()

    def run() -> None:
        results.append(made_once("tfidf", DATA, RECIPE, tmp_path, make, said.append))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    released.set()
    for thread in threads:
        thread.join()
    assert (said.made, said.found) == (1, 2)
    for one in results:
        np.testing.assert_array_equal(one.dense(), made().dense())


def test_sources_that_are_quick_say_that_they_were_made(tmp_path: Path) -> None:
    said = Told()
    labelled = replace(DATA, labels=(("pets",), ("pets",), ("sport",)))
    source_config("labels").build(labelled, building=said.building(tmp_path))
    assert said[0].startswith("relevance: labels of these, 4 captions, made in ")
    assert not (tmp_path / "relevance").exists()


def test_the_names_of_entries_fit_every_source() -> None:
    from rungwise.relevance.storage._cache import _ENTRY

    assert all(_ENTRY.fullmatch(f"{kind}-{'0' * 16}") for kind in KINDS)


def test_files_hash_is_of_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a").write_text("one")
    first = files_hash(tmp_path)
    (tmp_path / "inner" / "a").rename(tmp_path / "inner" / "b")
    second = files_hash(tmp_path)
    (tmp_path / "inner" / "b").write_text("two")
    assert len({first, second, files_hash(tmp_path)}) == 3


def test_no_words_are_counted_where_they_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told().building(tmp_path)
    expected = source_config("cider-d").build(DATA, building=told).dense()

    def refuse(text: str) -> list[str]:
        raise AssertionError(text)

    monkeypatch.setitem(word_sources.TOKENISERS, "ptb", refuse)
    np.testing.assert_array_equal(source_config("cider-d").build(DATA, building=told).dense(), expected)


def test_pairs_that_a_model_scored_are_kept_in_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path | None] = []

    def built(config: object, data: object, building: object, progress: object, cache: Path | None) -> Degrees:
        asked.append(cache)
        return TfIdf(DATA.captions, DATA.image_of_caption)

    monkeypatch.setattr(PairModelConfig, "cross_encoder", built)
    options = {"kind": "cross-encoder", "model": "someone/model", "scale": "sigmoid"}
    said = Told()
    source_config(options).build(DATA)
    source_config(options).build(DATA, building=said.building(tmp_path))
    source_config(options | {"cache": str(tmp_path / "mine")}).build(DATA, building=said.building(tmp_path))
    assert asked == [None, tmp_path / "pair_scores", tmp_path / "mine"]
    assert f"scores are kept in {tmp_path / 'pair_scores'}" in said[0]
