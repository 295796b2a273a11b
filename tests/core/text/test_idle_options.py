from dataclasses import dataclass, field

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.text import idle_beside, idle_where, idle_without, is_given, refuse_idle


@dataclass
class Search:
    top: int = 50
    rerank: object = None
    fold: bool = True
    names: tuple[str, ...] = ()
    limits: list[int] = field(default_factory=list)

    IDLE = (
        idle_without("top", "rerank", remedy="leave {} out, or name a second model"),
        idle_beside("names fold", "limits"),
        idle_where("names", lambda asked: asked.top > 90, "with {top} above 90"),
    )


@pytest.mark.parametrize(
    ("asked", "typed", "said"),
    [
        (Search(), (), None),
        (Search(top=50), (), None),
        (Search(top=20, rerank="model"), (), None),
        (Search(top=20), (), "--top changes nothing without --rerank; leave --top out, or name a second model"),
        (Search(), ("top",), "--top changes nothing without --rerank; leave --top out, or name a second model"),
        (Search(limits=[1], fold=False), (), "--no_fold changes nothing beside --limits; leave one of them out"),
        (Search(limits=[1]), ("fold",), "--fold changes nothing beside --limits; leave one of them out"),
        (Search(limits=[1], names=("a",)), (), "--names changes nothing beside --limits; leave one of them out"),
        (Search(top=91, rerank=1, names=("a",)), (), "--names changes nothing with --top above 90; leave it out"),
    ],
)
def test_what_is_given_and_changes_nothing_is_refused(asked, typed, said):
    if said is None:
        refuse_idle(asked, typed=typed, option="--{}".format)
        return
    with pytest.raises(UserError) as refused:
        refuse_idle(asked, typed=typed, option="--{}".format)
    assert str(refused.value) == said


def test_a_source_in_a_file_says_where_and_names_settings():
    with pytest.raises(UserError, match="^spice: top changes nothing without rerank; leave top out"):
        refuse_idle(Search(top=3), where="spice: ")


def test_cases_that_only_the_data_show_are_passed():
    with pytest.raises(UserError, match="^rerank changes nothing here; leave it out$"):
        refuse_idle(Search(rerank="model"), idle_where("rerank", lambda _: True, "here"))
    refuse_idle(Search(top=3), idle_where("rerank", lambda _: True, "here"))


@pytest.mark.parametrize(
    ("asked", "name", "given"),
    [
        (Search(rerank=np.zeros(3)), "rerank", True),
        (Search(rerank=np.zeros(0)), "rerank", True),
        (Search(rerank=False), "rerank", True),
        (Search(rerank=None), "rerank", False),
        (Search(top=50.0), "top", False),
        (Search(names=()), "names", False),
        (Search(names=("a",)), "names", True),
        (Search(limits=[]), "limits", False),
    ],
)
def test_a_default_is_not_given(asked, name, given):
    assert is_given(asked, name) is given


def test_a_class_without_cases_is_never_refused():
    @dataclass
    class Plain:
        k: int = 1

    refuse_idle(Plain(2))
