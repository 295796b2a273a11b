"""Strangers' folders of language models: each asks for something that would be run, and gets one line instead."""

import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.language._model_folders import (
    ARCHITECTURES,
    PATTERNS,
    check_model_folder,
    checked_folder,
    repeats_a_repetition,
)
from rungwise.language.sentence_models import load_sentence_model
from rungwise.relevance.embedding.cross_encoder import CrossEncoder

transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")
torch = pytest.importorskip("torch")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sentence model as its library saves it."""
    raw, folder = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("sound")
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(raw)
    (raw / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(raw / "vocab.txt"), model_max_length=16).save_pretrained(raw)
    from sentence_transformers import models

    network = models.Transformer(str(raw))
    dense = models.Dense(8, 4, activation_function=torch.nn.Tanh())
    parts = [network, models.Pooling(8), dense, models.Normalize()]
    sentence_transformers.SentenceTransformer(modules=parts, device="cpu").save(str(folder))
    return folder


@pytest.fixture
def model(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "model"))


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a module named ``evil`` writes when it is imported, wherever it is found."""
    mark = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nclass Layer: pass\n"
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "evil.py").write_text(code)
    (tmp_path / "model" / "evil.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    return mark


def edited(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / name
        found = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(change(found)))

    return edit


def updated(name: str, **values: Any) -> Callable[[Path], None]:
    return edited(name, lambda found: found | values)


def module(place: int, **values: Any) -> Callable[[Path], None]:
    return edited("modules.json", lambda found: [*found[:place], found[place] | values, *found[place + 1 :]])


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Evil(folder.parent / "ran")}, folder / "pytorch_model.bin")


def pickled_layer(folder: Path) -> None:
    (folder / "2_Dense" / "model.safetensors").unlink()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(folder.parent / "ran")))


def disguised(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil(folder.parent / "ran")))


def piped(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


def deep(depth: int) -> Any:
    found: Any = {}
    for _ in range(depth):
        found = {"normalizers": [found]}
    return found


DENSE = "2_Dense/config.json"
GROWING = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
SETTINGS = "sentence_bert_config.json"

HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a module of any package": (module(1, type="evil.Layer"), "modules.json: a module of type 'evil.Layer'"),
    "a module of a standard package": (module(1, type="os.system"), "a module of type 'os.system'"),
    "a module that names modules": (
        module(1, type="sentence_transformers.models.Router"),
        "a module of type 'sentence_transformers.models.Router'",
    ),
    "a module that unpickles": (
        module(1, type="sentence_transformers.models.WordEmbeddings"),
        "a module of type 'sentence_transformers.models.WordEmbeddings'",
    ),
    "a function as a module": (
        module(1, type="sentence_transformers.util.http_get"),
        "a module of type 'sentence_transformers.util.http_get'",
    ),
    "a module elsewhere": (module(1, path="../../elsewhere"), "leaves the folder"),
    "a module at a path": (module(1, path="/tmp"), "leaves the folder"),
    "a module without a path": (module(1, path=None), "needs a path and a type"),
    "a module of numbers": (module(1, type=5), "needs a path and a type"),
    "modules that are none": (edited("modules.json", lambda found: {"a": found}), "expected a list of modules"),
    "modules that are texts": (edited("modules.json", lambda found: ["evil.Layer"]), "needs a path and a type"),
    "an activation of any package": (updated(DENSE, activation_function="evil.Layer"), "'evil.Layer', which would be"),
    "an activation that runs": (updated(DENSE, activation_function="torch.hub.load"), "'torch.hub.load', which would"),
    "an activation that is a list": (updated(DENSE, activation_function=["os.system"]), "which would be imported"),
    "code beside the network": (
        updated("config.json", model_type="own", auto_map={"AutoModel": "evil.Layer", "AutoConfig": "evil.Layer"}),
        "model_type 'own' is no network for texts",
    ),
    "code in place of a network that is known": (
        updated("config.json", auto_map={"AutoModel": "evil.Layer", "AutoConfig": "evil.Layer"}),
        "",
    ),
    "code beside the tokenizer": (
        updated("tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Layer", "evil.Layer"]}),
        "",
    ),
    "a picture network of timm": (
        updated("config.json", model_type="timm_wrapper", architecture="x", model_args={"checkpoint_path": "EVIL"}),
        "model_type 'timm_wrapper' is no network for texts",
    ),
    "an index that unpickles": (updated("config.json", model_type="rag"), "model_type 'rag' is no network for texts"),
    "a list as a network": (updated("config.json", model_type=["bert"]), "is no network for texts"),
    "kernels of a stranger": (updated("config.json", attn_implementation="evil/kernel"), "may be fetched and run"),
    "kernels within": (
        updated("config.json", text_config={"_attn_implementation": "evil/kernel:main"}),
        "may be fetched and run",
    ),
    "quantised weights": (updated("config.json", quantization_config={"quant_method": "gptq"}), "quantization_config"),
    "weights of another name": (updated("config.json", transformers_weights="../x.bin"), "transformers_weights"),
    "another model in its place": (
        updated("adapter_config.json", base_model_name_or_path="evil/model"),
        "an adapter, which loads another model",
    ),
    "a method of the network": (
        updated(SETTINGS, modality_config={"text": {"method": "save_pretrained", "method_output_name": None}}),
        "may name the method forward alone",
    ),
    "a method of lists": (updated(SETTINGS, modality_config={"text": {"method": ["forward"]}}), "method forward alone"),
    "other modalities": (updated(SETTINGS, modality_config={"image": {"method": "forward"}}), "of text alone"),
    "trust in code": (updated(SETTINGS, model_args={"trust_remote_code": True}), "asks for 'trust_remote_code'"),
    "trust in pickles": (updated(SETTINGS, model_kwargs={"weights_only": False}), "asks for 'weights_only'"),
    "a place to write": (updated(SETTINGS, config_args={"cache_dir": "/some/evil"}), "asks for 'cache_dir'"),
    "kernels by arguments": (updated(SETTINGS, model_args={"attn_implementation": "a/b"}), "may be fetched and run"),
    "arguments that are none": (updated(SETTINGS, model_args="x"), "must be a mapping"),
    "a setting that nobody knows": (updated(SETTINGS, backend="onnx"), "'backend' is no setting"),
    "a setting of many values": (updated(SETTINGS, max_seq_length=[1]), "must be a single value"),
    "pickled weights": (pickled, "pytorch_model.bin: weights as a pickle"),
    "a pickled layer": (pickled_layer, "pytorch_model.bin: weights as a pickle"),
    "a pickle under another name": (disguised, "cannot be loaded as a sentence-transformers model"),
    "shards elsewhere": (
        updated("model.safetensors.index.json", weight_map={"a": "../../other.safetensors"}),
        "no safetensors file of this folder",
    ),
    "pickled shards": (updated("model.safetensors.index.json", weight_map={"a": "a.bin"}), "no safetensors file"),
    "a pipe": (piped, "is a pipe, not a file"),
    "deep settings": (lambda folder: (folder / "config.json").write_text("[" * 10**5) and None, "nested too deeply"),
    "settings as deep as JSON can say them": (updated("config.json", x=deep(450)), "cannot be loaded"),
    "rules as deep as JSON can say them": (updated("tokenizer.json", normalizer=deep(450)), "nested too deeply"),
    "settings that are none": (edited("config.json", lambda _: ["bert"]), "expected a JSON object"),
    "a tokenizer that is none": (edited("tokenizer.json", lambda _: {"model": {}}), "cannot be loaded"),
    "a tokenizer of tokens without end": (
        edited("tokenizer.json", lambda found: found | {"post_processor": {"type": "Evil"}}),
        "cannot be loaded",
    ),
    "a pattern without end": (
        edited(
            "tokenizer.json",
            lambda found: (
                found
                | {
                    "pre_tokenizer": {
                        "type": "Sequence",
                        "pretokenizers": [
                            {"type": "Split", "pattern": {"Regex": "(a|b+)*$"}, "behavior": "Isolated", "invert": False}
                        ],
                    }
                }
            ),
        ),
        "the pattern '(a|b+)*$' repeats a repetition",
    ),
    "rules that blow up a text": (
        updated("tokenizer.json", normalizer={"type": "Sequence", "normalizers": [GROWING] * 8}),
        "makes of a short text one that no memory holds",
    ),
    "padding without end": (
        edited("tokenizer.json", lambda found: found | {"padding": {"strategy": {"Fixed": 10**12}}}),
        "makes of a short text one that no memory holds",
    ),
    "padding to multiples without end": (
        edited("tokenizer.json", lambda found: found | {"padding": {"pad_to_multiple_of": 10**12}}),
        "makes of a short text one that no memory holds",
    ),
    "words without the one for others": (
        edited("tokenizer.json", lambda found: found | {"model": found["model"] | {"vocab": {"a": 0}}}),
        "cannot be loaded",
    ),
    "numbers beyond the table": (
        edited(
            "tokenizer.json",
            lambda found: found | {"model": found["model"] | {"vocab": found["model"]["vocab"] | {",": 10**6}}},
        ),
        "cannot be loaded",
    ),
    "a size that no memory holds": (updated("config.json", hidden_size=2**40), "cannot be loaded"),
    "layers without end": (
        updated("config.json", num_hidden_layers=10**9),
        "num_hidden_layers is 1000000000, and",
    ),
    "outputs without end": (updated("config.json", num_labels=10**9), "num_labels is 1000000000, and at most 100,000"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_has_one_line_and_runs_nothing(name: str, model: Path, mark: Path) -> None:
    change, message = HOSTILE[name]
    change(model)
    if message:
        with pytest.raises(UserError) as caught:
            load_sentence_model(model, "cpu")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1500
    else:  # the library's own class takes the place of what the folder brings along
        assert load_sentence_model(model, "cpu").encode(["a dog"]).shape == (1, 4)
    assert not mark.exists()
    assert "evil" not in sys.modules


def test_the_harm_is_real(model: Path, mark: Path) -> None:
    """What the folders above ask for does write the file, where it is trusted."""
    import importlib

    importlib.import_module("evil")
    assert mark.exists()
    mark.unlink()
    pickled(model)
    torch.load(model / "pytorch_model.bin", weights_only=False)
    assert mark.exists()


def test_a_cross_encoder_is_looked_through_as_well(model: Path, mark: Path) -> None:
    (model / "modules.json").unlink()
    for change, message in (
        (updated("config.json", model_type="timm_wrapper"), "no network for texts"),
        (pickled, "weights as a pickle"),
    ):
        change(model)
        with pytest.raises(UserError, match=message):
            CrossEncoder(["a dog"], [0], model, scale="raw")
        shutil.copy(mark.parent / "model" / "config.json", mark.parent / "kept.json")
        updated("config.json", model_type="bert")(model)
    assert not mark.exists()


def test_a_model_of_pairs_is_no_sentence_model(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt"), model_max_length=16).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="scores pairs of texts and has no vectors of single ones") as refused:
        load_sentence_model(tmp_path, "cpu")
    assert "\n" not in str(refused.value)


def test_a_sound_folder_passes(sound: Path) -> None:
    check_model_folder(sound)
    assert checked_folder(sound, "sentence model") == str(sound)
    assert load_sentence_model(sound, "cpu").encode(["a dog"]).shape == (1, 4)


def test_a_name_on_the_hub_is_fetched_without_pickles_and_looked_through(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda name, **how: asked.append((name, how)) or str(model)
    )
    assert load_sentence_model("someone/model", "cpu").encode(["a"]).shape == (1, 4)
    assert [(name, how["allow_patterns"]) for name, how in asked] == [("someone/model", list(PATTERNS))]
    assert not any(pattern.endswith((".bin", ".pt", ".py", ".pkl", "*")) for pattern in PATTERNS)
    module(1, type="evil.Layer")(model)
    with pytest.raises(UserError, match="a module of type 'evil.Layer'"):
        load_sentence_model("someone/model", "cpu")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(a+)+", True), ("(a*)*b", True), ("((a+)b)+", True), ("(?:a|b+)*", True), ("(a{2,})+", True),
        ("(a+){3,}", True), ("(?>x(y+)?)*", True), ("([a]+)+", True), (r"(\(+)+", True), ("(a+)?b+", False),
        ("(ab)+", False), ("a+b+c+", False), (r"(\+)+", False), ("([+*])+", False), ("(a{2})+", False),
        ("(a+){2}", False), (r"[)(]+", False), (")+", False), ("(", False), ("", False), ("[", False), ("\\", False),
    ],
)  # fmt: skip
def test_repetitions_of_repetitions_are_seen(pattern: str, expected: bool) -> None:
    assert repeats_a_repetition(pattern) is expected


def test_the_architectures_are_those_that_transformers_has_itself() -> None:
    known = set(transformers.CONFIG_MAPPING.keys())
    assert known | {"gte"} >= ARCHITECTURES
    assert not {name for name in known if "timm" in name or name in ("rag", "bark", "dac")} & ARCHITECTURES
