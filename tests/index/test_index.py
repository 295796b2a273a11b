"""Also tests rungwise.index.update._encoding, rungwise.index._reader and rungwise.index.layout.manifest: what an index
is made of.
"""

import errno
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rungwise.core import UserError, limited
from rungwise.core.disk import digest_of
from rungwise.core.formats import NpyWriter
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig, LinearHead, TextFeatureConfig
from rungwise.index import ExactStore, Index, Item, Manifest, Searcher, parse_where
from rungwise.index.maintenance import verify_index
from rungwise.index.stores import _vector_files as vector_files
from rungwise.index.stores import write_description
from rungwise.index.stores.exact._segments import SegmentsDescription, State
from rungwise.index.stores.exact._snapshot import ExactSnapshot, Segment
from rungwise.models import EncodedImages
from rungwise.models.joint import JointEmbedding, VSEConfig
from rungwise.similarity import Cosine, Order
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes

MIXED = ["red", "green", "blue", "red", "yellow"]


def vectors(index: Index) -> np.ndarray:
    rows = index.picture_store.get([item.id for item in index.items()])
    return np.stack([row.vector for row in rows.values()])


def one_line(error: pytest.ExceptionInfo[UserError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


def test_text_finds_pictures_and_ties_keep_their_order(index: Index) -> None:
    hits = Searcher(index, ColourModel()).search_text("something red", k=3)
    assert [hit.id for hit in hits[:2]] == ["0-red", "3-red"]
    assert hits[0].score == hits[1].score == pytest.approx(1)
    assert hits[2].score < 1


def test_picture_finds_pictures(index: Index) -> None:
    assert Searcher(index, ColourModel()).search_image(picture_bytes(COLOURS["blue"], "JPEG"), k=1)[0].id == "2-blue"


def test_more_like_this_leaves_itself_out_and_needs_no_model(index: Index) -> None:
    hits = index.similar("0-red", k=50)
    assert next(hit.id for hit in hits) == "3-red"
    assert sorted(hit.id for hit in hits) == ["1-green", "2-blue", "3-red", "4-yellow"]


def test_unknown_id_is_refused(index: Index) -> None:
    with pytest.raises(UserError) as error:
        index.similar("9-pink")
    assert "'9-pink'" in one_line(error)


def test_captions_are_found_and_equal_texts_stand_once(index: Index) -> None:
    captions = Searcher(index, ColourModel()).captions_for(picture_bytes(COLOURS["red"]), k=10)
    assert (captions[0].text, captions[0].ids) == ("a red square", ("0-red", "3-red"))
    assert len(captions) == 4


def test_collection_without_captions_answers_none(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED, captions=False)
    index = Index.build(data, ColourModel(), tmp_path / "index")
    assert Searcher(index, ColourModel()).captions_for(picture_bytes(COLOURS["red"])) == []


def test_ids_captions_and_paths_survive_a_round_trip(tmp_path: Path) -> None:
    photos = tmp_path / "Bilder für später"
    photos.mkdir()
    (photos / "犬.png").write_bytes(picture_bytes(COLOURS["red"]))
    data = ImageCaptions(
        ("犬/1 #?&",), ("ein 'Hund'", "\n", "ein 'Hund'"), np.zeros(3, int), paths=(photos / "犬.png",)
    )
    Index.build(data, ColourModel(similarity=Order()), tmp_path / "index", model_location="hub/ä")
    index = Index.open(tmp_path / "index")
    known = [replace(item, columns={}) for item in index.items()]
    assert known == [Item(data.image_ids[0], photos / "犬.png", data.captions, data.caption_ids, {})]
    assert (index.manifest.model_location, index.similarity) == ("hub/ä", Order())
    assert len(list(index.captions())) == 1
    assert index.item("犬/1 #?&").id == "犬/1 #?&"


def test_pictures_and_index_can_be_moved_together(tmp_path: Path) -> None:
    home = tmp_path / "home"
    Index.build(colour_pictures(home / "photos", MIXED), ColourModel(), home / "index")
    home.rename(tmp_path / "moved")
    assert all(item.path.is_file() for item in Index.open(tmp_path / "moved" / "index").items())


def test_index_moved_alone_loses_nothing_when_pictures_lie_elsewhere(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED)
    Index.build(data, ColourModel(), tmp_path / "a" / "index")
    shutil.move(tmp_path / "a" / "index", tmp_path / "index")
    assert all(item.path.is_file() for item in Index.open(tmp_path / "index").items())


def test_picture_whose_file_is_gone_is_still_found(index: Index) -> None:
    next(iter(index.items())).path.unlink()
    assert Searcher(index, ColourModel()).search_text("red", k=1)[0].id == "0-red"


def test_unreadable_pictures_are_counted_and_listed(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED)
    data.paths[0].write_bytes(data.paths[0].read_bytes()[:40])
    data.paths[2].unlink()
    done: list[int] = []
    index = Index.build(data, ColourModel(), tmp_path / "index", progress=done.append)
    assert [item.id for item in index.items()] == ["1-green", "3-red", "4-yellow"]
    assert (len(index), index.manifest.skipped, len(index.issues), sum(done)) == (3, 2, 2, 5)
    assert "0-red.png" in index.issues[0].detail
    assert Searcher(index, ColourModel()).captions_for(picture_bytes(COLOURS["red"]), k=1)[0].ids == ("3-red",)


def test_pictures_in_several_chunks_keep_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED)
    data.paths[1].unlink()
    whole = Index.build(data, ColourModel(), tmp_path / "whole")
    monkeypatch.setattr("rungwise.index.update._file_reader._FIRST", 2)
    monkeypatch.setattr("rungwise.index.update._file_reader.MOST", 2)
    monkeypatch.setattr("rungwise.index.update._encoding._TEXTS_AT_ONCE", 2)
    parts = Index.build(data, ColourModel(), tmp_path / "parts")
    assert list(parts.items()) == list(whole.items())
    np.testing.assert_array_equal(vectors(parts), vectors(whole))
    wanted = picture_bytes(COLOURS["blue"])
    assert Searcher(parts, ColourModel()).captions_for(wanted) == Searcher(whole, ColourModel()).captions_for(wanted)


def test_no_readable_picture_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", ["red"])
    data.paths[0].write_bytes(b"")
    with pytest.raises(UserError) as error:
        Index.build(data, ColourModel(), tmp_path / "index")
    assert "none of 1 pictures" in one_line(error)
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_collection_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no picture files"):
        Index.build(ImageCaptions(("a",), (), np.empty(0)), ColourModel(), tmp_path / "index")


class Breaks(ColourModel):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def encode_text(self, texts: object) -> np.ndarray:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("no power"), KeyboardInterrupt()])
def test_interrupted_build_leaves_the_old_index(index: Index, error: BaseException, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "others", ["green"])
    with pytest.raises(type(error)):
        Index.build(data, Breaks(error), index.folder, overwrite=True)
    again = Index.open(index.folder)
    assert list(again.items()) == list(index.items())
    np.testing.assert_array_equal(vectors(again), vectors(index))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "others", "photos"]


def test_full_disk_is_one_line_and_leaves_the_old_index(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(NpyWriter, "append", full)
    with pytest.raises(UserError) as error:
        Index.build(colour_pictures(tmp_path / "others", ["green"]), ColourModel(), index.folder, overwrite=True)
    assert "disk is full" in one_line(error)
    assert len(Index.open(index.folder)) == len(MIXED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "others", "photos"]


def test_failed_swap_puts_the_old_index_back(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(one: Path, other: Path) -> bool:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("rungwise.core.disk.folders._exchange", refuse)
    with pytest.raises(UserError, match="may not be written"):
        Index.build(colour_pictures(tmp_path / "others", ["green"]), ColourModel(), index.folder, overwrite=True)
    assert len(Index.open(index.folder)) == len(MIXED)


def test_index_is_replaced_only_on_request(index: Index, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "others", ["green"])
    with pytest.raises(UserError) as error:
        Index.build(data, ColourModel(), index.folder)
    assert "overwrite=True" in one_line(error)
    assert len(Index.build(data, ColourModel(), index.folder, overwrite=True)) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "others", "photos"]


def test_folder_with_anything_else_is_never_replaced(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", ["green"])
    with pytest.raises(UserError, match=r"0-green\.png"):
        Index.build(data, ColourModel(), tmp_path / "photos", overwrite=True)
    with pytest.raises(UserError, match="a file stands here"):
        Index.build(data, ColourModel(), data.paths[0], overwrite=True)
    with pytest.raises(UserError, match="a file stands where"):
        Index.build(data, ColourModel(), data.paths[0] / "index", overwrite=True)
    assert data.paths[0].is_file()


def test_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    assert len(Index.build(colour_pictures(tmp_path / "p", ["green"]), ColourModel(), tmp_path / "index")) == 1


def test_index_of_another_model_is_refused_by_both_names(index: Index) -> None:
    other = ColourModel(fingerprint="deadbeefdeadbeef" * 4)
    for search in (
        lambda: Searcher(index, other),
        lambda: index.upsert(colour_pictures(index.folder.parent / "photos", ["red"]), other),
    ):
        with pytest.raises(UserError) as error:
            search()
        message = one_line(error)
        assert "c0ffeec0ffee " in message
        assert "deadbeefdead " in message
        assert "build the index again" in message


def test_model_of_another_shape_is_refused(index: Index) -> None:
    with pytest.raises(UserError, match=r"dimension 3.*dimension 4"):
        Searcher(index, ColourModel(dimension=4))
    with pytest.raises(UserError, match="dimension 3"):
        index.search(np.ones((1, 4)))


@pytest.mark.parametrize("text", ["", "  \n"])
def test_blank_text_is_refused(index: Index, text: str) -> None:
    with pytest.raises(UserError, match="empty"):
        Searcher(index, ColourModel()).search_text(text)


def test_k_below_one_is_refused_and_above_the_index_is_the_index(index: Index) -> None:
    with pytest.raises(UserError, match="at least 1"):
        index.search(np.ones(3), k=0)
    assert len(Searcher(index, ColourModel()).search_text("red", k=10**9)) == len(MIXED)


def test_unreadable_query_picture_is_one_line(index: Index) -> None:
    with pytest.raises(UserError) as error:
        Searcher(index, ColourModel()).search_image(b"no picture")
    one_line(error)


def test_not_a_number_is_refused_in_queries_and_in_builds(index: Index, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="NaN"):
        index.search([float("nan"), 0, 0])

    class Damaged(ColourModel):
        def encode_image(self, *arguments: object, **options: object) -> EncodedImages:
            encoded = super().encode_image(*arguments, **options)
            return EncodedImages(encoded.vectors * np.inf, encoded.kept, encoded.issues)

    with pytest.raises(UserError, match=r"0-red.*weights are damaged"):
        Index.build(colour_pictures(tmp_path / "photos", ["red"]), Damaged(), tmp_path / "other")


ROWS_WITHOUT_PATH = "".join(json.dumps({"id": str(n), "record": {"captions": []}}) + "\n" for n in range(5))


def damage_manifest(folder: Path, **changes: object) -> None:
    """As somebody would who writes the checksum anew."""
    path = folder / "index.json"
    fields = json.loads(path.read_text()) | changes
    del fields["checksum"]
    write_description(path, fields)


def rewrite_rows(store: Path, text: str) -> None:
    """Other rows than were written, together with all checksums of them."""
    (store / "rows-0.jsonl").write_text(text)
    fields = json.loads((store / "store.json").read_text())
    fields["parts"][0]["rows_sha256"] = digest_of(store / "rows-0.jsonl")
    del fields["checksum"]
    write_description(store / "store.json", fields)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "no index here"),
        (lambda folder: (folder / "index.json").write_text("{"), "not valid JSON"),
        (lambda folder: (folder / "index.json").write_text("[]"), "not the description"),
        (lambda folder: damage_manifest(folder, version=99), "version 99"),
        (lambda folder: damage_manifest(folder, skipped="many"), "skipped"),
        (lambda folder: damage_manifest(folder, dimension=4), "dimension 3 where index.json says 4"),
        (lambda folder: shutil.rmtree(folder / "pictures"), "store.json is missing"),
        (lambda folder: shutil.rmtree(folder / "captions"), "store.json is missing"),
        (lambda folder: rewrite_rows(folder / "pictures", ROWS_WITHOUT_PATH), "lacks path or captions"),
    ],
)
def test_damaged_index_is_one_line(index: Index, damage: object, message: str) -> None:
    damage(index.folder)
    with pytest.raises(UserError) as error:
        list(Index.open(index.folder).items())
    assert message in one_line(error)


def in_memory(rows: np.ndarray) -> Index:
    count, dimension = rows.shape
    pictures = Segment(0, tuple(map(str, range(count))), rows, ({},) * count)
    stores = [
        ExactStore(
            Path("nowhere"), State(SegmentsDescription(dimension, Cosine(), side, ()), ExactSnapshot(dimension, parts))
        )
        for parts, side in (((pictures,), "image"), ((), "text"))
    ]
    return Index(Manifest("v", "f", "", dimension), *stores)


@given(
    vectors=hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.just(4)), elements=st.integers(-3, 3).map(float)),
    queries=hnp.arrays(np.float32, st.tuples(st.integers(1, 3), st.just(4)), elements=st.integers(-3, 3).map(float)),
    k=st.integers(1, 45),
)
@settings(max_examples=20)
def test_search_equals_the_cosine_pair_by_pair(vectors: np.ndarray, queries: np.ndarray, k: int) -> None:
    hits = in_memory(vectors).search(queries, k)
    for query, found in zip(queries.astype(float), hits, strict=True):
        cosines = []
        for vector in vectors.astype(float):
            lengths = sum(x * x for x in query) ** 0.5 * sum(x * x for x in vector) ** 0.5
            dot = sum(x * y for x, y in zip(query, vector, strict=True))
            cosines.append(dot / lengths if lengths else 0.0)
        best = sorted(cosines, reverse=True)[:k]
        assert [hit.score for hit in found] == pytest.approx(best, abs=1e-6)
        assert [cosines[int(hit.id)] for hit in found] == pytest.approx(best, abs=1e-6)
        for first, second in itertools.pairwise(found):
            assert first.score > second.score or int(first.id) < int(second.id)


def test_hits_are_rows_of_queries() -> None:
    hits = in_memory(np.eye(3, dtype=np.float32)).search(np.eye(3)[[2, 0]], k=1, exclude=("0",))
    assert [[hit.id for hit in row] for row in hits] == [["2"], ["1"]]
    assert [hit.score for row in hits for hit in row] == [1, 0]


def test_pictures_are_added_put_in_place_of_others_and_removed(index: Index, tmp_path: Path) -> None:
    model = ColourModel()
    more = colour_pictures(tmp_path / "more", ["blue", "yellow"])
    changed = replace(more, image_ids=("1-green", "new"), caption_ids=("c1", "c2"))
    before = Index.open(index.folder)
    assert index.upsert(changed, model) == ()
    for one in (index, Index.open(index.folder)):
        assert [item.id for item in one.items()] == ["0-red", "2-blue", "3-red", "4-yellow", "1-green", "new"]
        assert list(one.items())[4].captions == ("a blue square",)
        assert sorted(one.captions()) == ["a blue square", "a red square", "a yellow square"]
        assert {hit.id for hit in Searcher(one, model).search_text("blue", k=2)} == {"2-blue", "1-green"}
        assert Searcher(one, model).captions_for(more.paths[0], k=1)[0].ids == ("2-blue", "1-green")
        assert one.caption_store.count() == 3
    assert len(before) == 5
    assert index.remove(["4-yellow", "new", "nobody"]) == 2
    assert [sorted(one.captions()) for one in (Index.open(index.folder), index)] == [
        ["a blue square", "a red square"]
    ] * 2
    assert index.caption_store.count() == 2


def test_pictures_that_cannot_be_read_stay_as_they_were(index: Index, tmp_path: Path) -> None:
    again = colour_pictures(tmp_path / "photos", MIXED)
    again.paths[0].write_bytes(b"")
    issues = index.upsert(again, ColourModel())
    assert len(issues) == 1
    assert [item.id for item in index.items()] == ["0-red", "1-green", "2-blue", "3-red", "4-yellow"]
    assert Searcher(index, ColourModel()).search_text("red", k=1)[0].id == "0-red"


def test_a_death_between_captions_and_pictures_leaves_the_old(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = replace(colour_pictures(tmp_path / "more", ["rot"]), image_ids=("new",))
    more.paths[0].write_bytes(more.paths[0].read_bytes() + b"\0")  # of equal content the vector is known

    class Dies(ColourModel):
        def encode_image(self, *arguments: object, **options: object) -> EncodedImages:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.upsert(more, Dies())
    after = Index.open(index.folder)
    assert len(after) == 5
    found = Searcher(after, ColourModel()).captions_for(picture_bytes(COLOURS["red"]))
    assert "a rot square" not in [caption.text for caption in found]
    after.upsert(more, ColourModel())
    assert "a rot square" in after.ids_with_captions(["a rot square"])
    assert len(after) == 6


def test_an_index_that_was_replaced_meanwhile_is_not_changed(index: Index, tmp_path: Path) -> None:
    opened = Index.open(index.folder)
    other = ColourModel(fingerprint="another")
    Index.build(colour_pictures(tmp_path / "others", ["green"]), other, index.folder, overwrite=True)
    with pytest.raises(UserError, match="another index stands here"):
        opened.remove(["0-red"])
    with pytest.raises(UserError, match="another index stands here"):
        opened.upsert(colour_pictures(tmp_path / "others", ["green"]), ColourModel())


def test_a_collection_of_captions_alone_is_not_added(index: Index) -> None:
    with pytest.raises(UserError, match="no picture files and no features"):
        index.upsert(ImageCaptions(("a",), (), np.empty(0)), ColourModel())


def test_no_query_finds_nothing_and_an_empty_index_too(index: Index) -> None:
    assert len(index.search(np.empty((0, 3)))) == 0
    index.remove([item.id for item in index.items()])
    assert Searcher(index, ColourModel()).search_text("red") == []
    assert index.search(np.ones((2, 3)))[1] == []


def test_what_another_process_added_is_kept(index: Index, tmp_path: Path) -> None:
    other = Index.open(index.folder)
    other.remove(["0-red"])
    more = replace(colour_pictures(tmp_path / "more", ["rot"]), image_ids=("new",))
    index.upsert(more, ColourModel())
    assert [item.id for item in index.items()] == ["1-green", "2-blue", "3-red", "4-yellow", "new"]


def other_way_round(tmp_path: Path) -> ImageCaptions:
    """The same ids, each with the picture and the caption of another."""
    data = colour_pictures(tmp_path / "other photos", MIXED[::-1])
    ids = tuple(f"{number}-{colour}" for number, colour in enumerate(MIXED))
    return replace(data, image_ids=ids, caption_ids=tuple(f"{one}#0" for one in ids))


def is_one_version(index: Index) -> bool:
    """Whether every picture's vector is that of the colour in its own caption."""
    model = ColourModel()
    captions = [item.captions[0] for item in index.items()]
    known = index.caption_store.get(captions)
    return bool(
        np.allclose(vectors(index), model.encode_text([caption.split()[1] for caption in captions]), atol=0.01)
        and np.allclose([known[one].vector for one in captions], model.encode_text(captions), atol=0.01)
    )


@pytest.mark.parametrize(("change", "checked_bytes"), [("replaced", 1 << 20), ("changed", 0), ("both", 1 << 20)])
def test_a_reader_holds_one_version_whatever_happens_between_two_files(
    change: str, checked_bytes: int, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = colour_pictures(tmp_path / "photos", MIXED), other_way_round(tmp_path)

    def changes(now: ImageCaptions) -> None:
        if change in ("replaced", "both"):
            Index.build(now, ColourModel(), index.folder, overwrite=True)
        if change in ("changed", "both"):
            writer = Index.open(index.folder)
            writer.remove(["1-green"])
            writer.upsert(now, ColourModel())

    seen, originals = 0, {name: getattr(vector_files, name) for name in ("opened_file", "mapped", "read_bytes")}
    for at in range(100):
        done = iter(range(1000))

        def hooked(original: Callable[..., Any], at: int = at, done: Iterator[int] = done) -> Callable[..., Any]:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                if next(done) == at:
                    with pytest.MonkeyPatch.context() as quiet:
                        for name, before in originals.items():
                            quiet.setattr(vector_files, name, before)
                        changes((second, first)[at % 2])
                return original(*args, **kwargs)

            return wrapped

        with monkeypatch.context() as patch, limited(checked_bytes=checked_bytes):
            for name, original in originals.items():
                patch.setattr(vector_files, name, hooked(original))
            opened = Index.open(index.folder)
        assert is_one_version(opened)
        seen += 1
        if next(done) <= at:
            break
    assert 8 < seen < 40


def test_what_was_opened_stays_when_the_index_is_replaced_and_deleted(index: Index, tmp_path: Path) -> None:
    opened = Index.open(index.folder)
    before = vectors(opened).copy()
    Index.build(other_way_round(tmp_path), ColourModel(), index.folder, overwrite=True)
    shutil.rmtree(index.folder)
    np.testing.assert_array_equal(vectors(opened), before)
    assert (is_one_version(opened), opened.issues) == (True, ())


def test_it_is_known_when_another_stands_there_or_it_has_changed(index: Index, tmp_path: Path) -> None:
    opened, other = Index.open(index.folder), Index.open(index.folder)
    assert not opened.is_replaced()
    other.remove(["0-red"])
    assert (opened.is_replaced(), other.is_replaced()) == (True, False)
    opened = Index.open(index.folder)
    assert not opened.is_replaced()
    Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), index.folder, overwrite=True)
    assert opened.is_replaced()
    assert other.is_replaced()
    shutil.rmtree(index.folder)
    assert not opened.is_replaced(), "there is nothing to open instead"
    assert not in_memory(np.eye(3, dtype=np.float32)).is_replaced()


def test_an_index_that_was_built_again_by_the_same_model_is_another(index: Index, tmp_path: Path) -> None:
    opened = Index.open(index.folder)
    Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), index.folder, overwrite=True)
    with pytest.raises(UserError, match="another index stands here"):
        opened.remove(["0-red"])


def swapped_store(folder: Path) -> None:
    """The pictures of another index of the same model."""
    other = Index.build(other_way_round(folder.parent), ColourModel(), folder.parent / "other")
    shutil.rmtree(folder / "pictures")
    shutil.copytree(other.folder / "pictures", folder / "pictures")


def without_a_caption(folder: Path) -> None:
    ExactStore.open(folder / "captions").delete(["a red square"])


def test_a_caption_without_its_vector_is_found_when_everything_is_looked_at(index: Index) -> None:
    without_a_caption(index.folder)
    wrong = [check.wrong for check in verify_index(index.folder) if check.wrong]
    assert len(wrong) == 1
    assert "captions: damaged (no vector of the caption 'a red square')" in wrong[0]


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (swapped_store, "pictures: damaged .it is the store of another index"),
        (lambda folder: (folder / "issues.jsonl").unlink(), "issues.jsonl: damaged .the file is missing"),
        (lambda folder: (folder / "issues.jsonl").write_text("{}\n"), "issues.jsonl.*damaged"),
        (
            lambda folder: (folder / "index.json").write_text(
                (folder / "index.json").read_text().replace(": 0", ": 7")
            ),
            "index.json: damaged .*checksums differ",
        ),
    ],
)
def test_an_index_that_was_tampered_with_is_refused(index: Index, tamper: object, message: str) -> None:
    tamper(index.folder)
    with pytest.raises(UserError, match=message) as error:
        Index.open(index.folder)
    assert "build the index again" in one_line(error)


def test_what_a_killed_change_left_is_removed_by_the_next(index: Index) -> None:
    left = [index.folder / store / ".store.json.0123456789abcdef.partial" for store in ("pictures", "captions")]
    left.append(index.folder / ".index.json.0123456789abcdef.partial")
    for folder in left:
        folder.mkdir()
        (folder / "store.json").write_text("{")
    opened = Index.open(index.folder)
    assert opened.remove(["nobody"]) == 0
    assert not [folder for folder in left if folder.exists()]


def test_rows_of_features_in_place_of_words_are_indexed_under_their_captions(tmp_path: Path) -> None:
    texts = FeatureRows(np.random.default_rng(0).normal(size=(3, 4)))
    images = FeatureRows(np.random.default_rng(1).normal(size=(2, 5)))
    data = ImageCaptions(("a", "b"), ("t1", "t2", "t1"), np.array([0, 1, 1]), features=images, text_features=texts)
    config = VSEConfig(image=FeatureConfig(), text=TextFeatureConfig(), text_head=LinearHead(), dimension=6)
    model = JointEmbedding.create(config, data.texts, data.features)
    index = Index.build(data, model, tmp_path / "index")
    stored = index.caption_store.get(["t1", "t2"])
    expected = model.encode_text(texts.take([0, 1]))
    np.testing.assert_allclose(np.stack([stored["t1"].vector, stored["t2"].vector]), expected, atol=1e-6)
    checks = list(verify_index(tmp_path / "index", lambda manifest: model))
    assert not any(check.wrong for check in checks)
    assert any("in place of words" in check.unchecked for check in checks)


def test_columns_hold_dates_where_all_that_was_looked_at_are_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.index._reader._ROWS_LOOKED_AT", 2)
    days = ("2020-05-31T10:00:00", "2020-05-30", "2020-05-31", "about 1900")
    rare = (None, None, "2020-05-31T09:00:00Z", "2021-01-01T00:00:00Z")
    data = replace(colour_pictures(tmp_path / "photos", list(COLOURS)[:4]), columns={"day": days, "rare": rare})
    index = Index.build(data, ColourModel(), tmp_path / "index")

    def found(where: str) -> list[str]:
        by_search = [hit.id for hit in index.search(np.eye(1, index.manifest.dimension), 9, parse_where(where))[0]]
        listed = [item.id for item in index.items(parse_where(where))]
        assert sorted(by_search) == sorted(index.newest(9, where=parse_where(where))) == sorted(listed)
        return [one.partition("-")[0] for one in listed]

    assert found("rare == '2020-05-31'") == ["2"]  # which all pictures were looked through for
    assert found("day == '2020-05-31'") == ["0", "2"], "the other columns were not"
    assert found("day == 'about 1900'") == ["3"]
    assert found("day == '2020-05-31'") == ["2"], "a text of another sort was seen, so that all are texts"
    index = Index.open(tmp_path / "index")
    assert found("day == '2020-05-31'") == ["0", "2"], "the first two are dates"
    assert found("day == 'about 1900'") == ["3"], "but nothing is refused before all were looked at"
    for where, message in (
        ("rare > 'yesterday'", "'rare' holds dates, and 'yesterday' is no date"),
        ("raer > 1", "'raer'; did you mean rare"),
    ):
        for ask in (index.items, lambda chosen: index.newest(1, where=chosen), index.understood):
            with pytest.raises(UserError, match=message):
                ask(parse_where(where))


@pytest.mark.parametrize("store", ["exact", "lance"])
def test_a_value_of_another_kind_finds_what_is_meant_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.setattr("rungwise.index._reader._ROWS_LOOKED_AT", 2)
    columns = {
        "year": (2019, 2020, 2021, None),
        "code": ("001", "002", None, "003"),
        "when": ("31.05.2019", "1.6.2020", "2020-07-01", None),
        "ok": ("yes", "no", "no", "no"),
    }
    data = replace(colour_pictures(tmp_path / "photos", list(COLOURS)[:4]), columns=columns)
    index = Index.build(data, ColourModel(), tmp_path / "index", store=store)

    def found(where: str) -> list[str]:
        return sorted(item.id.partition("-")[0] for item in index.items(parse_where(where)))

    assert (found("year == '2020'"), found("year != '2020'"), found("year > '2019.5'")) == (
        ["1"],
        ["0", "2"],
        ["1", "2"],
    )
    assert (found("not year in ('2020')"), found("code >= '002'")) == (["0", "2", "3"], ["1", "3"])
    for where, message in (
        ("year >= '2020-05-01'", "'year' holds numbers, such as 2019; write a number in place of '2020-05-01'"),
        ("code == 1", "'code' holds texts, such as '001'; write a text in quotes in place of 1"),
        ("ok == true", "'ok' holds texts, such as 'yes'; write a text in quotes in place of true"),
        ("when >= '2020-05-01'", "'when' holds texts, such as '31.05.2019', which would be compared with '2020-05-01'"),
        ("when >= '2020'", "'when' holds texts, such as '31.05.2019', which would be compared with '2020' letter"),
    ):
        with pytest.raises(UserError, match=message):
            found(where)


def test_the_newest_are_those_taken_last(tmp_path: Path) -> None:
    taken = ("2020-05-31T10:00:00", None, "2020-06-01T00:00:00+02:00", None)
    data = replace(colour_pictures(tmp_path / "photos", list(COLOURS)[:4]), columns={"taken": taken})
    for number, path in enumerate(data.paths):
        os.utime(path, (1_590_900_000 + 86_400 * number,) * 2)  # from 2020-05-31T04:40:00Z on
    for store in ("exact", "lance"):
        index = Index.build(data, ColourModel(), tmp_path / store, store=store)  # type: ignore[arg-type]
        assert [one.partition("-")[0] for one in index.newest(9)] == ["3", "1", "2", "0"]
        index.remove(index.newest(1))
        index.upsert(data.select([0]), ColourModel())
        assert [one.partition("-")[0] for one in index.newest(2, 1)] == ["2", "0"]


def test_an_index_and_its_searcher_print_a_few_lines(index: Index) -> None:
    lines = repr(index).splitlines()
    assert lines[0] == f"Index '{index.manifest.name}'"
    assert lines[1] == "  holds: 5 pictures, 4 captions"
    assert len(repr(Searcher(index, ColourModel())).splitlines()) == len(lines) <= 12
    assert "5 pictures, 4 captions" in index._repr_html_()
    assert len(repr(replace(index.manifest, mounts=("/photos",) * 9_000, listing="a" * 9_000)).splitlines()) <= 12
