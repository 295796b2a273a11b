from dataclasses import replace

import pytest
import torch

from rungwise.runs.study import Machine, machine_of, one_kind
from rungwise.training.config._stage import Stage
from tests.training.conftest import small_config

WITH = Machine("cpu", "Xeon", True, "bfloat16", 2, "2.6")
WITHOUT = Machine("cpu", "Core", False, "float32", 2, "2.6")


@pytest.mark.parametrize("native", [True, False])
def test_a_machine_says_how_it_computes(native, monkeypatch):
    monkeypatch.setattr("rungwise.runs.study._machines.native_bfloat16", lambda device: native)
    monkeypatch.setattr("rungwise.encoders._precision.native_bfloat16", lambda device: native)
    found = machine_of(replace(small_config(), precision="auto"), "cpu")
    assert (found.device, found.bfloat16, found.precision) == ("cpu", native, "bfloat16" if native else "float32")
    assert found.threads == torch.get_num_threads()
    assert found.torch == torch.__version__
    assert found.name
    assert machine_of(replace(small_config(), precision="float16"), "cpu").precision == "float16"


def test_stages_of_several_precisions_are_all_named():
    config = replace(
        small_config(), stages=(Stage("one", {"precision": "bfloat16"}), Stage("two", {"precision": "float32"}))
    )
    assert machine_of(config, "cpu").precision == "bfloat16, float32"


@pytest.mark.parametrize(
    ("machines", "kind", "others"),
    [
        ({}, True, ()),
        ({"a": [WITH], "b": [WITH]}, True, ()),
        ({"a": [WITHOUT], "b": [WITHOUT]}, False, ()),
        ({"a": [WITH], "b": [WITHOUT], "c": [WITHOUT]}, False, ("a",)),
        ({"a": [WITH], "b": [WITHOUT]}, True, ("b",)),
        ({"a": [WITH], "b": [WITH, WITHOUT]}, True, ("b",)),
        ({"a": [WITH], "b": []}, True, ()),
    ],
)
def test_runs_of_both_kinds_are_told_apart(machines, kind, others):
    assert one_kind(machines) == (kind, others)


def test_a_machine_prints_in_a_line():
    assert str(WITHOUT) == "cpu, Core, without bfloat16, in float32"
