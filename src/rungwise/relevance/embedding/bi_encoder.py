"""Bi-encoder: the cosine of two captions' sentence embeddings, by any sentence-transformers model.

It sees meaning beyond words ("a pup" is near "a small dog"); it misses what its model was not taught, often counts,
colours and who does what to whom. A model costs one pass per caption, so all pairs cost little more than a product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.language.sentence_models import PACKAGED_MODEL, load_sentence_model, weights_hash, wiring
from rungwise.relevance._captions import References
from rungwise.relevance.embedding._base import VectorSource
from rungwise.relevance.embedding._inference import Inference
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
        leave_one_out: A caption is no reference for itself.
        images: Number of images, where the last ones have no caption.
        inference: How the model is run: captions per pass, precision, device, progress.

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
        reference: References = "max",
        leave_one_out: bool = False,
        images: int | None = None,
        inference: Inference | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, reference=reference, leave_one_out=leave_one_out, images=images)
        self.inference = inference or Inference()
        self.model = load_sentence_model(model, self.inference.device) if isinstance(model, str | Path) else model

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(captions, dimension) vectors of length 1."""
        import torch

        texts = sorted(dict.fromkeys(self.captions), key=len, reverse=True)
        run, parts = self.inference, []
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=run.precision == "bfloat16"):
            for start in range(0, len(texts), _RUN):
                some = texts[start : start + _RUN]
                encoded = self.model.encode(
                    some, batch_size=run.batch_size, convert_to_tensor=True, show_progress_bar=False
                )
                parts.append(encoded.float().cpu().numpy())
                if run.progress is not None:
                    run.progress(len(some))
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
            f"{modules} {prompt!r} {self.model.max_seq_length} {self.inference.precision}"
            f" {wiring(config, getattr(self.model, 'tokenizer', None))}",
        )

    def options(self) -> Mapping[str, Any]:
        """The choice of references and the model's fingerprint."""
        return {**super().options(), "model": self.fingerprint}
