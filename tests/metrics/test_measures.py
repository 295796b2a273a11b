"""Also tests rungwise.metrics, rungwise.metrics._classic and rungwise.metrics._graded."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.evaluation import EvaluationSettings, Shards, evaluate
from rungwise.metrics import (
    CS,
    ECE,
    FAMILIES,
    MAP,
    NCS,
    NSUM,
    SR,
    TOTALS,
    Measure,
    MedR,
    NoneAUROC,
    Positives,
    R,
    Rankings,
    parse,
    parse_all,
    rank_all,
)
from rungwise.metrics._measures import families

CUT = st.integers(1, 10**6)
DEGREE = st.floats(-1e9, 1e9)
OPTIONS = {"k": CUT, "t": DEGREE, "scale": st.none() | st.floats(1e-6, 1e6)}
EVERY = st.one_of(
    *(
        st.builds(family, **{name: OPTIONS[name] for name in family.__dataclass_fields__ if name in OPTIONS})
        for family in FAMILIES
    ),
    st.builds(MAP, k=CUT, of_possible=st.booleans()),
    st.builds(NCS, k=CUT, m=st.none() | CUT, non_gt=st.booleans()),
    st.builds(SR, k=CUT, m=st.none() | CUT, non_gt=st.booleans(), lists=st.none() | CUT, any=st.booleans()),
    st.sampled_from(TOTALS),
)


@given(EVERY)
def test_a_measure_prints_parses_back_and_hashes(measure):
    again = parse(str(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert type(again) is type(measure)


@pytest.mark.parametrize(
    "name",
    [
        *("R@1", "Recall@5", "MedR", "MeanR", "CS@100", "SR@10(m=5)", "NCS@10", "NCS@10(non_gt)", "nDCG@10", "MAP"),
        "nDCG@10(ties=expected)",
        "MeanDegree@10",
        *("SR@5(m=3,any)", "SR@5(m=3,non_gt,lists=30,any)", "NCS@5(m=5)", "NCS@5(m=5,non_gt)"),
        *(
            "MAP@50",
            "MAP@50(of_possible)",
            "P@10",
            "AP11",
            "MAP@R",
            "RPrecision",
            "MRR",
            "Kendall",
            "Spearman",
            "rsum",
            "Nsum",
        ),
        *("CutF1(t=0.5)", "CutPrecision(t=0.5)", "CutRecall(t=0.5)", "NoneAUROC(t=0.5)", "ECE", "ECE@10", "Brier"),
    ],
)
def test_canonical_names_are_kept(name):
    assert str(parse(name)) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "R",
        "R@",
        "R@0",
        "R@-1",
        "R@1.5",
        "Q@1",
        "P",
        "AP11@5",
        "MeanDegree",
        "MeanDegree@0",
        "MAP@0",
        "MAP(of_possible)",
        "MAP@50(of_possible=1)",
        "MedR@3",
        "CS@5(m=2)",
        "NCS@1(non_gt=1)",
        "NCS@5(m=0)",
        "NCS@5(m)",
        "NCS@5(any)",
        "SR@5(any=1)",
        "SR@1(m=x)",
        "SR@1(m=²)",
        "nDCG@1(ties)",
        "nDCG@1(ties=1)",
        "nDCG@1(ties=mean)",
        "nDCG@1(expected)",
        "rsum@1",
    ],
)
def test_what_is_no_measure_is_refused_in_one_line(name):
    with pytest.raises(UserError) as caught:
        parse(name)
    assert "\n" not in str(caught.value)


def test_a_word_is_one_of_those_that_the_option_takes():
    assert parse("nDCG@5(ties=position)") == parse("nDCG@5") != parse("nDCG@5(ties=expected)")
    with pytest.raises(UserError, match="^nDCG: ties must be position or expected, got 'mean'$"):
        parse("nDCG@5(ties=mean)")
    with pytest.raises(
        UserError, match=r"^measure 'nDCG\(ties=expected\)' is not well .*nDCG@K\(ties=position.expected"
    ):
        parse("nDCG(ties=expected)")


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(
        UserError, match=r"there is no measure 'Q@1'; there are R@K, .*SR@K\(m=..,non_gt,lists=..,any\).*rsum"
    ):
        parse("Q@1")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("r@1", "R@1"), ("R1", "R@1"), ("Recal@5", "Recall@5"), ("ndcg", "nDCG@K"), ("mrr", "MRR"), ("RSUM", "rsum")],
)
def test_a_misspelt_name_is_guessed(written, meant):
    with pytest.raises(UserError, match=f"there is no measure '{written}'; did you mean {meant}\\? there are R@K, "):
        parse(written)


def test_a_name_with_a_direction_gets_the_one_without():
    with pytest.raises(UserError, match=r"no measure 'i2t/R@1': measures are taken in both directions; write 'R@1'"):
        parse("i2t/R@1")


def test_a_measure_is_known_as_soon_as_its_class_is_defined():
    @dataclass(frozen=True)
    class FoundWithin(Measure):
        k: int
        strict: bool = False
        name: ClassVar[str] = "Found_Within"

        def per_query(self, rankings):
            return 100.0 * (rankings.best_rank < self.k + (not self.strict))

    assert parse("Found_Within@3(strict)") == FoundWithin(3, strict=True)
    result = evaluate(similarity=np.eye(4)[::-1], image_of_caption=np.arange(4), measures=["Found_Within@2"])
    assert result["i2t/Found_Within@2"] == 25.0
    assert result.interval("i2t/Found_Within@2").high > 25.0


def test_measures_know_unit_bounds_and_sense():
    assert (R(1).unit, R(1).bounds, R(1).higher_is_better) == ("percent", (0.0, 100.0), True)
    assert (MedR().unit, MedR().bounds, MedR().higher_is_better) == ("rank", (1.0, math.inf), False)
    assert (CS(100).unit, CS(100).bounds) == ("correlation", (-1.0, 1.0))
    assert NSUM.bounds == (0.0, 600.0)
    assert (ECE().unit, ECE().bounds, ECE().higher_is_better) == ("fraction", (0.0, 1.0), False)
    assert (NoneAUROC(0.5).unit, NoneAUROC(0.5).higher_is_better) == ("fraction", True)


def test_each_measure_is_kept_once():
    assert parse_all([R(1), "R@1", "rsum", "rsum"]) == (R(1), parse("rsum"))


def test_a_single_name_is_no_list_of_letters():
    assert parse_all("rsum") == (parse("rsum"),)
    with pytest.raises(UserError, match="'R@1,R@5'"):
        parse_all("R@1,R@5")


def test_semantic_recall_says_where_nothing_is_left_to_find():
    rankings = rank_all([[0.3, 0.1], [0.2, 0.4]], [[0, 1], [1]], relevance=[[1.0, 0.5], [0.2, 0.9]])
    measure = SR(k=1, m=1, non_gt=True)
    assert measure.per_query(rankings).tolist() == [0.0, 100.0]
    assert measure.remarks(rankings) == {"no other candidate, counted 0": 1}
    of_any = SR(k=1, m=1, non_gt=True, any=True)
    assert of_any.per_query(rankings).tolist() == [0.0, 100.0]
    assert of_any.remarks(rankings) == {"no other candidate, counted 0": 1}
    assert SR(k=1, m=1).remarks(rankings) == {}
    nothing_right = rank_all([[0.3, 0.1]], [[]], relevance=[[1.0, 0.5]])
    assert SR(k=1, non_gt=True).remarks(nothing_right) == {"no positive, left out": 1}


def test_any_of_the_set_is_to_semantic_recall_what_r_is_to_recall():
    rankings = rank_all([[0.9, 0.8, 0.7, 0.1]], [[0]], relevance=[[1.0, 0.0, 0.2, 0.4]])
    recall = [SR(k=2, m=m).per_query(rankings).item() for m in (1, 2, 3)]
    of_any = [SR(k=2, m=m, any=True).per_query(rankings).item() for m in (1, 2, 3)]
    assert recall == pytest.approx([100, 50, 100 / 3])
    assert of_any == [100, 100, 100]
    without = [SR(k=1, m=m, non_gt=True, any=True).per_query(rankings).item() for m in (1, 2, 3)]
    assert without == [0, 0, 100]


def test_cumulative_score_within_the_most_relevant_candidates():
    rankings = rank_all([[0.9, 0.8, 0.7, 0.1]], [[0]], relevance=[[1.0, 0.3, 0.3, 0.4]])
    # The set of m = 3 is 0, 3 and 1: of the two candidates of 0.3 the lower index.
    assert NCS(k=3, m=3).per_query(rankings).item() == pytest.approx(100 * (1.0 + 0.3) / (1.0 + 0.4 + 0.3))
    assert NCS(k=3).per_query(rankings).item() == pytest.approx(100 * (1.0 + 0.3 + 0.3) / (1.0 + 0.4 + 0.3))
    assert NCS(k=1, m=3).per_query(rankings).item() == pytest.approx(100 / 1.7)
    assert NCS(k=1, m=2, non_gt=True).per_query(rankings).item() == pytest.approx(100 * 0.3 / 0.7)
    assert (NCS(k=5).breadth, NCS(k=5, m=7).breadth, NCS(k=5, m=2).breadth) == (5, 7, 2)
    nothing = rank_all([[0.9, 0.8]], [[0]], relevance=[[1.0, 0.0]])
    measure = NCS(k=1, m=2, non_gt=True)
    assert measure.per_query(nothing).tolist() == [0.0]
    assert measure.remarks(nothing) == {"nothing relevant, counted 0": 1}
    with pytest.raises(UserError, match=r"a degree of -0.3 is negative"):
        NCS(k=1, m=2).per_query(rank_all([[0.9, 0.8]], [[0]], relevance=[[1.0, -0.3]]))


@pytest.mark.parametrize(("direction", "place"), [("i2t", "row 11"), ("t2i", "column 11")])
def test_a_negative_degree_is_named_by_its_place(direction, place):
    own = Positives(np.array([0, 1, 2]), np.array([0, 1]))
    relevance = np.array([[1.0, 0.5], [0.2, -0.3]])
    rankings = Rankings(own, relevance, relevance, direction, places=np.array([10, 11]))
    with pytest.raises(UserError, match=rf"relevance, {place}: a degree of -0.3 is negative, .* shift or clip"):
        rankings.ideal(1)


@pytest.mark.parametrize(
    "name", ["R@1", "nDCG@10", "rsum", "Nsum", "né", "Ro ot", "<b>", "x/y", "", "_x", "1x", "a\nb", 3]
)
def test_a_name_that_would_not_be_read_back_is_refused_when_the_class_is_made(name):
    with pytest.raises(UserError) as refused:
        type("Odd", (Measure,), {"name": name, "__module__": "my_measures"})
    assert "the measure Odd of the module my_measures may not be called" in str(refused.value)
    assert "letters, digits and _, and is none of the sums rsum and Nsum" in str(refused.value)
    assert "\n" not in str(refused.value)
    # The error that is held here holds the class, too.
    assert "my_measures" not in {one.__module__ for one in families()}


def test_a_class_without_a_name_is_no_family_and_may_stand_between():
    class Between(Measure):
        pass

    @dataclass(frozen=True)
    class BelowBetween(Between):
        name: ClassVar[str] = "Below_Between2"

        def per_query(self, rankings):
            return 100.0 / rankings.best_rank

    assert parse("Below_Between2") == BelowBetween()


@pytest.mark.parametrize(
    ("parts", "gives", "said"),
    [
        (1, lambda rankings: None, "gives NoneType for 3 queries; return an array of 3 numbers, one for each query"),
        (1, lambda rankings: rankings.best_rank[:2], r"gives an array of shape \(2,\) for 3 queries"),
        (1, lambda rankings: 5.0, r"gives an array of shape \(\) for 3 queries"),
        (1, lambda rankings: ["a", "b", "c"], "gives list for 3 queries"),
        (
            2,
            lambda rankings: rankings.best_rank,
            r"gives an array of shape \(3,\) for 3 queries; return an array of 3 rows of 2 numbers",
        ),
    ],
)
@pytest.mark.parametrize("shards", [None, 1])
def test_values_of_another_shape_are_refused_by_the_name_of_the_measure(parts, gives, said, shards):
    @dataclass(frozen=True)
    class Misshapen(Measure):
        name: ClassVar[str] = "Misshapen"

        def per_query(self, rankings):
            return gives(rankings)

    Misshapen.parts = parts
    settings = EvaluationSettings(shards=None if shards is None else Shards(shards))
    with pytest.raises(UserError, match=rf"the measure Misshapen \(.*Misshapen\): per_query {said}") as refused:
        evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], measures=[Misshapen()], settings=settings)
    assert "\n" not in str(refused.value)


def shown_forms():
    """Every family of this package as it is asked for, with each of its options, and every sum."""
    forms = [*TOTALS, NCS(3, m=2), NCS(3, non_gt=True), NCS(3, m=2, non_gt=True), MAP(5), MAP(5, of_possible=True)]
    forms += [
        SR(3, m=2),
        SR(3, any=True),
        SR(3, m=1, non_gt=True, lists=30),
        SR(3, m=2, non_gt=True, lists=9, any=True),
    ]
    for family in FAMILIES:
        needed = {name: 1 for name, one in family.__dataclass_fields__.items() if name in ("k", "t")}
        forms.append(family(**needed))
    return forms


@pytest.mark.parametrize("measure", shown_forms(), ids=str)
def test_every_measure_has_a_definition_of_one_sentence(measure):
    said = measure.definition
    assert 20 <= len(said) <= 160
    assert "\n" not in said
    assert said[0].isupper()
    assert said.endswith(".")
    assert ". " not in said  # one sentence
    assert "``" not in said


def test_definitions_tell_options_apart():
    assert MAP(5).definition != MAP(5, of_possible=True).definition
    assert len({NCS(3).definition, NCS(3, m=2).definition, NCS(3, non_gt=True).definition}) == 3
    assert (
        len({SR(3).definition, SR(3, m=2).definition, SR(3, any=True).definition, SR(3, m=2, any=True).definition}) == 4
    )


def test_a_measure_of_somebody_else_is_defined_by_its_docstring():
    @dataclass(frozen=True)
    class Documented(Measure):
        """Share of blue hits (Doe 2020). Nothing else counts."""

        name: ClassVar[str] = "Documented"

        def per_query(self, rankings):
            return rankings.best_rank

    @dataclass(frozen=True)
    class Silent(Documented):
        k: int = 1
        name: ClassVar[str] = "Silent"

    @dataclass(frozen=True)
    class Talkative(Documented):
        name: ClassVar[str] = "Talkative"

    Talkative.__doc__ = "word " * 99

    assert Documented().definition == "Share of blue hits (Doe 2020)."
    assert Silent().definition == ""  # what a dataclass writes into it says nothing
    assert len(Talkative().definition) == 160
