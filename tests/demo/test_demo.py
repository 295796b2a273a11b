"""The demo's parts on a small scale; ``rungwise demo --check`` runs the whole.

Also tests rungwise.cli.demo.
"""

from math import comb
from pathlib import Path

import numpy as np
import pytest

from rungwise import demo
from rungwise.cli.demo import _ask
from rungwise.core.configuration import from_plain
from rungwise.scenes.collection import SceneConfig, held_out_queries
from rungwise.serving import background
from rungwise.training.config import TrainConfig
from rungwise.training.reports import Watcher

CONFIG = {
    "model": {
        "image": {"backbone": "test_resnet", "weights": "random", "size": 32, "frozen": False, "pool": "flatten"},
        "text": {"word_dimension": 8, "min_count": 1},
        "dimension": 16,
    },
    "loss": {"kind": "max_of_hinges", "mask_above": 1.0},
    "epochs": [1],
    "learning_rates": [1e-3],
    "batch_size": 32,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    demo.make_scenes(folder / "scenes", Watcher(), SceneConfig(pictures=120, side=32, val_share=0.2, test_share=0.4))
    return folder


def test_every_part(made: Path) -> None:
    watcher = Watcher()
    data = demo.make_scenes(made / "scenes", watcher, SceneConfig(pictures=120, side=32, val_share=0.2, test_share=0.4))
    config = from_plain(TrainConfig, CONFIG, "test")
    model = demo.train_on(data, made / "scenes", made / "run", watcher, config)
    again = demo.train_on(data, made / "scenes", made / "run", watcher, config)
    assert model.fingerprint == again.fingerprint
    result = demo.evaluate_on_test(data, made / "scenes", model)
    assert 0 <= result["t2i/nDCG@10"] <= 100
    test = data.split("test")
    assert demo.made_before(made) is None
    index = demo.index_test(data, made, model)
    before = demo.made_before(made)
    assert before is not None
    assert [len(before[0]), before[1].fingerprint] == [len(test), model.fingerprint]
    demo.forget(made)
    assert not (made / "run" / "checkpoint.safetensors").exists()
    held_out = demo.search_held_out(made / "scenes", index, model, count=10)
    assert (held_out.queries, held_out.gallery) == (10, len(test))
    # An oracle finds a right picture for each query: the queries are made so.
    queries = held_out_queries(made / "scenes", 10, 1)
    right = demo.right_pictures(made / "scenes", index, queries)
    assert right.any(axis=0).all()
    assert held_out.example in [query.text for query in queries]
    expected = np.mean([1 - comb(len(test) - int(k), 5) / comb(len(test), 5) for k in right.sum(axis=0)])
    assert held_out.chance == pytest.approx(100 * expected)
    with background(index, model) as address:
        _ask(address, next(item.id for item in index.items()), held_out.example)
        with pytest.raises(Exception, match="404"):
            _ask(address, "no such picture", held_out.example)


def test_chance_is_exact() -> None:
    assert demo._chance(np.array([True] * 4), 2) == 1
    assert demo._chance(np.array([False] * 4), 2) == 0
    assert demo._chance(np.array([True, False, False]), 1) == pytest.approx(1 / 3)
