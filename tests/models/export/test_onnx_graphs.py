"""Graphs of strangers: what they name, compute with, take and give."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

from rungwise.core import UserError
from rungwise.core.compute import cores
from rungwise.models.export._onnx_graphs import Graph, Input, check_graph, default_threads

ROWS = (Input("rows", np.float32, (None, 3)),)


def sound() -> ModelProto:
    """Rows of three numbers, doubled."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["rows", "two"], ["vectors"])],
        "graph",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(np.float32([2]), "two")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def refusal(model: ModelProto) -> str:
    with pytest.raises(UserError) as caught:
        check_graph(model.SerializeToString(), "text.onnx", ROWS, 3)
    assert str(caught.value).startswith("text.onnx: ")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_sound_graph_is_taken_and_computed() -> None:
    data = sound().SerializeToString()
    check_graph(data, "text.onnx", ROWS, 3)
    graph = Graph(data, "text.onnx", 3, 1)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(graph.run(rows=rows), 2 * rows)
    assert graph.data is None
    assert graph.run(rows=rows[:0]).shape == (0, 3)


def outside(tensor: TensorProto) -> None:
    tensor.name = "secret"
    tensor.data_type = TensorProto.FLOAT
    tensor.dims.append(1)
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"


def initialised_outside(model: ModelProto) -> None:
    outside(model.graph.initializer.add())


def constant_outside(model: ModelProto) -> None:
    node = model.graph.node.add(op_type="Constant", output=["secret"])
    outside(node.attribute.add(name="value", type=AttributeProto.TENSOR).t)


def branch_outside(model: ModelProto) -> None:
    branch = GraphProto(name="branch")
    outside(branch.initializer.add())
    node = model.graph.node.add(op_type="If", input=["two"], output=["other"])
    node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g.CopyFrom(branch)


def sparse_outside(model: ModelProto) -> None:
    outside(model.graph.sparse_initializer.add().values)


def named_only(model: ModelProto) -> None:
    entry = model.graph.initializer[0].external_data.add()
    entry.key, entry.value = "location", "weights.bin"


@pytest.mark.parametrize("change", [initialised_outside, constant_outside, branch_outside, sparse_outside, named_only])
def test_numbers_in_other_files_are_refused_wherever_they_are_named(change: Callable[[ModelProto], None]) -> None:
    model = sound()
    change(model)
    assert "stands in another file, and files that a graph names are not read" in refusal(model)


def looping(model: ModelProto) -> None:
    model.graph.node.add(op_type="Loop", input=["", "two", "rows"], output=["other"])


def looping_in_a_branch(model: ModelProto) -> None:
    branch = GraphProto(name="branch")
    branch.node.add(op_type="Scan", output=["other"])
    node = model.graph.node.add(op_type="If", input=["two"], output=["other"])
    node.attribute.add(name="else_branch", type=AttributeProto.GRAPH).g.CopyFrom(branch)


def foreign(model: ModelProto) -> None:
    model.graph.node.add(op_type="Add", domain="com.stranger", input=["rows", "two"], output=["other"])


@pytest.mark.parametrize(("change", "name"), [(looping, "Loop"), (looping_in_a_branch, "Scan"), (foreign, "Add")])
def test_operators_that_are_not_listed_are_refused(change: Callable[[ModelProto], None], name: str) -> None:
    model = sound()
    change(model)
    assert f"the operator '{name}' is not taken" in refusal(model)


def importing(model: ModelProto) -> None:
    model.opset_import.add(domain="com.stranger", version=1)


def functions(model: ModelProto) -> None:
    model.functions.append(FunctionProto(name="own"))


def training(model: ModelProto) -> None:
    model.training_info.add()


def nothing(model: ModelProto) -> None:
    del model.opset_import[:]


@pytest.mark.parametrize("change", [importing, functions, training, nothing])
def test_operators_of_its_own_are_refused(change: Callable[[ModelProto], None]) -> None:
    model = sound()
    change(model)
    assert "only those of ONNX are taken" in refusal(model)


def another_name(model: ModelProto) -> None:
    model.graph.input[0].name = "lines"


def wider(model: ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4


def of_bytes(model: ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8


def one_more(model: ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))


def no_output(model: ModelProto) -> None:
    del model.graph.output[:]


def longer_vectors(model: ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4


def fixed_batch(model: ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1


@pytest.mark.parametrize("change", [another_name, wider, of_bytes, one_more, no_output, longer_vectors, fixed_batch])
def test_other_inputs_and_outputs_are_refused(change: Callable[[ModelProto], None]) -> None:
    model = sound()
    change(model)
    assert "the files belong to different models" in refusal(model)


@pytest.mark.parametrize("data", [b"", b"\xff" * 100, b"\x0a" * 100_000])
def test_no_graph_at_all(data: bytes) -> None:
    with pytest.raises(UserError, match=r"text.onnx: (not an ONNX graph|holds operators)") as caught:
        check_graph(data, "text.onnx", ROWS, 3)
    assert "\n" not in str(caught.value)


def test_a_graph_cut_off_anywhere_is_refused() -> None:
    data = sound().SerializeToString()
    taken = []
    for end in range(len(data)):
        try:
            check_graph(data[:end], "text.onnx", ROWS, 3)
            taken.append(end)
        except UserError:
            pass
    assert not [end for end in taken if end < len(data) - 8], "the version of the operators stands last"


def test_what_a_graph_says_and_does_not_keep_is_found() -> None:
    model = sound()
    model.graph.node[0].op_type = "MatMul"
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((3, 2), np.float32), "two"))
    graph = Graph(model.SerializeToString(), "text.onnx", 3, 1)
    with pytest.raises(UserError, match=r"^text.onnx: (cannot be opened|gives float32 \(2, 2\) for 2 rows)"):
        graph.run(rows=np.ones((2, 3), np.float32))


def test_a_graph_that_cannot_be_opened_or_computed_is_one_line() -> None:
    model = sound()
    model.graph.node[0].input[1] = "nobody"
    with pytest.raises(UserError, match=r"^text.onnx: cannot be opened \(") as caught:
        Graph(model.SerializeToString(), "text.onnx", 3, 1).run(rows=np.ones((2, 3), np.float32))
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"^text.onnx: cannot be computed \("):
        Graph(sound().SerializeToString(), "text.onnx", 3, 1).run(rows=np.ones((2, 4), np.float32))


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("onnx", lambda data: check_graph(data, "text.onnx", ROWS, 3)),
        ("onnxruntime", lambda data: Graph(data, "text.onnx", 3, 1).run(rows=np.ones((2, 3), np.float32))),
    ],
)
def test_missing_packages_are_named(
    package: str, use: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"needs {package}; run: pip install 'rungwise\[onnx\]'"):
        use(sound().SerializeToString())


@pytest.mark.parametrize(("said", "threads"), [("3", 3), ("", None), ("many", None), ("0", None)])
def test_threads_are_those_that_the_environment_says(
    said: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert default_threads() == (threads or cores())
