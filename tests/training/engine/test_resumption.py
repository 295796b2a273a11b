from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.core import UserError, to_plain
from rungwise.training.config import TrainConfig, WholeModel
from rungwise.training.engine import RunState
from rungwise.training.engine._resumption import refuse_other_run

CONFIG = TrainConfig(start="somewhere", epochs=(2,), learning_rates=(0.1,))


def state(config: TrainConfig = CONFIG, **facts: object) -> RunState:
    return RunState(settings=to_plain(config), **{"data_hash": "d", "start_hash": "s", **facts})  # type: ignore[arg-type]


def refuse(then: RunState, now: RunState, config: TrainConfig = CONFIG) -> None:
    refuse_other_run(Path("run/checkpoint"), then, now, config)


def test_a_model_that_stands_elsewhere_is_the_same_model() -> None:
    moved = replace(CONFIG, start="elsewhere")
    refuse(state(), state(moved), moved)
    with pytest.raises(UserError, match="the run began from another model than elsewhere is now"):
        refuse(state(), state(moved, start_hash="t"), moved)


def test_runs_of_earlier_versions_are_compared_by_the_name_of_the_model() -> None:
    moved = replace(CONFIG, start="elsewhere")
    refuse(state(start_hash=""), state())
    with pytest.raises(UserError, match="start: 'somewhere' then, 'elsewhere' now"):
        refuse(state(start_hash=""), state(moved), moved)
    earlier = state()
    del earlier.settings["stages"], earlier.settings["data"]["share"], earlier.settings["tune"]["configured"]
    refuse(earlier, state())
    configured, shared = (
        replace(CONFIG, tune=WholeModel(configured=True)),
        replace(CONFIG, data=replace(CONFIG.data, share=0.5)),
    )
    with pytest.raises(UserError, match="tune.configured: False then, True now"):
        refuse(earlier, state(configured), configured)
    with pytest.raises(UserError, match="data.share: 1.0 then, 0.5 now"):
        refuse(earlier, state(shared), shared)


def test_another_vocabulary_is_named() -> None:
    then = state(files={"tokenizer.json": "a", "preprocessing.json": "b"})
    refuse(then, state(files={"tokenizer.json": "a", "preprocessing.json": "b", "new.json": "c"}))
    refuse(state(), then)
    with pytest.raises(UserError, match="run/checkpoint: the run was started with another vocabulary; resume with the"):
        refuse(then, state(files={"tokenizer.json": "c", "preprocessing.json": "b"}))
    with pytest.raises(UserError, match="the run was started with another preprocessing of pictures; resume with the"):
        refuse(then, state(files={"tokenizer.json": "a"}))
