"""Records and filters as hypothesis draws them: every type, texts that are hard to keep, and all operators."""

from __future__ import annotations

from hypothesis import strategies as st

from rungwise.index import Both, Condition, Either, Not
from rungwise.index.filters import Expression

TEXTS = st.one_of(
    st.sampled_from(["", "a", "Sea", "seaside", "ß", "\udcff", "\ue000", "\U0010ffff", "a\0b", "=", "'"]),
    st.text(max_size=3),
)
ENTRIES = ("year", "Year", "tags", "犬 '", "rungwise.item")
VALUES = st.one_of(
    TEXTS, st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, -1e300, 1e308, 10**400]), st.none(),
    st.lists(TEXTS, max_size=3), st.just({"x": 1}),
)  # fmt: skip
RECORDS = st.lists(st.dictionaries(st.sampled_from(ENTRIES), VALUES, max_size=4), min_size=1, max_size=6)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -1e300, 1e308]))
CONDITIONS: st.SearchStrategy[Expression] = st.one_of(
    st.builds(
        Condition, st.sampled_from(ENTRIES), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), TEXTS | NUMBERS
    ),
    st.builds(Condition, st.sampled_from(ENTRIES), st.sampled_from(["==", "!="]), st.booleans()),
    st.builds(Condition, st.sampled_from(ENTRIES), st.sampled_from(["has", "contains"]), TEXTS),
    st.builds(
        Condition,
        st.sampled_from(ENTRIES),
        st.just("in"),
        st.lists(TEXTS | NUMBERS | st.booleans(), max_size=3).map(tuple),
    ),
)
EXPRESSIONS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(Either, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Both, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=4,
)
