"""Folders of transformers and sentence-transformers, checked before the libraries load them.

Both libraries were made for models that one trusts. Their configuration files may name Python classes to import, files
to unpickle, kernels to download and other models to load instead. Here a model is numbers and rules of a known kind,
or it is refused: weights in safetensors, an architecture for texts, modules that are listed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from rungwise.core import UserError, read_json, require_regular
from rungwise.core.network import hub_folder

PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Files of a hub repository that are fetched: texts, tokenizers and weights that are not pickled."""

ARCHITECTURES = {
    "albert", "bart", "bert", "big_bird", "camembert", "canine", "convbert", "data2vec-text", "deberta",
    "deberta-v2", "distilbert", "electra", "ernie", "eurobert", "fnet", "funnel", "gemma", "gemma2", "gemma3_text",
    "gpt2", "gpt_neox", "gte", "ibert", "llama", "longformer", "luke", "mbart", "megatron-bert", "mistral",
    "mobilebert", "modernbert", "mpnet", "mra", "mt5", "nomic_bert", "nystromformer", "opt", "phi3", "qwen2",
    "qwen3", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "squeezebert", "t5", "umt5",
    "xlm", "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod", "yoso",
}  # fmt: skip
"""Values of ``model_type`` for text networks that load nothing else."""

MODULES = frozenset({"Transformer", "Pooling", "Normalize", "Dense", "LayerNorm", "Dropout", "StaticEmbedding"})
"""Modules of sentence-transformers that are built only from numbers and plain settings."""

_PACKAGE = "sentence_transformers."
_ATTENTION = (None, "eager", "sdpa")
_OWN_ARGUMENTS = {
    "dtype", "torch_dtype", "attn_implementation", "max_length", "model_max_length", "padding", "padding_side",
    "truncation", "truncation_side", "do_lower_case", "add_bos_token", "add_eos_token",
}  # fmt: skip
"""Arguments of transformers that a sentence model may set."""
_TRANSFORMER_SETTINGS = {
    "max_seq_length", "do_lower_case", "transformer_task", "modality_config", "module_output_name",
    "model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs",
}  # fmt: skip
_FORWARD = {"method": ("forward",), "method_output_name": ("last_hidden_state", "logits", None)}


_MOST_GROWTH, _MOST_TOKENS, _MOST_PARTS = 1000, 100_000, 100_000
_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\\?\Z)|\{\d{0,18},?\d{0,18}\}|.", re.DOTALL)
"""Tokens of a regular expression: an escape, a class of characters, a number of times, any other character. A class
without an end goes to the end of the text, or each bracket in it would search for that again.
"""
_ENDLESS = re.compile(r"\{\d{1,18},\}")


def checked_folder(name: str | Path, kind: str) -> str:
    """The folder of a model on this machine, checked to hold nothing that would be run.

    Args:
        name: The folder, or a name on the hub, whose files are then fetched.
        kind: Kind of model in messages.

    Raises:
        UserError: If the name is a path but no folder, the model cannot be fetched, or it holds or asks for what is not
            allowed.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if not isinstance(name, str) or name.startswith((".", "/", "~")):
            raise UserError(f"{name}: no such folder of a {kind}; correct the path")
        folder = hub_folder(name, PATTERNS)
    try:
        check_model_folder(folder)
    except RecursionError:
        raise UserError(f"{folder}: its settings are nested too deeply; give another model") from None
    return str(folder)


def check_model_folder(folder: Path) -> None:
    """Refuse a folder of a language model that asks for code, pickles, other models or unlisted parts.

    Raises:
        UserError: Naming the file and what it asks for.
    """
    if (folder / "adapter_config.json").exists():
        raise UserError(
            f"{folder / 'adapter_config.json'}: an adapter, which loads another model by its name; merge the two with"
            " peft's merge_and_unload, and give the folder that this saves"
        )
    modules = folder / "modules.json"
    parts = dict(_modules(modules)) if modules.exists() else {folder: "Transformer"}
    for part, kind in parts.items():
        check_files(part)
        check_weights(part)
        if kind == "Transformer":
            _check_transformer(part)
        elif (part / "config.json").exists():
            _check_module(part / "config.json")


def _modules(file: Path) -> Iterator[tuple[Path, str]]:
    """Folder and class of each module of a sentence model."""
    found = read_json(file)
    if not isinstance(found, list):
        raise UserError(f"{file}: expected a list of modules; save the model anew")
    for one in found:
        place, kind = (one.get("path"), one.get("type")) if isinstance(one, dict) else (None, None)
        if not isinstance(place, str) or not isinstance(kind, str):
            raise UserError(f"{file}: a module needs a path and a type, both texts; save the model anew")
        name = kind.rsplit(".", 1)[-1]
        if not kind.startswith(_PACKAGE) or name not in MODULES:
            raise UserError(
                f"{file}: a module of type {kind[:100]!r}, which would be imported and run; allowed are those of"
                f" sentence-transformers named {', '.join(sorted(MODULES))}"
            )
        if not stays_inside(place):
            raise UserError(f"{file}: the path {place[:100]!r} leaves the folder; save the model anew")
        yield file.parent / place, name


def stays_inside(path: str) -> bool:
    """Whether a relative path leads to a place within its folder.

    >>> stays_inside("0_CLIPModel"), stays_inside("../other")
    (True, False)
    """
    return "\\" not in path and not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


def check_files(folder: Path) -> None:
    """Refuse files that are not regular among those that libraries open by themselves."""
    for pattern in PATTERNS:
        for file in folder.glob(pattern):
            require_regular(file, None if file.suffix == ".safetensors" else "json_bytes")


def check_weights(folder: Path) -> None:
    """Refuse weights that are pickled, or that lie outside the folder."""
    pickled = [name for name in ("pytorch_model.bin", "pytorch_model.bin.index.json") if (folder / name).exists()]
    index = folder / "model.safetensors.index.json"
    if pickled and not index.exists() and not (folder / "model.safetensors").exists():
        raise UserError(
            f"{folder / pickled[0]}: weights as a pickle, which can run code and is not read; save the model with"
            " safetensors and give that folder"
        )
    if index.exists():
        files = _mapping(index).get("weight_map")
        for shard in files.values() if isinstance(files, dict) else ():
            if not isinstance(shard, str) or not shard.endswith(".safetensors") or len(PurePosixPath(shard).parts) != 1:
                raise UserError(f"{index}: {str(shard)[:100]!r} is no safetensors file of this folder")


def _check_transformer(folder: Path) -> None:
    config = folder / "config.json"
    if config.exists():
        asked = _mapping(config)
        architecture = asked.get("model_type")
        if architecture is not None and str(architecture) not in ARCHITECTURES:
            raise UserError(
                f"{config}: model_type {str(architecture)[:60]!r} is no network for texts that is read here; those are"
                f" {', '.join(sorted(ARCHITECTURES))}"
            )
        _check_config(config, asked)
    for own in folder.glob("sentence_*_config.json"):
        _check_sentence_settings(own)
    tokenizer = folder / "tokenizer_config.json"
    if tokenizer.exists():
        _mapping(tokenizer)
    rules = folder / "tokenizer.json"
    if rules.exists():
        check_rules(_mapping(rules), rules)


def check_rules(said: object, where: object) -> None:
    """Refuse rules of a tokenizer that can take for ever on one text, or turn it into one that no memory holds.

    Args:
        said: Content of ``tokenizer.json``.
        where: Place that an error names.

    Raises:
        UserError: Naming the pattern, or if ``said`` holds no rules at all.

    >>> check_rules({"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+"}, "content": ""}}, "tokenizer.json")
    Traceback (most recent call last):
    rungwise.core.UserError: tokenizer.json: the pattern '(a+)+' repeats a repetition, which can take for ever
    """
    if not isinstance(said, Mapping):
        raise UserError(f"{where}: not a tokenizer (no JSON object); copy the folder anew")
    for part in ("normalizer", "pre_tokenizer"):
        _check_patterns(where, said.get(part))
    if growth(said.get("normalizer")) > _MOST_GROWTH or _padded(said.get("padding")) > _MOST_TOKENS:
        raise UserError(f"{where}: makes of a short text one that no memory holds; give another model")


def _check_patterns(file: object, part: object) -> None:
    """Refuse patterns that repeat a repetition, such as ``(a+)+``: one caption can hold them up for ever."""
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _check_patterns(file, one)
    pattern = part.get("Regex") if isinstance(part, dict) else None
    if isinstance(pattern, str) and repeats_a_repetition(pattern):
        raise UserError(f"{file}: the pattern {pattern[:100]!r} repeats a repetition, which can take for ever")


def growth(part: object) -> float:
    """Largest factor by which rules of replacement can lengthen a text, applied one after the other."""
    if isinstance(part, list):
        return math.prod(growth(one) for one in part)
    if not isinstance(part, dict):
        return 1
    content, pattern = part.get("content"), part.get("pattern")
    own = 1.0
    if part.get("type") == "Replace" and isinstance(content, str):
        given = pattern.get("String") if isinstance(pattern, dict) else None
        own = max(1.0, len(content) / max(1, len(given) if isinstance(given, str) else 1))
    return own * growth(part.get("normalizers"))


def _padded(padding: object) -> int:
    """The length that every text is padded to, if the tokenizer sets one."""
    if not isinstance(padding, dict):
        return 0
    strategy = padding.get("strategy")
    said = (strategy.get("Fixed") if isinstance(strategy, dict) else 0, padding.get("pad_to_multiple_of"))
    return max((one for one in said if isinstance(one, int)), default=0)


def repeats_a_repetition(pattern: str) -> bool:
    r"""Whether a group of a regular expression that holds an endless repetition or a choice is repeated without end.

    >>> repeats_a_repetition(r"(a+)+$"), repeats_a_repetition(r"(?:x(\d{2,}y)?)*"), repeats_a_repetition(r"(a|a)+$")
    (True, True, True)
    >>> repeats_a_repetition(r"'s|[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}| ?[^\s+*(]+[\r\n]*|\s+(?!\S)|(?:a{2})+")
    False
    """
    groups = [False]  # whether each open group holds a repetition or a choice
    closed = False  # whether the group that has just ended does
    for token in _TOKENS.findall(pattern):
        if token == "(":
            groups.append(False)
        elif token == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] |= closed
            continue
        elif token in ("*", "+") or _ENDLESS.fullmatch(token):
            if closed:
                return True
            groups[-1] = True
        elif token == "|":
            groups[-1] = True
        closed = False
    return False


def _check_config(file: Path, values: Mapping[str, Any]) -> None:
    """Refuse settings of a transformers configuration that go beyond a network, at any depth."""
    for name, value in values.items():
        if (name == "num_labels" or "layers" in name) and isinstance(value, int | float) and value > _MOST_PARTS:
            # They are built one by one, before anything is compared with the weights.
            raise UserError(
                f"{file}: {name[:60]} is {str(value)[:40]}, and at most {_MOST_PARTS:,} are read; copy the file anew"
            )
        if name.endswith("attn_implementation") or name.endswith("attn_implementation_internal"):
            if value not in _ATTENTION:
                raise UserError(
                    f"{file}: {name} {str(value)[:60]!r}, which may be fetched and run; allowed are eager and sdpa"
                )
        elif name in ("quantization_config", "transformers_weights") and value:
            raise UserError(f"{file}: {name}, which loads more than this model's weights; give the model without it")
        elif isinstance(value, dict):
            _check_config(file, value)


def _check_sentence_settings(file: Path) -> None:
    values = _mapping(file)
    for name, value in values.items():
        if name not in _TRANSFORMER_SETTINGS:
            raise UserError(f"{file}: {name[:60]!r} is no setting that is read here; save the model anew")
        if name == "modality_config":
            _check_modality(file, value)
        elif name.endswith(("_args", "_kwargs")):
            _check_arguments(file, name, value)
        elif isinstance(value, dict | list):
            raise UserError(f"{file}: {name} must be a single value; save the model anew")


def _check_modality(file: Path, value: object) -> None:
    """Refuse other modalities than text, and other methods than ``forward``, which the library would call by name."""
    if not isinstance(value, dict) or set(value) - {"text"}:
        raise UserError(f"{file}: modality_config may speak of text alone; give a model of texts")
    for said in value.values():
        if not isinstance(said, dict) or any(said[name] not in _FORWARD.get(name, ()) for name in said):
            raise UserError(f"{file}: modality_config may name the method forward alone; save the model anew")


def _check_arguments(file: Path, name: str, value: object) -> None:
    if not isinstance(value, dict):
        raise UserError(f"{file}: {name} must be a mapping; save the model anew")
    for argument, one in value.items():
        if argument == "trust_remote_code" and not one:
            continue
        if argument not in _OWN_ARGUMENTS or isinstance(one, dict | list):
            raise UserError(
                f"{file}: {name} asks for {argument[:60]!r}; allowed are {', '.join(sorted(_OWN_ARGUMENTS))}"
            )
    _check_config(file, value)


def _check_module(file: Path) -> None:
    """Check a layer after the network: its function may be one of torch's activations."""
    function = _mapping(file).get("activation_function")
    if function is None:
        return
    module, _, name = str(function).rpartition(".")
    if module not in ("torch.nn.modules.activation", "torch.nn.modules.linear") or (
        module.endswith("linear") and name != "Identity"
    ):
        raise UserError(
            f"{file}: activation_function {str(function)[:100]!r}, which would be imported and run; allowed are those"
            " of torch.nn.modules.activation"
        )


def _mapping(file: Path) -> dict[str, Any]:
    found = read_json(file)
    if not isinstance(found, dict):
        raise UserError(f"{file}: expected a JSON object; save the model anew")
    return found
