r"""Names of graders: two that look the same are the same name, and a name is visible."""

from __future__ import annotations

import re
from unicodedata import category

from rungwise.core._errors import UserError
from rungwise.core.text._linear import normalised

LONGEST_NAME = 80
"""Most characters of a person's name."""

# Nothing of these is seen: controls, marks of direction, joiners, selectors of variants, fillers of Korean syllables.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANKS = re.compile(r"[\s\u2800]+")
"""Blanks; a Braille cell without dots is a sign for Unicode, and a blank for readers."""


def person_name(given: str) -> str:
    r"""A person's name in canonical form: without invisible characters, with single blanks, accents composed.

    Letters of different scripts that look alike stay different.

    Raises:
        UserError: If it has no visible letter or digit, has halves of characters, or is longer than
            :data:`LONGEST_NAME`.

    >>> person_name(" Ada\u200b\u00a0 Lovelace "), person_name("Jose\u0301") == person_name("Jos\u00e9")
    ('Ada Lovelace', True)
    """
    # What looks whole is composed again after something was taken out of the middle.
    name = _BLANKS.sub(" ", normalised(_UNSEEN.sub("", given), "NFC")).strip()
    if not any(category(sign)[0] in "LN" for sign in name) or any(category(sign) == "Cs" for sign in name):
        raise UserError("a person's name needs a letter or a digit that can be seen; give another")
    if len(name) > LONGEST_NAME:
        raise UserError(f"a person's name has {len(name)} characters; at most {LONGEST_NAME} are kept")
    return name
