import ast
from pathlib import Path

import pytest
import torch

import rungwise
from rungwise import losses
from rungwise.losses import (
    AdaptiveListwise,
    BlockLoss,
    ContrastiveMax,
    Ladder,
    Loss,
    MaxOfHinges,
    Reads,
    SumOfHinges,
    Weighted,
    warm_up,
)

CLASSES = {
    name
    for name, one in ((name, getattr(losses, name)) for name in losses.__all__)
    if isinstance(one, type) and issubclass(one, losses.Loss)
}


def asked_for_its_class(path: Path) -> set[str]:
    """Losses that a file names in the second argument of isinstance."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in CLASSES):  # most files: not worth parsing
        return set()
    return {
        inner.attr if isinstance(inner, ast.Attribute) else inner.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        for inner in ast.walk(node.args[1])
        if isinstance(inner, ast.Attribute | ast.Name)
    } & CLASSES


def test_nobody_asks_a_loss_for_its_class(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text("isinstance(loss, losses.Ladder | Weighted)")
    assert asked_for_its_class(tmp_path / "asks.py") == {"Ladder", "Weighted"}
    root = Path(rungwise.__file__).parent
    files = [path for path in root.rglob("*.py") if "losses" not in path.relative_to(root).parts]
    assert files
    assert not {path: asked for path in files if (asked := asked_for_its_class(path))}


def test_what_is_abstract_cannot_be_called() -> None:
    for kind in (Loss, BlockLoss):
        with pytest.raises(TypeError, match="abstract"):
            kind()


def test_similarities_within_a_modality_are_ignored_by_a_loss_that_does_not_read_them() -> None:
    s, within = torch.randn(4, 4), torch.zeros(4, 4)
    assert SumOfHinges()(s, image_similarity=within, text_similarity=within) == SumOfHinges()(s)


def test_where_training_rests_before_it_starts() -> None:
    alike = torch.full((6, 6), 0.7)
    for loss in (MaxOfHinges(margin=0.3, reduction="mean"), MaxOfHinges(0.3, negative_set=2, reduction="mean")):
        assert loss.rests_at == 0.6
        torch.testing.assert_close(loss(alike), torch.tensor(0.6))
    assert [loss.rests_at for loss in (SumOfHinges(), Ladder(), Weighted([MaxOfHinges()], [1.0]))] == [None] * 3


def test_a_warm_up_has_the_options_of_what_it_warms_up() -> None:
    ladder = Ladder(margins=(0.3, 0.01), reduction="mean", extra_positives="keep", mask_above=0.9)
    for loss in (ladder, Weighted([ladder, MaxOfHinges(reduction="mean")], [0.5, 1.0])):
        first = warm_up(loss)
        assert type(first) is SumOfHinges
        assert (first.margin, first.reduction, first.extra_positives, first.mask_above) == (0.3, "mean", "keep", 0.9)
    assert [warm_up(loss).margin for loss in (MaxOfHinges(0.4), ContrastiveMax(margin=0.5), AdaptiveListwise())] == [
        *(0.4, 0.5, 0.2)
    ]


def test_a_loss_says_how_many_pairs_a_step_encodes() -> None:
    larger = MaxOfHinges(negative_set=8)
    for loss in (larger, Weighted([SumOfHinges(), larger, MaxOfHinges(negative_set=6)], [1.0, 1.0, 1.0])):
        assert [loss.pairs_to_encode(batch) for batch in (1, 7, 8, 9, 100)] == [8, 8, 8, 9, 100]
    assert [loss.pairs_to_encode(5) for loss in (SumOfHinges(), MaxOfHinges(), Ladder())] == [5] * 3


def test_the_similarity_of_the_paper() -> None:
    assert AdaptiveListwise().paper_similarity == "shifted_cosine"
    assert Weighted([AdaptiveListwise(), Ladder()], [1.0, 1.0]).paper_similarity == "shifted_cosine"
    assert Ladder().paper_similarity == "cosine"


def test_a_weighted_sum_reads_what_any_of_its_losses_reads() -> None:
    parts = [losses.MultiModalNCE(), MaxOfHinges(negative_set=1), losses.SemanticAdaptiveMargin()]
    everything = Reads(relevance=True, within=True, candidate_captions=True, draws=True)
    assert Weighted(parts, [1.0] * 3).reads == everything
    assert Weighted(parts[:1], [1.0]).reads == Reads(within=True)


def test_lists_are_refused_by_a_loss_of_blocks() -> None:
    lists = torch.rand(3, 5)
    for loss in (AdaptiveListwise(), SumOfHinges(), Weighted([AdaptiveListwise()], [1.0])):
        if loss.reads_lists:
            assert loss.of_lists(lists) > 0
        else:
            with pytest.raises(ValueError, match=f"{type(loss).__name__} is a loss of blocks"):
                loss.of_lists(lists)
    assert AdaptiveListwise().reads_lists
