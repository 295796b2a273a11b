"""Bi-encoder: the cosine of two captions' sentence embeddings, by any sentence-transformers model.

It sees meaning beyond words ("a pup" is near "a small dog"); it misses what its model was not taught, often counts,
colours and who does what to whom. A model costs one pass per caption, so all pairs cost little more than a product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.language.sentence_models import PACKAGED_MODEL, Precision, load_sentence_model, weights_hash, wiring
from rungwise.relevance._base import Reference
from rungwise.relevance.embedding._base import VectorSource
from rungwise.similarity import unit_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["BiEncoder"]

_RUN = 4096
"""Number of captions that are encoded between two reports of progress."""


class BiEncoder(VectorSource):
    """R by the cosine of sentence embeddings.

    The model is loaded when the source is built, captions are encoded when degrees are first asked for, equal texts
    once.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        model: A name on the Hugging Face hub, a local folder, :data:`PACKAGED_MODEL`, or a model that is loaded.
        reference: Which captions stand for an image, as in :class:`~rungwise.relevance.CaptionPairSource`.
        paired: (images,) the caption that stands for each image.
        leave_one_out: A caption is no reference for itself.
        images: Number of images, where the last ones have no caption.
        batch_size: Captions per pass.
        precision: ``"bfloat16"`` is about twice as fast where the processor has it, at a cosine of .998 to float32.
        device: Device such as ``"cuda"``; None takes ``"cuda"`` where there is one. A loaded model stays where it is.
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
        """(captions, dimension) vectors of length 1."""
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
        return unit_rows(distinct)[[row[text] for text in self.captions]]

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
        """The choice of references and the model's fingerprint."""
        return {**super().options(), "model": self.fingerprint}
