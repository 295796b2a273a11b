"""Exported models as folders: read, searched with, damaged, and without torch."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk import SEAL, write_seal
from rungwise.data.files import FeatureRows
from rungwise.index import Index, Searcher
from rungwise.index.maintenance import verify_index
from rungwise.models import AlteredModelError, JointEmbedding, load, load_dual_encoder
from rungwise.models.export import export_onnx
from rungwise.models.export._onnx_model import OnnxModel
from rungwise.models.io import ModelFolder
from tests.colour_model import ColourModel, colour_pictures
from tests.models.exported import TEXTS, of_features, pictures, seeing

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[JointEmbedding, Path]:
    """A model of pictures and its export."""
    folder, model = tmp_path_factory.mktemp("exported") / "onnx", seeing()
    export_onnx(model, folder)
    return model, folder


@pytest.fixture(scope="module")
def of_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows") / "onnx"
    export_onnx(of_features(), folder)
    return folder


@pytest.fixture
def copied(of_rows: Path, tmp_path: Path) -> Path:
    """An export that a test may damage; of features, since that is small."""
    (tmp_path / "onnx").mkdir()
    for file in of_rows.iterdir():
        (tmp_path / "onnx" / file.name).write_bytes(file.read_bytes())
    return tmp_path / "onnx"


def test_pictures_come_as_files_as_bytes_and_one_by_one(exported, tmp_path: Path) -> None:
    model, files, done = load(exported[1]), pictures(tmp_path, count=40), []
    found = model.encode_image(files, progress=done.append)
    assert found.kept.tolist() == list(range(40))
    assert done == [32, 8]
    as_bytes = model.encode_image([file.read_bytes() for file in files]).vectors
    np.testing.assert_array_equal(as_bytes, found.vectors)
    for picture in (files[3], files[3].read_bytes()):
        np.testing.assert_allclose(model.prepare_image(picture)().vectors, found.vectors[3:4], atol=1e-6)
    assert model.encode_image([]).vectors.shape == (0, 8)


def test_unreadable_pictures_are_reported(exported, tmp_path: Path) -> None:
    files = pictures(tmp_path, count=3)
    files[1].write_bytes(files[1].read_bytes()[:60])
    found = load(exported[1]).encode_image([*files, tmp_path / "nowhere.png", b"no picture"])
    assert found.kept.tolist() == [0, 2]
    assert found.vectors.shape == (2, 8)
    assert [issue.where for issue in found.issues] == [
        str(files[1]),
        str(tmp_path / "nowhere.png"),
        "<uploaded picture>",
    ]
    with pytest.raises(UserError, match="truncated PNG"):
        load(exported[1]).prepare_image(files[1])


def test_texts_are_told_that_are_cut(exported) -> None:
    model = load(exported[1])
    assert model.too_long(TEXTS).tolist() == []
    assert model.encode_text([]).shape == (0, 8)
    assert model.encode_text(["a \ud800 dog"]).shape == (1, 8)


def test_pictures_and_rows_are_not_taken_for_each_other(exported, of_rows: Path, tmp_path: Path) -> None:
    rows = FeatureRows(np.zeros((2, 5), np.float32))
    with pytest.raises(UserError, match="the data are rows of features, but the model reads pictures"):
        load(exported[1]).encode_image(rows)
    with pytest.raises(UserError, match="but the model reads words"):
        load(exported[1]).encode_text(rows)
    with pytest.raises(UserError, match="was trained on rows of features and reads no pictures"):
        load(of_rows).encode_image(pictures(tmp_path))
    assert [load(one).reads_pictures for one in (exported[1], of_rows)] == [True, False]
    with pytest.raises(UserError, match="features of length 4, but the model reads features of length 5"):
        load(of_rows).encode_image(FeatureRows(np.zeros((2, 4), np.float32)))
    with pytest.raises(UserError, match=r"features, row 1 \(from 0\): holds numbers that are not finite"):
        load(of_rows).encode_image(FeatureRows(np.array([[0.0] * 5, [np.inf] * 5])))


def test_it_computes_on_the_processor_alone(of_rows: Path) -> None:
    assert load(of_rows, "cpu").dimension == 8
    with pytest.raises(UserError, match="an exported model computes on the cpu, not on cuda; leave the device out"):
        load(of_rows, "cuda")
    model = OnnxModel.from_folder(ModelFolder.open(of_rows), None, threads=2)
    assert model.encode_text(["a dog"]).shape == (1, 8)


def test_the_fingerprint_is_that_of_what_decides_a_vector(of_rows: Path, copied: Path, tmp_path: Path) -> None:
    first = load(of_rows).fingerprint
    assert load(copied).fingerprint == first
    facts = json.loads((copied / "config.json").read_text())
    facts["provenance"] = {"seed": 1}
    facts["model"]["origin"]["image_cosine"] = 0.5
    (copied / "config.json").write_text(json.dumps(facts))
    assert load(copied, altered=True).fingerprint == first
    facts["model"]["similarity"] = "inner"
    (copied / "config.json").write_text(json.dumps(facts))
    assert load(copied, altered=True).fingerprint != first
    export_onnx(of_features(seed=1), tmp_path / "other")
    assert load(tmp_path / "other").fingerprint != first


@pytest.mark.parametrize(
    "change",
    [
        {"similarity": "inner"},
        {"longest": 3},
        {"pad_number": 1},
        {"zeroed": 1},
        {},
        {"origin": {"fingerprint": "9a3f", "image_cosine": 1.0, "text_cosine": 1.0, "opset": 18, "seal": ""}},
    ],
    ids=str,
)
def test_a_description_that_was_edited_and_sealed_anew_stands_for_nothing(
    change: dict[str, object], of_rows: Path, copied: Path
) -> None:
    facts = json.loads((copied / "config.json").read_text())
    facts["model"] |= change
    facts["provenance"] = {"chosen_by": "labels/MAP"} if not change else facts.get("provenance", {})
    (copied / "config.json").write_text(json.dumps(facts))
    write_seal(copied)
    with pytest.raises(AlteredModelError, match="says something else of the model than when it was exported"):
        load(copied)
    assert load(copied, altered=True).stands_for == ""
    assert load(of_rows).stands_for == facts["model"]["origin"]["fingerprint"] or "origin" in change


def test_a_graph_that_cannot_be_opened_is_found_when_it_is_tried(exported, copied: Path) -> None:
    assert load(exported[1]).try_out() == load(copied).try_out() == "each graph was computed with"
    model = load(copied)
    model._text.data = model._text.data[:-40]
    with pytest.raises(UserError, match=r"text.onnx: cannot be opened"):
        model.try_out()


def test_an_index_says_that_captions_cannot_be_encoded(exported, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "pictures", ["red", "blue"])
    model = load_dual_encoder(exported[1])
    Index.build(data, model, tmp_path / "index")
    model._text.data, model._text._session = b"no graph", None
    (line,) = [check for check in verify_index(tmp_path / "index", lambda _: model) if check.wrong or check.unchecked]
    assert "cannot be opened" in line.wrong


@pytest.mark.parametrize("name", ["image.onnx", "text.onnx", "tokenizer.json", "config.json"])
def test_files_that_were_altered_or_are_missing_are_refused(name: str, copied: Path) -> None:
    data = (copied / name).read_bytes()
    (copied / name).write_bytes(data + b" ")
    with pytest.raises(AlteredModelError, match=f"{name}: altered or damaged"):
        load(copied)
    (copied / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError) as caught:
        load(copied, altered=True)
    assert "\n" not in str(caught.value)
    (copied / name).unlink()
    with pytest.raises(UserError, match=r"missing"):
        load(copied)


def test_without_its_seal_it_is_not_taken(copied: Path) -> None:
    (copied / SEAL).unlink()
    with pytest.raises(AlteredModelError, match="missing, so nobody knows"):
        load(copied)
    assert load(copied, altered=True).dimension == 8


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dimension": 9}, "gives vectors float32 (n, 8), but config.json asks for vectors of 9 numbers"),
        ({"dimension": 0}, "dimension: must be at least 1"),
        ({"dimension": 1 << 40}, "dimension: must be at most 1048576"),
        ({"features": 6}, "takes rows float32 (n, 5), but config.json asks for rows float32 (n, 6)"),
        ({"features": None}, "name either preprocessing, of pictures, or features"),
        ({"features": None, "preprocessing": {"size": 32}}, "takes rows float32 (n, 5), but config.json asks for pic"),
        ({"preprocessing": {"size": 32}}, "name either preprocessing, of pictures, or features"),
        ({"preprocessing": {"size": 10**9}, "features": None}, "size: must be at most 8192"),
        ({"pad_number": 10**6}, "pad_number must lie in 0.."),
        ({"pad_number": -1}, "pad_number: must be at least 0"),
        ({"token_rows": 2}, "tokenizer.json"),
        ({"token_rows": 0}, "token_rows: must be at least 1"),
        ({"longest": 0}, "longest: must be at least 1"),
        ({"similarity": "spite"}, "similarity"),
        ({"origin": None}, "origin"),
        ({"custom_ops": "library.so"}, "custom_ops"),
    ],
    ids=str,
)
def test_a_configuration_that_does_not_fit_is_one_line(values: dict[str, Any], message: str, copied: Path) -> None:
    facts = json.loads((copied / "config.json").read_text())
    facts["model"] |= values
    (copied / "config.json").write_text(json.dumps(facts))
    with pytest.raises(UserError) as caught:
        load(copied, altered=True)
    assert message in str(caught.value)
    assert str(copied) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_graphs_of_another_export_of_the_same_shape_are_told_by_the_fingerprint(of_rows: Path, copied: Path) -> None:
    export_onnx(of_features(seed=1), copied.parent / "other")
    (copied / "text.onnx").write_bytes((copied.parent / "other" / "text.onnx").read_bytes())
    with pytest.raises(AlteredModelError):
        load(copied)
    assert load(copied, altered=True).fingerprint != load(of_rows).fingerprint


def test_an_index_of_either_is_searched_with_the_other(exported, tmp_path: Path) -> None:
    model, folder = exported
    data, stand_in = colour_pictures(tmp_path / "pictures", ["red", "blue", "green"]), load_dual_encoder(folder)
    by_model = Index.build(data, model, tmp_path / "by_model")
    by_export = Index.build(data, stand_in, tmp_path / "by_export")
    found = {}
    for name, index in (("model", by_model), ("export", by_export)):
        for other in (model, stand_in):
            hits = Searcher(index, other).search_text("a blue square")
            found[name, other.kind] = [hit.id for hit in hits]
    assert len(set(map(tuple, found.values()))) == 1
    assert "stands in for the model that built the index" in by_model.manifest.stand_in(stand_in)
    assert "built by an export of this model" in by_export.manifest.stand_in(model)
    assert by_model.manifest.stand_in(model) == by_export.manifest.stand_in(stand_in) == ""
    searcher = Searcher(by_model, stand_in)
    assert searcher.on(by_export).index is by_export
    for place in ("by_model", "by_export"):
        for one in (model, stand_in):
            assert not [check.wrong for check in verify_index(tmp_path / place, lambda _, one=one: one) if check.wrong]
    assert by_model.upsert(data.select([0]), stand_in) == ()


def test_the_export_of_another_model_is_refused(exported, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "pictures", ["red", "blue"])
    index = Index.build(data, ColourModel(dimension=3), tmp_path / "index")
    other = Index.build(data, seeing(seed=1), tmp_path / "other")
    for one in (index, other):
        with pytest.raises(UserError, match="built by model"):
            Searcher(one, load_dual_encoder(exported[1]))
        assert one.manifest.stand_in(load_dual_encoder(exported[1])) == ""
    with pytest.raises(UserError, match="built by model"):
        Searcher(Index.build(data, load_dual_encoder(exported[1]), tmp_path / "third"), seeing(seed=1))


def test_it_is_evaluated_like_any_model(exported, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "pictures", ["red", "blue", "green"])
    scores = load(exported[1]).on(data)
    np.testing.assert_allclose(
        scores.block([0, 1, 2], [0, 1, 2]), exported[0].on(data).block([0, 1, 2], [0, 1, 2]), atol=0.02
    )


def run(words: list[object], **changes: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])} | changes
    return subprocess.run(
        [sys.executable, *map(str, words)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.smoke
def test_inspect_index_search_serve_and_verify_go_without_torch(exported, tmp_path: Path) -> None:
    """In a process where torch, torchvision, timm and transformers cannot be imported."""
    colour_pictures(tmp_path / "pictures", ["red", "blue", "green"])
    script = REPOSITORY / "tests" / "models" / "without_torch.py"
    done = run([script, exported[1], tmp_path / "pictures", tmp_path / "index"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n200 ") == 5
    assert "3 pictures, 0 captions indexed" in done.stdout
    assert "2-green" in done.stdout
    assert done.stdout.count("all is well") == 2
    assert "barred and loaded: []" in done.stdout


@pytest.mark.slow
def test_a_model_that_needs_torch_says_so_by_importing_it(tmp_path: Path) -> None:
    """The barrier of the test above bars."""
    seeing().save_pretrained(tmp_path / "model")
    colour_pictures(tmp_path / "pictures", ["red"])
    script = REPOSITORY / "tests" / "models" / "without_torch.py"
    done = run([script, tmp_path / "model", tmp_path / "pictures", tmp_path / "index"])
    assert done.returncode != 0
    assert "No module named 'torch'" in done.stdout + done.stderr
