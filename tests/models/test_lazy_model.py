import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.encoders.images import ConvolutionsConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import (
    AlteredModelError,
    DualEncoder,
    JointEmbedding,
    LazyModel,
    ModelFacts,
    ModelFiles,
    VSEConfig,
    load_dual_encoder,
    read_facts,
)
from rungwise.models import _lazy_model as tested
from rungwise.models._lazy_model import write_facts
from tests.published import Published, photos


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache"))


def saved(folder: Path, seed: int) -> DualEncoder:
    torch.manual_seed(seed)
    side = ConvolutionsConfig(size=8, channels=(4,), halving=())
    model = JointEmbedding.create(VSEConfig(image=side, text=GRUConfig(8, min_count=1), dimension=8), ["a dog"])
    model.save_pretrained(folder)
    return model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    saved(tmp_path / "model", 0)
    return tmp_path / "model"


def files_of(place: object) -> ModelFiles:
    found = ModelFiles.of(str(place))
    assert found is not None
    return found


def opened(place: object) -> DualEncoder:
    """A model, whose facts are kept."""
    files = files_of(place)
    read = load_dual_encoder(files.place, "cpu")
    files.keep(ModelFacts.of(read))
    return read


def test_what_was_opened_before_is_known_by_its_files(model: Path):
    assert files_of(model).facts() is None
    read = opened(model)
    assert files_of(model).facts() == ModelFacts(read.fingerprint, 8, "") == ModelFacts.of(read)


@pytest.mark.parametrize("kind", ["clip", "open_clip", "sentence"])
def test_published_models_are_known_too_whatever_names_the_folder(published: Published, kind: str):
    prefix = {"clip": "hf:", "open_clip": "open_clip:", "sentence": "st:"}[kind]
    read = opened(f"{prefix}{getattr(published, kind)}")
    assert files_of(getattr(published, kind)).facts() == ModelFacts.of(read)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "README.md"])
def test_a_model_of_which_any_file_changed_is_another(model: Path, name: str):
    opened(model)
    (model / name).write_bytes((model / name).read_bytes() + b" ")
    assert files_of(model).facts() is None


def test_so_is_one_with_a_file_more_or_less(model: Path):
    opened(model)
    (model / "calibration.json").write_text("{}")
    assert files_of(model).facts() is None
    (model / "calibration.json").unlink()
    assert files_of(model).facts() is not None
    (model / "SHA256SUMS").unlink()
    assert files_of(model).facts() is None


def test_so_is_one_that_another_library_reads(model: Path, monkeypatch: pytest.MonkeyPatch):
    opened(model)
    monkeypatch.setattr(tested.metadata, "version", lambda name: "99" if name == "torch" else "1")
    assert files_of(model).facts() is None


def test_the_same_files_in_another_folder_are_known(model: Path, tmp_path: Path):
    read = opened(model)
    model.rename(tmp_path / "moved")
    assert files_of(tmp_path / "moved").facts() == ModelFacts.of(read)


def test_nothing_is_kept_of_a_folder_that_changed_while_it_was_read(model: Path):
    files = files_of(model)
    read = load_dual_encoder(files.place, "cpu")
    other = saved(model, 1)
    files.keep(ModelFacts.of(read))
    assert files.facts() is files_of(model).facts() is None
    assert other.fingerprint != read.fingerprint


def test_damaged_facts_are_none(model: Path, tmp_path: Path):
    opened(model)
    (note,) = (tmp_path / "cache" / "models").iterdir()
    note.write_bytes(note.read_bytes().replace(b'"dimension": 8', b'"dimension": 9'))
    assert files_of(model).facts() is None
    note.write_bytes(b"[" * 100_000)
    assert files_of(model).facts() is None


def test_facts_of_other_fields_are_none(tmp_path: Path):
    write_facts(ModelFacts("a", 8, ""), tmp_path / "a.json")
    assert read_facts(tmp_path / "a.json") == ModelFacts("a", 8, "")
    from rungwise.core.disk.sealed_lines import sealed

    (tmp_path / "a.json").write_bytes(sealed({"fingerprint": "a", "dimension": 8}))
    assert read_facts(tmp_path / "a.json") is None


def test_where_nothing_can_be_kept_nothing_is_known_and_nothing_is_refused(model: Path, tmp_path: Path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    opened(model)
    assert files_of(model).facts() is None


def test_what_is_no_model_is_refused_as_by_opening_it(tmp_path: Path, model: Path):
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(UserError) as theirs:
            load_dual_encoder(place, "cpu")
        with pytest.raises(UserError) as ours:
            ModelFiles.of(str(place))
        assert str(ours.value) == str(theirs.value)
    (model / "SHA256SUMS").write_text("no seal")
    with pytest.raises(AlteredModelError):
        ModelFiles.of(str(model))


def test_what_its_files_do_not_tell_is_opened(model: Path):
    assert ModelFiles.of(f"average:{model},{model}") is None
    assert ModelFiles.of("open_clip:ViT-B-32/laion2b_s34b_b79k") is None


def test_a_published_model_under_a_name_without_its_library_is_left_to_who_opens_it(
    published: Published, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tested.ModelFolder, "open", lambda _: tested.ModelFolder(Path(published.clip)))
    assert ModelFiles.of("somebody/clip") is None


def test_a_model_that_reads_a_configuration_of_the_hub_is_opened(published: Published, tmp_path: Path):
    folder = shutil.copytree(published.open_clip, tmp_path / "open_clip")
    assert ModelFiles.of(f"open_clip:{folder}") is not None
    config = folder / "open_clip_config.json"
    config.write_text(config.read_text().replace('"text_cfg": {', '"text_cfg": {"hf_model_name": "roberta-base", '))
    assert ModelFiles.of(f"open_clip:{folder}") is None


def test_a_lazy_model_is_opened_when_it_first_encodes(model: Path):
    read = opened(model)
    times = []

    def open_model() -> DualEncoder:
        times.append(1)
        return load_dual_encoder(model, "cpu")

    lazy = LazyModel(ModelFacts.of(read), open_model, pytest.fail)
    assert (lazy.fingerprint, lazy.dimension, lazy.stands_for) == (read.fingerprint, 8, "")
    assert not times
    np.testing.assert_array_equal(lazy.encode_captions(["a dog"]), read.encode_captions(["a dog"]))
    np.testing.assert_array_equal(lazy.encode_image(photos()).vectors, read.encode_image(photos()).vectors)
    assert len(times) == 1


def test_a_lazy_model_that_is_another_by_then_encodes_nothing(model: Path):
    corrected = []
    lazy = LazyModel(ModelFacts.of(opened(model)), lambda: load_dual_encoder(model, "cpu"), corrected.append)
    other = saved(model, 1)
    with pytest.raises(UserError, match="not the one that its files were known to be; run it again"):
        lazy.encode_captions(["a dog"])
    assert corrected == [ModelFacts.of(other)]


def test_of_an_open_model_the_fingerprint_is_computed_once(model: Path, monkeypatch: pytest.MonkeyPatch):
    read, computed = load_dual_encoder(model, "cpu"), []
    original = type(read).fingerprint.fget
    monkeypatch.setattr(type(read), "fingerprint", property(lambda one: computed.append(1) or original(one)))
    lazy = LazyModel.of(read)
    lazy.encode_captions(["a dog"])
    assert lazy.fingerprint == lazy.facts.fingerprint
    assert len(computed) == 1


def test_an_edited_program_opens_the_model(model: Path, monkeypatch: pytest.MonkeyPatch):
    opened(model)
    monkeypatch.setattr(tested, "_own_modules", lambda: "edited")
    assert files_of(model).facts() is None


def test_weights_under_any_name_count_where_a_list_may_name_them(published: Published, tmp_path: Path):
    folder = shutil.copytree(published.clip, tmp_path / "clip")
    (folder / "model.safetensors.index.json").write_text("{}")
    for name in ("more.bin", ".hidden.safetensors"):
        before = files_of(f"hf:{folder}")._note
        (folder / name).write_bytes(b"x")
        assert files_of(f"hf:{folder}")._note != before
