"""A published model's own tokenizer, which cuts texts to the context length but keeps their last token."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import STRICT, UserError
from rungwise.encoders.untrusted._network_settings import Length, Token
from rungwise.encoders.vocabulary import read_vocabulary, tokenise, too_long, unknown_words, whole_words


@dataclass(frozen=True)
class TokenRules:
    """How a model uses its tokenizer.

    Attributes:
        longest: Context length; longer texts are cut, and keep their last token.
        pad: Number of the padding token.
        padded: Whether every text is padded to the context length, as the model was trained; otherwise to the longest
            text.
        masked: Whether the network gets a mask of the padding.
        side: Side of the padding.
        clean: Cleaning of a text beforehand: none, or what open_clip calls lower, whitespace or canonicalize.
        zeroed: A token number that is replaced by 0 afterwards.
    """

    __pydantic_config__ = STRICT

    longest: Length
    pad: Token
    padded: bool = True
    masked: bool = False
    side: Literal["right", "left"] = "right"
    clean: Literal["none", "lower", "whitespace", "canonicalize"] = "none"
    zeroed: Annotated[int, Field(ge=0)] | None = None


class PretrainedTokenizer:
    """A tokenizer in the format of the library tokenizers, under a model's rules.

    Args:
        text: JSON text of the tokenizer.
        rules: The model's rules.
        where: Name of the file in errors.
        rows: Number of rows in the model's table of tokens.
        clean: Function for ``rules.clean``.

    Raises:
        UserError: If the tokenizer is damaged, has parts that are not listed, or was made for another table.
    """

    def __init__(
        self, text: str, rules: TokenRules, where: str, rows: int, clean: Callable[[str], str] | None = None
    ) -> None:
        self.text = text
        self.rules = rules
        self._clean = clean
        if max(rules.pad, rules.zeroed or 0) >= rows:
            raise UserError(f"{where}: fills up with token {rules.pad}, but the model knows {rows}; {_ANOTHER}")
        self._cutter = read_vocabulary(text, where, rows)
        self._cutter.enable_truncation(rules.longest)

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, cut to the context length."""
        tokens = tokenise(self._cutter, self._cleaned(texts))
        if self.rules.zeroed is None:
            return tokens
        return [[0 if one == self.rules.zeroed else one for one in ids] for ids in tokens]

    def too_long(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Positions of the texts that are cut, ascending."""
        return too_long(self._cutter, self._cleaned(texts))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text with signs that the vocabulary lacks."""
        return unknown_words(self._cutter, self._cleaned([text])[0])

    @cached_property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary."""
        return whole_words(self._cutter)

    def _cleaned(self, texts: Sequence[str]) -> Sequence[str]:
        return texts if self._clean is None else [self._clean(text) for text in texts]


_ANOTHER = "the tokenizer belongs to another model; copy the folder anew"


def plain_rules(tokenizer_json: str) -> str:
    """A tokenizer's JSON without its own padding and cutting, which the model decides."""
    said = json.loads(tokenizer_json)
    return json.dumps({**said, "padding": None, "truncation": None}, ensure_ascii=False, sort_keys=True)


def check_vocabulary(words: int, rows: int, where: object) -> None:
    """Refuse a tokenizer that was not made for a table of tokens.

    Tables are often a little longer than the vocabulary, never shorter.
    """
    if not 0 <= rows - words <= max(63, rows // 16):
        raise UserError(f"{where}: {words} words, but the model's table has {rows}; {_ANOTHER}")


def check_special(found: Mapping[str, int | None], wanted: Mapping[str, int | None], where: object) -> None:
    """Refuse a tokenizer whose special tokens have other numbers than the model's configuration says."""
    for name, number in wanted.items():
        if number is not None and found.get(name) != number:
            raise UserError(
                f"{where}: its {name} token has the number {found.get(name)}, the model's has {number}; {_ANOTHER}"
            )
