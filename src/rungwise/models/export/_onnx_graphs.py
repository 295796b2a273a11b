"""Checks of ONNX graphs before onnxruntime opens them.

A graph is a program: it may read any file of the machine, bring operators of its own, and loop without end. Here it
must be one file, of listed operators, with the inputs and the output that a model has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import MissingExtraError, UserError
from rungwise.core.compute import cores

OUTPUT = "vectors"
"""Name of every graph's output, (n, D) float32."""

OPERATORS = frozenset(
    {
        *("Abs", "Acos", "Add", "And", "ArgMax", "ArgMin", "Asin", "Atan", "AveragePool", "BatchNormalization"),
        *("Cast", "CastLike", "Ceil", "Celu", "Clip", "Compress", "Concat", "Constant", "ConstantOfShape", "Conv"),
        *("ConvTranspose", "Cos", "CumSum", "DepthToSpace", "Div", "Dropout", "Einsum", "Elu", "Equal", "Erf", "Exp"),
        *("Expand", "EyeLike", "Flatten", "Floor", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm"),
        *("GlobalAveragePool", "GlobalMaxPool", "Greater", "GreaterOrEqual", "GroupNormalization", "HardSigmoid"),
        *("HardSwish", "Hardmax", "Identity", "If", "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LSTM"),
        *("LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "LpPool"),
        *("MatMul", "Max", "MaxPool", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or"),
        *("PRelu", "Pad", "Pow", "RNN", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum"),
        *("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        *("Relu", "Reshape", "Resize", "ReverseSequence", "Round", "Scatter", "ScatterElements", "ScatterND", "Selu"),
        *("Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth"),
        *("Split", "Sqrt", "Squeeze", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Tile", "TopK"),
        *("Transpose", "Trilu", "Unsqueeze", "Upsample", "Where", "Xor"),
    }
)
"""Allowed operators. Loops are not among them, nor what draws random numbers, reads texts or decodes pictures."""

_STANDARD = ("", "ai.onnx")
_LARGEST = (1 << 31) - 1
_FLOAT, _UINT8, _INT64 = 1, 2, 7
_TYPES: Mapping[Any, int] = {np.float32: _FLOAT, np.uint8: _UINT8, np.int64: _INT64}


@dataclass(frozen=True)
class Input:
    """One input of a graph.

    Attributes:
        name: Name of the input.
        dtype: Type of its numbers.
        shape: Its sizes; None where any size is allowed.
    """

    name: str
    dtype: Any
    shape: tuple[int | None, ...]


def check_graph(data: bytes, where: str, inputs: tuple[Input, ...], dimension: int) -> None:
    """Refuse bytes that are not an ONNX graph of listed operators with these inputs and this output.

    Args:
        data: The bytes of the file.
        where: Name of the file in errors.
        inputs: Inputs that the graph must take, in this order.
        dimension: D of the (n, D) output.

    >>> check_graph(b"no graph", "text.onnx", (), 4)
    Traceback (most recent call last):
    rungwise.core.UserError: text.onnx: not an ONNX graph (...); export the model anew
    """
    try:
        from google.protobuf.message import DecodeError
        from onnx import ModelProto
    except ImportError as error:
        raise MissingExtraError("onnx", f"{where}: reading an exported model") from error
    if len(data) > _LARGEST:
        raise UserError(f"{where}: larger than 2 GiB, which no ONNX file is; export the model anew")
    try:
        model = ModelProto.FromString(data)
    except (DecodeError, RecursionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{where}: not an ONNX graph ({reason}); export the model anew") from None
    domains = {one.domain for one in model.opset_import}
    if model.functions or model.training_info or not domains or not domains <= set(_STANDARD):
        raise UserError(f"{where}: holds operators of its own, or of {sorted(domains)}; only those of ONNX are taken")
    for message in messages_below(model):
        kind = type(message).__name__
        if kind == "TensorProto" and (message.external_data or message.data_location):
            raise UserError(
                f"{where}: {message.name[:60]!r} stands in another file, and files that a graph names are not read;"
                " export the model as one file"
            )
        if kind == "NodeProto" and (message.domain not in _STANDARD or message.op_type not in OPERATORS):
            raise UserError(f"{where}: the operator {message.op_type[:60]!r} is not taken; export the model anew")
    taken = {one.name for one in model.graph.initializer}
    found = [one for one in model.graph.input if one.name not in taken]
    wanted, given = [(one.name, _TYPES[one.dtype], one.shape) for one in inputs], [_read(one) for one in found]
    if wanted != given:
        raise UserError(
            f"{where}: takes {_shown(given)}, but config.json asks for {_shown(wanted)}; the files belong to different"
            " models"
        )
    given = [_read(one) for one in model.graph.output]
    if given != [(OUTPUT, _FLOAT, (None, dimension))]:
        raise UserError(
            f"{where}: gives {_shown(given)}, but config.json asks for vectors of {dimension} numbers; the files belong"
            " to different models"
        )


def messages_below(message: Any) -> Iterator[Any]:
    """All messages within a protobuf message; the numbers of a tensor are not messages."""
    for about, value in message.ListFields():
        if about.message_type is None:
            continue
        for one in [value] if hasattr(value, "ListFields") else value:
            yield one
            yield from messages_below(one)


def _read(value: Any) -> tuple[str, int, tuple[int | None, ...]]:
    about = value.type.tensor_type
    sizes = (one.dim_value if one.HasField("dim_value") else None for one in about.shape.dim)
    return value.name, about.elem_type, tuple(sizes)


def _shown(values: list[tuple[str, int, tuple[int | None, ...]]]) -> str:
    names = {number: np.dtype(kind).name for kind, number in _TYPES.items()}
    shown = []
    for name, kind, shape in values[:4]:
        sizes = ", ".join("n" if size is None else str(size) for size in shape[:8])
        shown.append(f"{name[:40]} {names.get(kind, 'of another type')} ({sizes})")
    return ", ".join(shown) or "nothing"


def default_threads() -> int:
    """Number of threads in ``OMP_NUM_THREADS``, as for torch; otherwise one for each core."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and 0 < int(said) < 1024 else cores()


@dataclass
class Graph:
    """A checked graph, which onnxruntime opens when it is first run.

    Attributes:
        data: The bytes of the file; None once the graph is open.
        where: Name of the file in errors.
        dimension: Length D of a vector.
        threads: Number of computing threads.
    """

    data: bytes | None
    where: str
    dimension: int
    threads: int
    _session: Any = field(default=None, init=False, repr=False)
    _lock: Any = field(default_factory=Lock, init=False, repr=False)

    def run(self, **inputs: NDArray[Any]) -> NDArray[np.float32]:
        """(n, D) vectors for inputs of n rows.

        Raises:
            UserError: If the graph cannot be opened or run, or its output has another shape or type.
        """
        session, rows = self._opened(), len(next(iter(inputs.values())))
        try:
            (vectors,) = session.run([OUTPUT], inputs)
        except Exception as error:  # onnxruntime has an error of its own for each of its states
            raise UserError(f"{self.where}: cannot be computed ({_line(error)}); export the model anew") from error
        if vectors.shape != (rows, self.dimension) or vectors.dtype != np.float32:
            raise UserError(
                f"{self.where}: gives {vectors.dtype} {vectors.shape} for {rows} rows, not float32"
                f" {(rows, self.dimension)}; export the model anew"
            )
        found: NDArray[np.float32] = vectors
        return found

    def _opened(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self._open()
                self.data = None
            return self._session

    def _open(self) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnxruntime", f"{self.where}: an exported model") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 4  # none: what is wrong stands in the exception
        # Threads that spin while they wait would take the cores from those that decode pictures.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            return onnxruntime.InferenceSession(self.data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UserError(f"{self.where}: cannot be opened ({_line(error)}); export the model anew") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
