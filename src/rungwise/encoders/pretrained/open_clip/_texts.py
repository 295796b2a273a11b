"""The way of texts to a model of open_clip: cleaned, then cut by its own tokenizer or one of transformers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from rungwise.core import UserError, require
from rungwise.encoders.pretrained.open_clip._tower_settings import OpenClipText
from rungwise.encoders.untrusted import TokenRules, check_special, check_vocabulary, plain_rules

OWN_WORDS = 49408
"""Number of words in open_clip's own tokenizer."""


def tokenizer_of(
    said: Mapping[str, Any], where: Path, folder: Path, longest: int, rows: int, text: OpenClipText | None = None
) -> tuple[str, TokenRules]:
    """The tokenizer that open_clip would use, with its rules.

    Args:
        said: ``text_cfg``.
        where: File that holds it, for errors.
        folder: Folder of the tokenizer's files.
        longest: Context length.
        rows: Number of rows in the table of tokens.
        text: Settings of a tower of open_clip's own.

    Raises:
        UserError: If there is none, it belongs to another model, or it is used in a way that is not understood.
    """
    asked = said.get("tokenizer_kwargs") or {}
    known = {"clean", "strip_sep_token"} if said.get("hf_tokenizer_name") else {"clean"}
    if not isinstance(asked, dict) or asked.keys() - known or said.get("tokenizer_mode"):
        raise UserError(f"{where}: tokenizer_kwargs {str(asked)[:80]} are not understood; give another model")
    if not said.get("hf_tokenizer_name"):
        check_vocabulary(OWN_WORDS, rows, where)
        clean = _clean(asked.get("clean", "lower"), where)
        padded = text is None or text.no_causal_mask or text.pool_type != "argmax"
        return own_rules(), TokenRules(longest=longest, pad=0, padded=padded, clean=clean)
    from rungwise.encoders.pretrained._transformers import load_tokenizer, rules_of

    require("transformers", f"{where}: its tokenizer")
    loaded = load_tokenizer(folder)
    check_vocabulary(len(loaded), rows, folder / "tokenizer.json")
    if text is not None and text.pool_type == "eos":
        check_special({"eos": loaded.eos_token_id}, {"eos": text.eos_id}, folder / "tokenizer.json")
    if loaded.pad_token_id is None:
        raise UserError(f"{folder / 'tokenizer.json'}: has no token to fill up with; copy the folder anew")
    return rules_of(loaded, folder), TokenRules(
        longest=longest,
        pad=loaded.pad_token_id,
        side=loaded.padding_side,
        clean=_clean(asked.get("clean", "whitespace"), where),
        zeroed=loaded.sep_token_id if asked.get("strip_sep_token") else None,
    )


def _clean(name: object, where: Path) -> Any:
    if name not in ("lower", "whitespace", "canonicalize"):
        raise UserError(f"{where}: tokenizer_kwargs: clean {str(name)[:60]!r} is not understood; give another model")
    return name


@cache
def own_rules() -> str:
    """open_clip's own tokenizer, a Python program, as rules of the library tokenizers.

    Texts must be cleaned first (:mod:`rungwise.encoders.pretrained.open_clip._text_cleaning`). The token numbers are
    the same.
    """
    own: Any = importlib.import_module("open_clip").SimpleTokenizer()
    start, end = own.sot_token_id, own.eot_token_id
    names = {number: word for word, number in own.encoder.items()}
    rules = Tokenizer(models.BPE(vocab=own.encoder, merges=list(own.bpe_ranks), end_of_word_suffix="</w>"))
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    rules.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    rules.add_special_tokens([names[start], names[end]])
    rules.post_processor = processors.TemplateProcessing(
        single=f"{names[start]} $A {names[end]}", special_tokens=[(names[start], start), (names[end], end)]
    )
    return plain_rules(rules.to_str())
