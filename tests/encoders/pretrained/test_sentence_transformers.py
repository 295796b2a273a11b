import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.encoders.pretrained._sentence_transformers import inner
from rungwise.models import load
from tests.published import CAPTIONS, Published, opened, photos

sentence_transformers = pytest.importorskip("sentence_transformers")


@pytest.fixture
def folder(published: Published, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(published.sentence, tmp_path / "model")


@pytest.mark.parametrize("name", ["sentence", "old_sentence"])
def test_vectors_are_those_of_the_library(name: str, published: Published) -> None:
    folder = getattr(published, name)
    own = sentence_transformers.SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    model = load(f"st:{folder}", "cpu")
    images = own.encode(opened(photos()), normalize_embeddings=True)
    assert model.encode_image(photos()).vectors == pytest.approx(images, abs=1e-5)
    assert model.encode_text(CAPTIONS) == pytest.approx(own.encode(list(CAPTIONS), normalize_embeddings=True), abs=1e-5)


def test_a_shorter_context_is_kept(folder: Path) -> None:
    file = folder / "sentence_bert_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"max_seq_length": 5}))
    own = sentence_transformers.SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    model = load(f"st:{folder}", "cpu")
    assert model.longest_text == 5
    assert model.encode_text(CAPTIONS) == pytest.approx(own.encode(list(CAPTIONS), normalize_embeddings=True), abs=1e-5)


def test_siglip_is_read_where_texts_are_filled_up_as_in_training(published: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(published.siglip2, tmp_path / "model")
    kind = "sentence_transformers.base.modules.transformer.Transformer"
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": kind}]))
    with pytest.raises(UserError, match=r"a vector depends on its neighbours; .* give hf:"):
        load(f"st:{folder}", "cpu")
    filled = {"processing_kwargs": {"text": {"padding": "max_length"}}}
    (folder / "sentence_bert_config.json").write_text(json.dumps(filled))
    published_as_it_is = load(f"hf:{published.siglip2}", "cpu")
    assert load(f"st:{folder}", "cpu").fingerprint == published_as_it_is.fingerprint


def one(name: str, **settings: Any) -> Callable[[Path], Any]:
    def spoil(folder: Path) -> None:
        said = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(said | settings))

    return spoil


def modules(*kinds: str, path: str = "") -> Callable[[Path], Any]:
    said = [{"idx": place, "path": path, "type": kind} for place, kind in enumerate(kinds)]
    return lambda folder: (folder / "modules.json").write_text(json.dumps(said))


LIBRARY = "sentence_transformers.models."
METHOD = {"method": "eval", "method_output_name": "x"}
REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no modules": (lambda folder: (folder / "modules.json").unlink(), "no model of sentence-transformers here"),
    "a stranger's module": (modules("somebody.code.CLIPModel"), "modules somebody.code.CLIPModel; read are"),
    "a layer after it": (modules(f"{LIBRARY}CLIPModel", f"{LIBRARY}Dense"), "modules CLIPModel, Dense; read are"),
    "a place elsewhere": (modules(f"{LIBRARY}CLIPModel", path="../x"), "a path in the folder"),
    "a prompt": (one("config_sentence_transformers.json", default_prompt_name="query"), "prompts are not read"),
    "another similarity": (one("config_sentence_transformers.json", similarity_fn_name="dot"), "only cosine is read"),
    "another method": (
        one("sentence_bert_config.json", modality_config={"text": METHOD, "image": METHOD}),
        "expected the method get_text_features",
    ),
    "texts alone": (one("sentence_bert_config.json", modality_config={"text": METHOD}), "does not read pictures"),
    "arguments": (one("sentence_bert_config.json", model_kwargs={"trust_remote_code": True}), "model_kwargs .* is not"),
    "no number": (one("sentence_bert_config.json", max_seq_length="long"), "max_seq_length 'long' must be"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_folder_is_refused_in_one_line(case: str, folder: Path) -> None:
    spoil, said = REFUSED[case]
    spoil(folder)
    with pytest.raises(UserError, match=said) as refused:
        load(f"st:{folder}", "cpu")
    assert "\n" not in str(refused.value)


def test_normalising_afterwards_changes_nothing(published: Published, folder: Path) -> None:
    modules(f"{LIBRARY}CLIPModel", f"{LIBRARY}Normalize")(folder)
    assert inner(folder).folder == folder
    assert load(f"st:{folder}", "cpu").fingerprint == load(f"st:{published.sentence}", "cpu").fingerprint
