from pathlib import Path

import pytest

from rungwise.planning import STORED, MeasuredSample, Need, measured, plan, plan_text
from rungwise.planning._rates import HERE
from tests.colour_model import ColourModel

SMALL = MeasuredSample(rows=300, pictures=4, queries=2, repeats=1)
OF_STORES = {"exact_insert", "exact_speed", "held_speed", "lance_insert"}


def test_rates_of_this_machine_take_the_place_of_stored_ones_and_of_no_others(tmp_path: Path) -> None:
    said: list[str] = []
    found = measured(STORED, 8, folder=tmp_path, sample=SMALL, say=said.append)
    changed = {name for name in STORED if found[name] != STORED[name]}
    assert changed == OF_STORES
    for name in OF_STORES:
        rate = found[name]
        assert (rate.machine, rate.rows, rate.dimension, rate.source) == (HERE, 300, 8, "measured just now")
        assert rate.value > 0
    assert len(said) == 1
    assert not list(tmp_path.iterdir()), "what was written is removed"


def test_a_model_is_measured_on_its_device() -> None:
    found = measured(STORED, 3, model=ColourModel(), name="colours", device="h200", sample=SMALL)
    assert found["colours on h200"].value > 0
    planned = plan(Need(1000, dimension=3, model="colours", device="h200"), found)
    assert planned["encoding, h200"].value == pytest.approx(1000 / found["colours on h200"].value / 3600)
    assert planned["encoding, processor"].value is None
    assert "measured on this machine:" in plan_text(planned)
