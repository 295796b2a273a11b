import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from rungwise.core import UserError, limited, summary
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import ExactStore, Index
from rungwise.index.maintenance import verify_index
from rungwise.models import DualEncoder
from rungwise.similarity import Inner
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.index.cutoff.test_cutoff import CALIBRATION

MIXED = ["red", "green", "blue", "red", "yellow"]


def its_model(_: object) -> DualEncoder:
    return ColourModel()


def wrong(folder: Path, **options: object) -> list[str]:
    return [check.wrong for check in verify_index(folder, its_model, **options) if check.wrong]


def test_a_sound_index_is_found_sound(index: Index) -> None:
    lines = [str(check) for check in verify_index(index.folder, its_model)]
    assert all(line.startswith("ok: ") for line in lines)
    assert len(lines) == 10
    assert "ok: files of pictures: store.json and 2 files, each as it was written" in lines
    assert "ok: pictures: 5 rows of 3 in 1 parts: ids, finite numbers" in lines
    assert "ok: sample of pictures: 5 encoded anew give the same vectors" in lines
    assert "ok: sample of captions: 4 encoded anew give the same vectors" in lines
    assert len(list(verify_index(index.folder))) == 8
    assert "2 encoded anew" in str(list(verify_index(index.folder, its_model, sample=2))[-1])


def shuffled(index: Index) -> None:
    """Vectors in another order, and all checksums written anew."""
    store = ExactStore.open(index.folder / "pictures")
    names = [item.id for item in index.items()]
    vectors = np.stack([row.vector for row in store.get(names).values()])
    records = [dict(record) for _, record in store.records()]
    store.upsert(names, vectors[[1, 2, 0, 4, 3]], records)


def test_vectors_that_are_not_those_of_their_pictures_are_found(index: Index) -> None:
    shuffled(index)
    (line,) = wrong(index.folder)
    assert line.startswith(f"{index.folder}: 5 of 5 pictures encoded anew give other vectors, first '0-red'")
    assert line.endswith("build the index again")
    assert not [check for check in verify_index(index.folder) if check.wrong], "nothing else can tell"


def test_a_picture_that_was_changed_is_found_and_one_that_is_gone_is_said(index: Index) -> None:
    next(iter(index.items())).path.write_bytes(picture_bytes(COLOURS["blue"]))
    list(index.items())[1].path.unlink()
    (line,) = wrong(index.folder)
    assert "1 of 4 pictures encoded anew give other vectors, first '0-red'" in line
    next(iter(index.items())).path.write_bytes(picture_bytes(COLOURS["red"]))
    lines = [str(check) for check in verify_index(index.folder, its_model)]
    assert "ok: sample of pictures: 4 encoded anew give the same vectors" in lines
    assert any(line.startswith("not checked: sample of pictures: 1 of 5 files could not be read (") for line in lines)


def test_pictures_that_are_all_away_are_not_checked_and_not_said_to_be_well(index: Index) -> None:
    shutil.rmtree(next(iter(index.items())).path.parent)
    checks = list(verify_index(index.folder, its_model))
    (left,) = [check for check in checks if not check.found]
    assert left.unchecked.startswith("5 of 5 files could not be read (")
    assert summary(checks) == "9 checks found nothing wrong; 1 thing was not checked"


def test_large_vectors_are_read_through_all_the_same(index: Index) -> None:
    path = index.folder / "captions" / "vectors-0.npy"
    np.save(path, np.load(path)[::-1].copy())
    with limited(checked_bytes=0):
        Index.open(index.folder)
        (line,) = [check.wrong for check in verify_index(index.folder) if check.wrong]
    assert line.startswith(f"{path}: damaged")


def test_what_is_wrong_is_named_and_the_rest_is_looked_at(index: Index) -> None:
    (index.folder / "pictures" / "rows-0.jsonl").write_text("{}\n" * 5)
    (index.folder / "notes.txt").write_text("mine")
    checks = list(verify_index(index.folder))
    assert [check.what for check in checks if check.wrong] == [
        "names of files", "pictures", "pictures with their captions",
    ]  # fmt: skip
    assert [check.what for check in checks if not check.wrong] == [
        "index.json", "files of captions", "captions", "issues.jsonl",
    ]  # fmt: skip
    shutil.rmtree(index.folder / "captions")
    (index.folder / "index.json").write_text("{")
    assert len(wrong(index.folder)) == 1


def test_another_model_is_refused_and_a_missing_one_too(index: Index) -> None:
    checks = verify_index(index.folder, lambda _: ColourModel(fingerprint="another" * 8))
    assert "built by model c0ffeec0ffee" in [check.wrong for check in checks][-1]

    def gone(_: object) -> DualEncoder:
        raise UserError("runs/best: no such folder")

    assert (
        "no vectors could be encoded anew: runs/best" in [check.wrong for check in verify_index(index.folder, gone)][-1]
    )


def test_features_in_place_of_files_are_not_encoded_anew(tmp_path: Path) -> None:
    data = ImageCaptions(("a", "b"), (), np.empty(0), features=FeatureRows(np.array([[220.0, 40, 40], [1, 2, 3]])))
    index = Index.build(data, ColourModel(), tmp_path / "index")
    lines = [str(check) for check in verify_index(index.folder, its_model)]
    assert "not checked: sample of pictures: vectors are of rows of features" in lines[-2]
    assert lines[-1] == "ok: sample of captions: there are none"


def test_captions_of_no_picture_are_counted(index: Index) -> None:
    store = ExactStore.open(index.folder / "captions")
    store.upsert(["a rot square"], ColourModel().encode_text(["a rot square"]))
    (line,) = [str(check) for check in verify_index(index.folder) if "with their captions" in check.what]
    assert line.endswith("1 captions of no picture, which are never found")


def test_what_stands_beside_the_stores_is_read_too(tmp_path: Path) -> None:
    """Small pictures, a calibration, what was left out."""
    data = colour_pictures(tmp_path / "photos", MIXED)
    data.paths[0].write_bytes(b"no picture")
    index = Index.build(data, ColourModel(), tmp_path / "index", thumbnails=True)
    index.keep_calibration(replace(CALIBRATION, model_fingerprint=""))
    assert not wrong(index.folder)
    for name in ("issues.jsonl", "calibration.json", *map(str, index.folder.rglob("*.thumbnail"))):
        path = index.folder / name
        before = path.read_bytes()
        path.write_bytes(before.replace(before[40:41], bytes([before[40] ^ 1]), 1))
        assert wrong(index.folder), name
        path.write_bytes(before)
    assert not wrong(index.folder)


def test_a_model_that_compares_otherwise_is_refused(index: Index) -> None:
    other = ColourModel(similarity=Inner())
    (line,) = [check.wrong for check in verify_index(index.folder, lambda _: other) if check.wrong]
    assert "its vectors are compared by cosine, and the model compares by inner" in line


def test_renamed_pictures_are_no_damage(index: Index) -> None:
    again = colour_pictures(index.folder.parent / "photos", MIXED)
    index.upsert(replace(again, image_ids=tuple("abcde")), ColourModel())
    assert not wrong(index.folder)
