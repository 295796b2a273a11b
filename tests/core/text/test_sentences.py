import pytest

from rungwise.core.text import first_sentence


@pytest.mark.parametrize(
    ("docstring", "wanted"),
    [
        (None, ""),
        ("", ""),
        ("   \n ", ""),
        ("One.", "One."),
        ("One", "One."),
        ("One. Two.", "One."),
        (
            "Share of hits at recall 0, 0.1, ..., 1, in percent. More.",
            "Share of hits at recall 0, 0.1, ..., 1, in percent.",
        ),
        ("After Doe et al. 2020, Eq. 3: a sum.\n\n    More.", "After Doe et al. 2020, Eq. 3: a sum."),
        ("A long\n    line :func:`~a.b.c` and ``code`` and :class:`D`.", "A long line c and code and D."),
        ("A heading\n\nand more.", "A heading."),
        ("A list:\n\n* one", "A list."),
    ],
)
def test_the_first_sentence_in_one_line(docstring, wanted):
    assert first_sentence(docstring) == wanted
