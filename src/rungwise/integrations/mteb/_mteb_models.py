"""Models of mteb that lie on this machine, as dual encoders of ours; nothing is fetched, and no code of theirs is run.

mteb's own module of a model says how it is loaded and which prompts it takes. Its weights lie in the cache of
Hugging Face's hub, or in a folder of the model's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset
from huggingface_hub import constants, snapshot_download
from mteb.models import ModelMeta
from mteb.models.model_meta import ScoringFunction
from mteb.types import PromptType
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader
from transformers.utils import logging as transformers_logging

from rungwise.core import UserError, digest_of_parts, is_regular, read_json
from rungwise.core.disk import digest_of
from rungwise.core.output import one_line
from rungwise.data import Issue
from rungwise.data.files import FeatureRows
from rungwise.data.pictures import load_array, picture_name
from rungwise.models import DualEncoder, EncodedImages
from rungwise.similarity import Cosine, Inner, Similarity

_BATCH = 32
_TASK = mteb.TaskMetadata(
    name="RungwiseEvaluation",
    description="Captions seek pictures, and pictures captions.",
    dataset={"path": "local", "revision": "local"},
    type="Any2AnyRetrieval",
    category="t2i",
    modalities=["text", "image"],
    eval_langs=[],
    main_score="ndcg_at_10",
    is_public=False,
)
"""What a model of mteb is told of the task, by which it may choose a prompt."""


class MtebModel(DualEncoder):
    """A model of mteb for texts and pictures; texts are encoded as queries and pictures as documents.

    Args:
        model: A model of mteb whose vectors are compared by cosine or inner product.
        fingerprint: Hash of everything that its vectors depend on.

    Raises:
        UserError: If the model does not read both, or compares its vectors in another way.
    """

    kind = "mteb"

    def __init__(self, model: Any, fingerprint: str) -> None:
        self._model, self._fingerprint = model, fingerprint
        self._similarity = _similarity_of(model.mteb_model_meta)
        self._dimension: int = self.encode_text(["a"]).shape[1]

    @property
    def fingerprint(self) -> str:
        """Hash of the model's files, of its name and of the version of mteb."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        return self._dimension

    @property
    def similarity(self) -> Similarity:
        """Cosine, or the inner product of the vectors as they are."""
        return self._similarity

    def encode_text(self, texts: Sequence[str] | FeatureRows) -> NDArray[np.float32]:
        """(texts, D) float32 vectors of captions or queries."""
        if isinstance(texts, FeatureRows):
            raise UserError("a model of mteb reads words, and the data have features in their place; give captions")
        return self._encode("text", list(texts), PromptType.query)

    def encode_image(
        self, pictures: Sequence[Any] | FeatureRows, *, progress: Any = None, cache: Path | None = None
    ) -> EncodedImages:
        """Vectors of pictures; those that cannot be read become issues. Nothing is kept in ``cache``."""
        if isinstance(pictures, FeatureRows):
            raise UserError("a model of mteb reads pictures, and the data have features in their place; give pictures")
        vectors, kept, issues = [np.empty((0, self._dimension), np.float32)], [], []
        for start in range(0, len(pictures), _BATCH):
            opened = []
            for place in range(start, min(start + _BATCH, len(pictures))):
                try:
                    opened.append(Image.fromarray(np.moveaxis(load_array(pictures[place]), 0, -1)))
                    kept.append(place)
                except UserError as error:
                    issues.append(Issue("unreadable picture", picture_name(pictures[place]), str(error)))
            if opened:
                vectors.append(self._encode("image", opened, PromptType.document))
            if progress:
                progress(min(_BATCH, len(pictures) - start))
        return EncodedImages(np.concatenate(vectors), np.array(kept, np.int64), tuple(issues))

    def _encode(self, kind: str, values: list[Any], prompt_type: PromptType) -> NDArray[np.float32]:
        if not values:
            return np.empty((0, self._dimension), np.float32)
        rows = Dataset.from_dict({kind: values})
        batches: DataLoader[Any] = DataLoader(rows, batch_size=_BATCH, collate_fn=_batch)
        with _offline():
            found = self._model.encode(
                batches, task_metadata=_TASK, hf_split="test", hf_subset="default", prompt_type=prompt_type,
                show_progress_bar=False,
            )  # fmt: skip
        found = found.detach().cpu().float().numpy() if hasattr(found, "detach") else found
        vectors = np.asarray(found, np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise UserError(
                f"{self._model.mteb_model_meta.name}: gives no (inputs, D) finite vectors; take another model"
            )
        if isinstance(self._similarity, Cosine):
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return vectors


def load_mteb(name: str, device: str | None = None) -> MtebModel:
    """Open a model of mteb that is on this machine, by its name there.

    Args:
        name: Such as ``"openai/clip-vit-base-patch32"``. Its files lie in the cache of Hugging Face's hub, or in a
            folder of that name below the working directory.
        device: Device such as ``"cpu"``; None leaves it to mteb.

    Raises:
        UserError: If mteb does not know the name; the model reads no pictures or no texts, lies on no disk, is a
            service, or brings code of its own; or mteb cannot load it.
    """
    try:
        meta = mteb.get_model_meta(name)
    except KeyError as error:
        hint = str(error.args[0]).partition("Did you mean: ")[2].rstrip("?").replace("'", "")
        raise UserError(
            f"mteb:{one_line(name, 80)}: mteb {mteb.__version__} knows no such model"
            f"{f'; did you mean {hint}?' if hint else '; mteb.get_model_metas() lists those it knows'}"
        ) from error
    if lacking := {"text", "image"} - set(meta.modalities):
        raise UserError(
            f"mteb:{name}: reads {' and '.join(meta.modalities)}, and no {' and no '.join(sorted(lacking))}; give a"
            " model of texts and pictures"
        )
    if "API" in meta.framework or meta.open_weights is False:
        raise UserError(f"mteb:{name}: is a service on the network, which is not asked; give a model on this machine")
    _similarity_of(meta)
    folder = _folder(meta)
    _refuse_code(name, folder, meta)
    with _offline():
        try:
            model = meta.load_model(device=device)
        except Exception as error:  # of mteb, of the libraries that it calls, and of those that are missing
            said = one_line(" ".join(str(error).split()) or type(error).__name__, 300)
            raise UserError(
                f"mteb:{name}: mteb cannot load it ({said}); correct that, or give another model"
            ) from error
    return MtebModel(model, _fingerprint(name, folder))


@contextmanager
def _offline() -> Iterator[None]:
    """A context in which the client of Hugging Face's hub asks no network, and transformers draws no bars."""
    before, bars = constants.HF_HUB_OFFLINE, transformers_logging.is_progress_bar_enabled()
    constants.HF_HUB_OFFLINE = True
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _folder(meta: ModelMeta) -> Path:
    """Where the files of a model lie; UserError where they do not lie here."""
    name = str(meta.name)
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(snapshot_download(name, revision=meta.revision, local_files_only=True))
    except Exception as error:
        revision = f" --revision {meta.revision}" if meta.revision else ""
        raise UserError(
            f"mteb:{name}: is not on this machine, and nothing is fetched; on a connected machine run: hf download"
            f" {name}{revision}"
        ) from error


def _refuse_code(name: str, folder: Path, meta: ModelMeta) -> None:
    """Refuse a model that brings code of its own, by what its files and mteb say."""
    own = bool(meta.loader_kwargs.get("trust_remote_code"))
    for file in sorted(folder.rglob("*.json")):
        if file.name in _NAMING_CODE and is_regular(file) and not own:
            own = _names_code(read_json(file))
    if own:
        raise UserError(f"mteb:{name}: brings code of its own, which is not run; give another model")


def _names_code(said: Any) -> bool:
    """Whether the content of a configuration names a class that is in no library."""
    if isinstance(said, list):  # the modules of sentence-transformers
        return any(
            isinstance(one, dict) and not str(one.get("type")).startswith("sentence_transformers.") for one in said
        )
    parts = said.values() if isinstance(said, dict) else ()
    return isinstance(said, dict) and (
        "auto_map" in said or any(_names_code(one) for one in parts if isinstance(one, dict))
    )


_NAMING_CODE = (
    "config.json", "modules.json", "tokenizer_config.json", "preprocessor_config.json", "processor_config.json",
    "image_processor_config.json", "video_preprocessor_config.json", "feature_extractor_config.json",
)  # fmt: skip
"""Files in which a model names code."""


def _similarity_of(meta: ModelMeta) -> Similarity:
    if meta.similarity_fn_name == ScoringFunction.COSINE:
        return Cosine()
    if meta.similarity_fn_name == ScoringFunction.DOT_PRODUCT:
        return Inner()
    way = "in a way that mteb does not name" if meta.similarity_fn_name is None else f"by {meta.similarity_fn_name}"
    raise UserError(f"mteb:{meta.name}: compares vectors {way}; give a model that does it by cosine or dot product")


def _fingerprint(name: str, folder: Path) -> str:
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return digest_of_parts([name, mteb.__version__, *(f"{one.relative_to(folder)} {digest_of(one)}" for one in files)])


def _batch(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A batch as mteb's own: pictures and texts in lists."""
    return {column: [row[column] for row in rows] for column in rows[0]}
