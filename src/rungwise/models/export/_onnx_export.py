"""Export of a model of two sides as two ONNX graphs, compared with it before anything is written.

Each graph holds a whole side: normalisation of pixels, encoder, head, and the similarity's preparation of vectors.
Sizes of batches and lengths of texts are free.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.core import UserError, read_bytes, readable, require, to_plain
from rungwise.core.disk.folders import replacing_folder
from rungwise.core.version import __version__
from rungwise.encoders import Preprocessing
from rungwise.encoders.pretrained import PretrainedTextSide
from rungwise.encoders.vocabulary import read_vocabulary
from rungwise.models._contracts import PairScorer
from rungwise.models._dual_encoder import TwoTower
from rungwise.models.export._onnx_graphs import (
    OUTPUT,
    Graph,
    Input,
    check_graph,
    default_threads,
    messages_below,
)
from rungwise.models.export._onnx_model import OnnxConfig, Origin, WordCutter, fingerprint_of, pad_tokens
from rungwise.models.io import (
    CALIBRATION,
    CARD,
    CONFIG,
    FORMAT,
    IMAGE_GRAPH,
    TEXT_GRAPH,
    TOKENIZER,
    model_card,
    parts_of_export,
)

OPSET = 18
"""Version of ONNX's operators: the first that both exporters of torch write and that has what layers need."""

LEAST_COSINE = 0.9999
"""Least cosine of a graph's vector with the model's; an export that falls below is not written."""

_FARTHEST = 0.0142
"""The same bound as a distance, in lengths of the model's vector: vectors of the inner product are not of length 1."""

_MOST_BYTES = (1 << 31) - (1 << 22)
_BATCHES = (1, 3, 8)
_TEXTS = (
    "",
    "dog",
    "A dog.",
    "two dogs running through snow",
    "A man in a RED shirt, climbing; he doesn't look down!",
    "ein Hund springt über eine Mauer",
    "一隻狗在雪地裡奔跑",
    "the quick brown fox jumps over the lazy dog while 3 children watch from a wooden bridge near the old mill",
    "a " * 40 + "street market at night with many people, lanterns and steam rising from large pots of soup",
    "a word " * 400,
)


@dataclass(frozen=True)
class ExportAgreement:
    """How close the vectors of a graph are to the model's.

    Attributes:
        what: What was compared, such as "texts of one length".
        count: Number of compared vectors.
        cosine: The least cosine.
        distance: The largest distance, in lengths of the model's vector.
    """

    what: str
    count: int
    cosine: float
    distance: float

    def __str__(self) -> str:
        return (
            f"{self.what}: least cosine with the model's {self.cosine:.7f} of {self.count} vectors,"
            f" at most {self.distance:.1e} of a length apart"
        )

    @property
    def is_close(self) -> bool:
        """Whether the graph is close enough to replace the model."""
        return self.cosine >= LEAST_COSINE and self.distance <= _FARTHEST


def export_onnx(model: PairScorer, folder: Path | str) -> tuple[ExportAgreement, ...]:
    """Write a model as a folder of ONNX graphs, which :func:`rungwise.models.load` reads without torch.

    The graphs are computed with onnxruntime and compared with the model: pictures in batches of several sizes, texts of
    one length, and texts of several lengths in padded batches. The folder appears whole or not at all.

    Args:
        model: A joint embedding or a fitted model on any device; it is exported in float32.
        folder: Folder to make; an exported model that stands there is replaced.

    Returns:
        How close the graphs are to the model, one entry for each kind of input.

    Raises:
        UserError: If the model cannot be exported, a graph's vectors are not those of the model, a side has more than
            2 GiB, or the folder cannot be written.
    """
    if not isinstance(model, TwoTower):
        raise UserError(
            f"a model of kind {model.kind!r} is not exported: only models of two encoders are; export the one that an"
            " index is made with, whose best hits this one can order anew: evaluate or search with --rerank"
        )
    if not model.exportable:
        raise UserError(
            f"a model of kind {model.kind!r} is not exported: it reads the words of a text beside its tokens"
        )
    if not model.reads_words:
        raise UserError("the model reads rows of features in place of texts: there is no text side to export")
    if type(model.backbone.preprocessing) not in (Preprocessing, type(None)):
        raise UserError("the model cuts pictures of any shape into patches: it is not exported; give one of squares")
    for package in ("onnx", "onnxruntime"):
        require(package, "to export a model")
    folder, exact = Path(folder), _exact(model)
    tokenizer = exact.text_encoder.files()[TOKENIZER]
    config = _config(exact, model.fingerprint)
    _check_tokens(exact, tokenizer, config)
    with replacing_folder(folder, parts_of_export(folder), "an exported model", header=CONFIG) as draft:
        images = _write(_Images(exact).eval(), draft / IMAGE_GRAPH, (config.image_input,), _some_pictures(config))
        captions = _write(
            _Captions(exact).eval(), draft / TEXT_GRAPH, config.text_inputs, _some_captions(exact, config.token_rows)
        )
        origin = replace(
            config.origin,
            image_cosine=min(one.cosine for one in images),
            text_cosine=min(one.cosine for one in captions),
        )
        graphs = [(draft / name).read_bytes() for name in (IMAGE_GRAPH, TEXT_GRAPH)]
        origin = origin.sealed(fingerprint_of(config, tokenizer, *graphs), exact.provenance)
        plain = to_plain(replace(config, origin=origin))
        facts = {"format": FORMAT, "kind": config.kind, "rungwise": __version__, "model": plain}
        if exact.provenance:
            facts["provenance"] = exact.provenance
        (draft / CONFIG).write_text(json.dumps(facts, indent=2), encoding="utf-8")
        (draft / TOKENIZER).write_text(tokenizer, encoding="utf-8")
        (draft / CARD).write_text(
            model_card({"model": plain, **exact.provenance}, dimension=exact.dimension), encoding="utf-8"
        )
        if model.calibration_file is not None:  # scores are the same
            (draft / CALIBRATION).write_bytes(read_bytes(model.calibration_file, "json_bytes"))
    return (*images, *captions)


class _Images(nn.Module):
    """The image side: pixels or rows to prepared vectors."""

    def __init__(self, model: TwoTower) -> None:
        super().__init__()
        self.model = model
        self.parts = (model.backbone, model.image_projection)
        self.dimension = model.dimension

    def forward(self, rows: Tensor) -> Tensor:
        return self.model.embed_images(rows)


class _Captions(nn.Module):
    """The text side: tokens to prepared vectors."""

    def __init__(self, model: TwoTower) -> None:
        super().__init__()
        self.model = model
        self.parts = (model.text_encoder, model.text_projection)
        self.dimension = model.dimension

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return self.model.embed_captions(tokens, lengths)


_Side = _Images | _Captions
_Given = tuple[NDArray[Any], ...]
_Checks = Sequence[tuple[str, Sequence[_Given]]]
"""Batches of inputs of a graph, with the name of each comparison."""


def _exact(model: TwoTower) -> TwoTower:
    """A copy of the model in float32 on the processor, in evaluation mode."""
    return copy.deepcopy(model).to("cpu", torch.float32).eval()


def _config(model: TwoTower, fingerprint: str) -> OnnxConfig:
    seen, side = model.backbone.preprocessing, model.text_encoder
    rules = side.rules if isinstance(side, PretrainedTextSide) else None
    return OnnxConfig(
        origin=Origin(fingerprint, 1.0, 1.0, OPSET),
        dimension=model.dimension,
        similarity=model.config.similarity,
        preprocessing=seen,
        features=model.backbone.features if seen is None else None,
        regions=seen is None and model.reads_regions,
        token_rows=side.token_rows,
        longest=side.longest,
        pad_number=side.pad_number,
        clean="none" if rules is None else rules.clean,
        zeroed=None if rules is None else rules.zeroed,
    )


def _check_tokens(model: TwoTower, tokenizer: str, config: OnnxConfig) -> None:
    """Refuse a text side that cuts texts in ways which the written tokenizer does not reproduce."""
    words = read_vocabulary(tokenizer, TOKENIZER, config.token_rows)
    cutter = WordCutter(words, config.longest, config.clean, config.zeroed)
    if cutter.tokenise(_TEXTS) != model.text_encoder.tokenise(_TEXTS):
        raise UserError("the model's text side cuts texts in ways that tokenizer.json does not say; it is not exported")


def _some_pictures(config: OnnxConfig) -> _Checks:
    """Noise of several strengths around several colours, or rows of numbers."""
    draw = np.random.default_rng(0)
    sizes = config.image_input.shape[1:]

    def some(count: int) -> _Given:
        shape = [count + 1 if size is None else size for size in sizes]  # other regions in each batch
        if config.preprocessing is None:
            return (draw.standard_normal((count, *shape)).astype(np.float32),)
        colour = draw.uniform(0, 255, (count, *([1] * (len(shape) - 3)), 3, 1, 1))
        noise = draw.standard_normal((count, *shape)) * draw.uniform(1, 100, (count, *([1] * len(shape))))
        return (np.clip(colour + noise, 0, 255).astype(np.uint8),)

    what = "pictures" if config.preprocessing is not None else "rows of features"
    return [(f"{what}, in batches of {', '.join(map(str, _BATCHES))}", [some(count) for count in _BATCHES])]


def _some_captions(model: TwoTower, rows: int) -> _Checks:
    """Texts alone and of one length, which need no padding, and all of them in one padded batch."""
    side, draw = model.text_encoder, np.random.default_rng(0)
    tokens = side.tokenise(_TEXTS)
    # Most words above may be unknown to the model: the same frames and lengths with any words between.
    mixed = [[*one[:1], *draw.integers(0, rows, max(0, len(one) - 2)).tolist(), *one[1:][-1:]] for one in tokens]
    everything = sorted((one for one in (*tokens, *mixed) if one), key=len)
    alone = [pad_tokens([one], side.pad_number) for one in everything]
    equal = [pad_tokens([one, one[::-1], one], side.pad_number) for one in mixed if one]
    few = pad_tokens([one for one in everything if len(one) <= max(8, len(everything[0]) + 1)], side.pad_number)
    padded = [few, *(pad_tokens(everything[begin:], side.pad_number) for begin in range(0, len(everything), 4))]
    return [("texts without padding", [*alone, *equal]), ("texts of several lengths, padded", padded)]


def _write(side: _Side, path: Path, inputs: Sequence[Input], checks: _Checks) -> list[ExportAgreement]:
    """Export a side with the first exporter whose graph gives the model's vectors."""
    size = sum(one.numel() * one.element_size() for part in side.parts for one in part.state_dict().values())
    if size > _MOST_BYTES:
        raise UserError(f"{path.name}: the side's weights are {readable(size)}, and an ONNX file holds at most 2 GiB")
    example = tuple(torch.from_numpy(one) for one in checks[-1][1][0])
    # torch.export writes a recurrent network out step by step, for texts of one length.
    recurrent = any(isinstance(one, nn.RNNBase) for part in side.parts for one in part.modules())
    reasons: list[str] = []
    cause: BaseException | None = None
    for exporter in (_traced,) if recurrent else (_traced, _captured):
        try:
            exporter(side, example, path, inputs)
            _finish(path, inputs, side.dimension)
            found = [_compared(side, path, inputs, what, batches) for what, batches in checks]
        except (ImportError, UserError) as error:
            reasons.append(str(error))
            cause = error.__cause__ or error  # by which the command line tells a library that found no memory to load
            continue
        if all(one.is_close for one in found):
            return found
        reasons.extend(str(one) for one in found if not one.is_close)
    raise UserError(
        f"{path.name}: no graph gives the model's vectors, so that nothing was written ({'; '.join(reasons)[:400]})"
    ) from cause


def _traced(side: _Side, example: tuple[Tensor, ...], path: Path, inputs: Sequence[Input]) -> None:
    """Export by tracing, which keeps a recurrent network whole, for texts of any length."""
    free = {one.name: _free(one) for one in inputs} | {OUTPUT: {0: "batch"}}
    _quietly(
        lambda: torch.onnx.export(
            side,
            example,
            str(path),
            input_names=[one.name for one in inputs],
            output_names=[OUTPUT],
            dynamic_axes=free,
            opset_version=OPSET,
            dynamo=False,
        )
    )


def _captured(side: _Side, example: tuple[Tensor, ...], path: Path, inputs: Sequence[Input]) -> None:
    """Export by ``torch.export``, for networks that cannot be traced."""
    _quietly(
        lambda: torch.onnx.export(
            side,
            example,
            str(path),
            input_names=[one.name for one in inputs],
            output_names=[OUTPUT],
            dynamic_shapes=tuple(_free(one) for one in inputs),
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    )


def _free(one: Input) -> dict[int, str]:
    """The sizes of an input that are free, by name."""
    return {at: ("batch", "length")[at] for at, size in enumerate(one.shape) if size is None}


def _quietly(export: Callable[[], object]) -> None:
    """Export without the exporters' remarks; a failure becomes one UserError."""
    fast = torch.backends.mha.get_fastpath_enabled()
    # Attention in one operation of torch's own, which no exporter knows.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.inference_mode(), _silence():
            warnings.simplefilter("ignore")
            export()
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # exporters raise whatever the network's code raises
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(line[:200]) from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def _silence() -> Iterator[None]:
    """Redirect stdout and stderr as file handles: the exporters' compiled parts print past ``sys.stdout``."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(handle, os.dup(handle)) for handle in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for handle, _ in kept:
            os.dup2(nowhere, handle)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for handle, copy_of_it in kept:
            os.dup2(copy_of_it, handle)
            os.close(copy_of_it)
        os.close(nowhere)


def _finish(path: Path, inputs: Sequence[Input], dimension: int) -> None:
    """Name the sizes of inputs and outputs, and remove the source lines that each node came from."""
    import onnx

    model = onnx.load_model(path, load_external_data=False)
    # Exporters leave out what a graph does not read, such as the lengths of texts that are always filled up.
    kinds = {np.float32: onnx.TensorProto.FLOAT, np.uint8: onnx.TensorProto.UINT8, np.int64: onnx.TensorProto.INT64}
    del model.graph.input[:]
    for one in inputs:
        sizes = [("batch", "length")[at] if size is None else size for at, size in enumerate(one.shape)]
        model.graph.input.append(onnx.helper.make_tensor_value_info(one.name, kinds[one.dtype], sizes))
    del model.graph.output[:]
    vectors = onnx.helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, ["batch", dimension])
    model.graph.output.append(vectors)
    used = {one.domain for one in model.graph.node}
    for one in [one for one in model.opset_import if one.domain and one.domain not in used]:
        model.opset_import.remove(one)
    for message in messages_below(model):
        for name in ("doc_string", "metadata_props"):
            if name in message.DESCRIPTOR.fields_by_name:
                message.ClearField(name)
    model.ClearField("doc_string")
    model.ClearField("metadata_props")
    path.write_bytes(model.SerializeToString())


def _compared(
    side: _Side, path: Path, inputs: Sequence[Input], what: str, batches: Sequence[_Given]
) -> ExportAgreement:
    """Compare the graph's vectors with the model's, which computes each text alone."""
    data = path.read_bytes()
    check_graph(data, path.name, tuple(inputs), side.dimension)
    graph = Graph(data, path.name, side.dimension, default_threads())
    found = [graph.run(**{one.name: given for one, given in zip(inputs, batch, strict=True)}) for batch in batches]
    wanted = [vector for batch in batches for vector in _one_by_one(side, batch)]
    return _agreement(what, np.concatenate(wanted), np.concatenate(found))


def _one_by_one(side: _Side, batch: _Given) -> Iterator[NDArray[np.float32]]:
    for row in range(len(batch[0])):
        given = [torch.from_numpy(one[row : row + 1]) for one in batch]
        if len(given) > 1:  # tokens, of which those that fill the batch are left out
            given[0] = given[0][:, : int(given[1])]
        with torch.inference_mode():
            vectors: NDArray[np.float32] = side(*given).numpy()
        yield vectors


def _agreement(what: str, wanted: NDArray[np.float32], found: NDArray[np.float32]) -> ExportAgreement:
    lengths, others = (np.linalg.norm(one, axis=1) for one in (wanted, found))
    apart = np.linalg.norm(wanted - found, axis=1) / np.where(lengths > 0, lengths, 1)
    product = lengths * others
    cosines = np.where(product > 0, (wanted * found).sum(axis=1) / np.where(product > 0, product, 1), apart == 0)
    worst = float(np.nan_to_num(cosines, nan=-1.0).min())
    return ExportAgreement(what, len(wanted), min(worst, 1.0), float(np.nan_to_num(apart, nan=np.inf).max()))
