import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import from_plain, to_plain
from rungwise.encoders.texts import TransformerConfig
from rungwise.models import VSEConfig
from rungwise.runs._systems import SAME_NUMBERS
from rungwise.runs.study import RunIdentity, changes, data_hash_of, identity_of_run
from rungwise.training.config import TrainConfig
from tests.training.conftest import small_config

VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
SETTINGS = st.dictionaries(st.sampled_from(["seed", "loss", "epochs", "model"]), VALUES)


def shuffled(value, draw):
    """The same mapping with its names in another order, at all depths."""
    if isinstance(value, dict):
        items = list(value.items())
        draw.shuffle(items)
        return {name: shuffled(one, draw) for name, one in items}
    return [shuffled(one, draw) for one in value] if isinstance(value, list) else value


@given(SETTINGS, st.randoms(use_true_random=False))
def test_a_key_does_not_depend_on_the_order_of_settings(settings, draw):
    files = {"start": "a", "data.relevance": "b"}
    one = RunIdentity(settings, "data", files)
    other = RunIdentity(shuffled(settings, draw), "data", shuffled(files, draw))
    assert (one.key, one.system) == (other.key, other.system)
    assert changes(one, other) == []


@pytest.mark.parametrize("changed", range(12))
def test_any_changed_setting_changes_the_key(changed):
    """Every setting is taken by one of twelve parts of the test: a change of it is another run, and is named."""
    config = small_config()
    key = identity_of_run(config, "data").key
    plain = to_plain(config)
    for at, (name, value) in enumerate(plain_leaves(plain)):
        if at % 12 != changed or any(name == one or name.startswith(f"{one}.") for one in SAME_NUMBERS):
            continue
        identity = identity_of_run(config, "data")
        settings = with_leaf(identity.settings, name.split("."), f"not {value}")
        other = replace(identity, settings=settings)
        assert other.key != key, name
        assert changes(identity, other) == [f"{name}: {value!r} then, {f'not {value}'!r} now"]


def plain_leaves(value, name=""):
    if isinstance(value, dict) and value:
        return [found for key, one in value.items() for found in plain_leaves(one, f"{name}.{key}".lstrip("."))]
    return [(name, value)]


def with_leaf(settings, parts, value):
    first, *rest = parts
    return {**settings, first: with_leaf(settings[first], rest, value) if rest else value}


def test_what_changes_no_number_changes_no_key():
    config = small_config()
    plain = to_plain(config)
    other = from_plain(
        TrainConfig,
        {
            **plain, "preset": "vsepp/own", "modules": [], "packages": [], "checkpoint_steps": 9, "compile": "no",
            "logs": ["jsonl"], "gradient_checkpointing": True, "data": {**plain["data"], "path": "elsewhere"},
        },
        "",
    )  # fmt: skip
    assert identity_of_run(other, "data").key == identity_of_run(config, "data").key
    seeded = identity_of_run(replace(config, seed=3), "data")
    assert seeded.key != identity_of_run(config, "data").key
    assert seeded.system == identity_of_run(config, "data").system


def test_data_splits_and_version_are_a_part_of_the_key(coloured):
    config = small_config()
    one, other = identity_of_run(config, data_hash_of(coloured)), identity_of_run(config, "other")
    assert one.key != other.key
    moved = replace(coloured, splits=(*coloured.splits[:-1], "train"))
    assert data_hash_of(moved) != data_hash_of(coloured)
    assert changes(one, other) == ["data: other pictures, captions or splits now"]
    assert changes(one, replace(one, numbers=one.numbers + 1)) == ["rungwise: a version with other numbers now"]
    assert replace(one, numbers=one.numbers + 1).key != one.key


def test_the_content_of_a_named_file_counts_and_not_its_place(tmp_path):
    config = small_config()
    for name, text in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / name).write_text(text)

    def identity(name):
        return identity_of_run(replace(config, data=replace(config.data, judgements=str(tmp_path / name))), "data")

    assert identity("a").key == identity("b").key != identity("c").key
    assert changes(identity("a"), identity("c")) == ["data.judgements: another content now"]


def test_the_model_that_a_run_starts_from_counts_by_its_fingerprint(trained_run, tmp_path):
    copy = trained_run.copied(tmp_path / "copy")
    places = [identity_of_run(replace(small_config(), start=str(one)), "data") for one in (trained_run.folder, copy)]
    assert places[0].key == places[1].key
    assert places[0].key != identity_of_run(small_config(), "data").key
    assert set(places[0].files) == {"start"}


def test_a_drawn_order_is_no_other_system():
    draw = random.Random(0)
    identity = identity_of_run(small_config(), "data")
    assert replace(identity, settings=shuffled(dict(identity.settings), draw)).system == identity.system


def test_a_setting_that_is_younger_than_a_run_counts_only_where_it_acts():
    """So runs that were kept before it was there stay known."""
    plain = config_with_text(counted_pieces=0)
    assert "counted_pieces" not in identity_of_run(plain, "data").settings["model"]["text"]
    assert identity_of_run(config_with_text(counted_pieces=9), "data").key != identity_of_run(plain, "data").key


def config_with_text(**options):
    return TrainConfig(model=VSEConfig(text=TransformerConfig(**options)))
