"""The card of a saved model: how it is used, what it was made from, how well it ranks."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from rungwise.core import STRICT, UserError, from_plain, to_plain
from rungwise.core.output import printable, short_repr

EVALUATIONS = "evaluations"
"""Key of the evaluations' tables in a model's provenance."""

_MOST_TABLES = 100
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")
_REPOSITORY = re.compile(r"(?:hf|st):([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)")
_MARKS = re.compile(r"([\\`*_\[\]<>#|~$&!])")


@dataclass(frozen=True)
class EvaluationTable:
    """The result of an evaluation in plain values; see :func:`rungwise.evaluation.card_facts`.

    Attributes:
        data: Name of the data.
        data_hash: Hash of the collection.
        model_hash: Fingerprint of the model.
        protocol: Name of the protocol.
        head: Heading of each column.
        rows: Formatted cells of each row.
        notes: Sentences on what was ranked against what, and what counted as right.
        numbers: Unrounded numbers by canonical name, such as ``i2t/R@1``.
        version: Version of rungwise that measured.
    """

    __pydantic_config__ = STRICT

    data: str
    data_hash: str
    model_hash: str
    protocol: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    version: str = ""

    __repr__ = short_repr


_INDEXED = """rungwise index PICTURES --model "this folder" --out index
rungwise search index "two dogs running through snow\""""
_SECOND = """rungwise evaluate VECTOR_MODEL DATA --rerank "this folder"
rungwise search INDEX "two dogs running through snow" --rerank "this folder\""""
"""Commands for the card of a model that gives vectors, and of one that only scores pairs."""


def with_table(provenance: Mapping[str, Any], table: EvaluationTable) -> dict[str, Any]:
    """Provenance with one more table, which replaces an earlier one of the same data and protocol."""
    others = [
        one
        for one in tables_of(provenance)
        if (one.data, one.data_hash, one.protocol) != (table.data, table.data_hash, table.protocol)
    ]
    return {**provenance, EVALUATIONS: [to_plain(one) for one in (*others, table)][-_MOST_TABLES:]}


def tables_of(provenance: Mapping[str, Any]) -> tuple[EvaluationTable, ...]:
    """The tables in a model's provenance; entries that are no tables are skipped."""
    said = provenance.get(EVALUATIONS)
    found = []
    for one in said[:_MOST_TABLES] if isinstance(said, list) else ():
        try:
            table = from_plain(EvaluationTable, one, EVALUATIONS)
        except UserError:
            continue
        if all(len(row) == len(table.head) for row in table.rows) and all(map(math.isfinite, table.numbers.values())):
            found.append(table)
    return tuple(found)


def model_card(facts: dict[str, Any], *, dimension: int | None = None) -> str:
    """The card: Markdown with a YAML header, as model hubs read it.

    Args:
        facts: The model's configuration, data, training and results. They are printed unchanged, except the tables of
            evaluations (see :func:`with_table`) and ``license``, an identifier such as ``"cc-by-4.0"``.
        dimension: Number of numbers of a vector; None for a model without vectors, which reranks the best hits of one
            that gives some.
    """
    tables = tables_of(facts)
    rest = {name: value for name, value in facts.items() if name != EVALUATIONS}
    block = yaml.safe_dump(rest, sort_keys=False, allow_unicode=True)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block)), default=0))
    vectors, commands = ("", _SECOND) if dimension is None else (f", by vectors of {dimension:,} numbers", _INDEXED)
    return f"""---
{_header(facts, tables)}---

# Image-text retrieval model

Scores how well texts fit images{vectors}. Made with rungwise:

```python
from pathlib import Path
from rungwise.models._loading import load

model = load("this folder")
scores = model.block([Path("picture.jpg")], ["two dogs running through snow"])
```

On the command line:

```sh
{commands}
```

## Evaluation

{_sections(tables)}

## Limits

Rankings reflect the training data: its language, its subjects, and its blind spots. A score compares answers to one
query; it is no probability, and no proof that a text is true of a picture. Measure on pictures and captions of your own
before others rely on it.

## What it is made of

{fence}yaml
{block}{fence}
"""


def escaped(text: str) -> str:
    r"""Text of unknown origin for Markdown, with its marks escaped.

    >>> escaped("a|b <img> [x](y)")
    'a\\|b \\<img\\> \\[x\\](y)'
    """
    return _MARKS.sub(r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _header(facts: Mapping[str, Any], tables: tuple[EvaluationTable, ...]) -> str:
    from huggingface_hub import EvalResult, ModelCardData  # slow to load, and only saving needs it

    results = [
        EvalResult(
            task_type="image-text-retrieval",
            task_name="Image-text retrieval",
            dataset_type=re.sub(r"[^a-z0-9.-]+", "-", table.data.lower()).strip("-") or "unnamed",
            dataset_name=f"{_one_line(table.data) or 'unnamed'}, protocol {_one_line(table.protocol)}",
            metric_type=re.sub(r"[^a-z0-9]+", "_", name.rpartition("/")[2].replace("@", "_at_").lower()),
            metric_name=_one_line(name),
            metric_value=value,
        )
        for table in tables
        for name, value in table.numbers.items()
    ]
    licence = facts.get("license")
    base = _base_models(facts.get("model"))
    data = ModelCardData(
        library_name="rungwise",
        pipeline_tag="zero-shot-image-classification",  # the hub's name for scores of any texts with a picture
        tags=["image-text-retrieval"],
        license=licence if isinstance(licence, str) and _LICENCE.fullmatch(licence) else None,
        base_model=base or None,
        model_name="Image-text retrieval model",
        eval_results=results or None,
    )
    return f"{data.to_yaml().strip()}\n"


def _base_models(model: Any) -> list[str]:
    """Hub repositories of the two encoders; local folders are left out."""
    sides = [model.get(side) for side in ("image", "text")] if isinstance(model, dict) else []
    sources = [str(side.get("source", "")) for side in sides if isinstance(side, dict)]
    return list(dict.fromkeys(match[1] for source in sources if (match := _REPOSITORY.fullmatch(source))))


def _sections(tables: tuple[EvaluationTable, ...]) -> str:
    if not tables:
        return "Not evaluated yet; `rungwise evaluate MODEL DATA --card` writes a table here."
    return "\n\n".join(map(_section, tables))


def _section(table: EvaluationTable) -> str:
    aligned = ["--:" if number else ":--" for number in range(len(table.head))]
    lines = [table.head, *table.rows]
    shown = [f"| {' | '.join(map(escaped, line))} |" for line in lines]
    notes = [f"* {escaped(note)}" for note in table.notes]
    return "\n".join(
        [
            f"### {escaped(table.data) or 'unnamed'}, protocol {escaped(table.protocol)}",
            "",
            shown[0],
            f"|{'|'.join(aligned)}|",
            *shown[1:],
            "",
            *notes,
            f"* measured with rungwise {escaped(table.version)}",
        ]
    )
