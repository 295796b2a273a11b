"""Every setting has its place in docs/reference/cancel/cancelled-settings.md, and every case there prints its line.

Also tests rungwise.training.engine._cancelled.
"""

import re
from fnmatch import fnmatchcase

import pytest

from rungwise.core import UserError, from_plain
from rungwise.losses import BlockFacts, BlockLoss
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine
from rungwise.training.config import FitConfig, TrainConfig, cancelled, load_config, load_preset, preset_names
from rungwise.training.config._cancelled import accepted
from tests.own_parts import forgotten
from tests.training.config.cancelling_cases import Case, cases, found, rows
from tests.training.config.settings_of import every_setting

CASES = cases()


def test_every_setting_is_on_the_page() -> None:
    """A field that somebody adds fails here, until the page says what can cancel it, or nothing."""
    patterns = [name for names, _ in rows() for name in names]
    missing = sorted(one for one in every_setting() if not any(fnmatchcase(one, each) for each in patterns))
    assert not missing, f"docs/reference/cancel/cancelled-settings.md does not say what can cancel {', '.join(missing)}"


def test_the_page_lists_no_setting_that_there_is_not() -> None:
    known = every_setting()
    patterns = [name for names, _ in rows() for name in names]
    assert len(patterns) == len(set(patterns))
    assert not [each for each in patterns if not any(fnmatchcase(one, each) for one in known)]


def test_the_page_names_every_case_where_it_cancels() -> None:
    named = {int(n) for _, answer in rows() for some in re.findall(r"\(([\d, ]+)\)", answer) for n in some.split(",")}
    assert named <= {one.number for one in CASES}
    # Case 67 stands for the settings of all fits.
    assert {one.number for one in CASES} - named == set()
    assert [one.number for one in CASES] == list(range(1, len(CASES) + 1))
    assert len(CASES) >= 30
    assert CASES[0].settings.startswith("{warm_up_epochs: 3, epochs: 2")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.number))
def test_a_case_prints_its_line(case: Case) -> None:
    (one,) = found(case.settings, case.data)
    assert one.line == case.line
    assert one.refused == case.refused
    assert "\n" not in one.line


def test_what_wastes_a_run_is_refused_and_the_rest_is_said() -> None:
    refused = from_plain(TrainConfig, {"warm_up_epochs": 3, "epochs": 2, "learning_rates": 1e-3}, "test")
    with pytest.raises(UserError, match=r"^warm_up_epochs 3 covers the whole run of 2 epochs"):
        accepted(refused)
    assert accepted(TrainConfig()) == accepted(FitConfig()) == []
    assert len(accepted(from_plain(TrainConfig, {"snapshot": {"patience": 30}}, "test"))) == 1


def test_the_last_epoch_of_a_run_is_enough_for_a_loss() -> None:
    """Against the rule that it states: the loss works in some epoch."""
    for epochs in ((1,), (2,), (1, 1), (3, 2)):
        for warm_up in range(7):
            plain = {"warm_up_epochs": warm_up, "epochs": list(epochs), "learning_rates": [1e-3] * len(epochs)}
            works = any(epoch >= warm_up for epoch in range(sum(epochs)))
            assert any(one.refused for one in cancelled(from_plain(TrainConfig, plain, "test"))) == (not works)


@pytest.mark.parametrize("patience", range(1, 7))
def test_patience_is_named_where_no_course_of_a_run_can_end_it_early(patience: int) -> None:
    """Against every course: the best epoch so far may be any up to now."""
    plain = {"snapshot": {"patience": patience}, "epochs": 5, "learning_rates": 1e-3}
    config = from_plain(TrainConfig, plain, "test")
    ends_early = any(config.is_over(epoch, best) for epoch in range(1, 5) for best in range(1, epoch + 1))
    assert bool(cancelled(config)) == (not ends_early)


@pytest.mark.parametrize("name", preset_names())
def test_no_preset_is_refused_or_says_anything_as_it_ships(name: str) -> None:
    assert accepted(load_preset(name).config) == []


def test_a_preset_that_is_shortened_is_told() -> None:
    for name in ("vsepp", "sam", "cvsepp"):
        config = load_config(name)
        plain = {"preset": config.preset, "epochs": 2, "learning_rates": 2e-4, "warm_up_epochs": config.warm_up_epochs}  # type: ignore[union-attr]
        with pytest.raises(UserError, match="never works"):
            accepted(from_plain(TrainConfig, plain, "test"))


@pytest.mark.parametrize("similarity", [Cosine(), ShiftedCosine(), Order(), Order(root=True), Order(absolute=True)])
def test_similarities_stay_within_their_bounds_and_reach_them(similarity) -> None:
    import torch

    draw = torch.Generator().manual_seed(0)
    images, texts = (torch.randn(500, 2, generator=draw) for _ in range(2))
    images[:2], texts[:2] = torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([[1.0, 1.0], [-1.0, -1.0]])
    images[2], texts[2] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    seen, (lowest, highest) = similarity(images, texts), similarity.bounds
    assert lowest - 1e-5 <= seen.min() < lowest + 1e-3
    assert highest - 1e-3 < seen.max() <= highest + 1e-5


def test_an_inner_product_has_no_bounds() -> None:
    assert found("{loss: {kind: max_of_hinges, margin: 50}, model: {similarity: inner}}") == []
    assert Inner().bounds == (-float("inf"), float("inf"))


def test_a_loss_of_ones_own_cancels_nothing_unless_it_says_so() -> None:
    with forgotten():

        class Attraction(BlockLoss):
            def per_query(self, side):
                return side.sum_per_query(1 - side.of_pairs(side.similarity))

        assert list(Attraction().cancelled("loss", BlockFacts("cosine", -1.0, 1.0, pairs=1))) == []
