"""Tests the presets of printed rows against every setting that their papers print."""

import re

import pytest

from tests.pages import pages_below
from tests.training.config.letter import LETTER, NOT_PRINTED, letter_table, printed_lines, verdict


def test_every_printed_setting_is_read_once():
    keys = [key for key, _, _ in printed_lines()]
    assert sorted(keys) == sorted(LETTER)


@pytest.mark.parametrize("key", LETTER, ids=" ".join)
def test_presets_do_what_is_printed_or_say_what_they_do_instead(key):
    assert verdict(LETTER[key], key[0])


@pytest.mark.parametrize("name", NOT_PRINTED)
def test_presets_say_what_no_paper_prints(name):
    assert verdict(NOT_PRINTED[name], "")


def test_the_pages_of_printed_settings_hold_the_tables():
    page = pages_below("explanation/published")
    for part in re.split(r"\n\n(?=## )", letter_table()):
        assert part in page
