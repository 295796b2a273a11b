"""Head and end of a report: what was measured, how and by what; words and measures defined; how to cite it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.core.text import first_sentence
from rungwise.evaluation._protocols import protocol_named
from rungwise.evaluation.report._parts import section
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import WAYS
from rungwise.evaluation.tables import PAPERS, PublishedRow
from rungwise.metrics import Measure, Total, parse

SOFTWARE = {
    "title": "rungwise: Image-text retrieval by degrees of relevance: train, judge and serve joint embeddings",
    "author": "{rungwise developers}",
    "license": "Apache-2.0",
}
"""Facts of the BibTeX entry, as ``pyproject.toml`` has them."""

_REFERENCES = {
    "max": "A degree compares a caption with the closest caption of the image",
    "mean": "A degree compares a caption with all captions of the image, and is the mean",
    "paired": "A degree compares a caption with the one that comes with the image",
}

_PAPER_OF = {"R": "vsepp", "MedR": "vsepp", "CS": "ladder_loss", "NCS": "sam", "SR": "sam", "Recall": "sam"}
"""Papers after which measures are computed, by family."""


@dataclass(frozen=True)
class ReportOrigin:
    """What a report was made from, as it was given; what is not known is left out.

    Attributes:
        model: Name or folder of the model.
        kind: What the model is, in a few words.
        files: Names of files, folders and arrays by what they hold, such as ``"data"`` or ``"relevance"``.
        command: The command, or the call in Python.
        date: Day and time.
    """

    model: str = ""
    kind: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    date: str = ""

    __repr__ = short_repr


def head_of(result: Result, origin: ReportOrigin, *, intervals: bool) -> str:
    """List of facts below the title of a report, without a heading of its own.

    Args:
        result: The numbers that are shown.
        origin: What they were made from.
        intervals: Whether bounds stand beside the numbers.
    """
    ways = [way for way in WAYS if any(name.startswith(f"{way}/") for name in result.numbers)]
    queries = {"i2t": "image queries, which rank captions (i2t)", "t2i": "caption queries, which rank images (t2i)"}
    facts = [
        ("model", origin.model),
        ("what it is", origin.kind),
        ("hash of the model", result.model_hash),
        ("trained with seed", "" if result.seed is None else str(result.seed)),
        ("second model", "" if result.reranking is None else result.reranking.note()),
        *((name, value) for name, value in origin.files.items()),
        ("name of the data", " ".join(filter(None, (result.data_name, result.dataset and f"({result.dataset})")))),
        ("hash of the data", result.data_hash),
        ("split", result.split),
        ("protocol", _protocol(result)),
        ("pictures and captions", _sizes(result)),
        ("queries", "; ".join(f"{result.queries[way]:,} {queries[way]}" for way in ways)),
        ("counted as right", result.right),
        ("degrees read by measures", result.degrees() if result.relevance else ""),
        ("intervals", "95 %, bootstrap over images: 1,000 draws, seed 0" if intervals else ""),
        ("command", origin.command),
        ("date", origin.date),
        ("made by", f"rungwise {result.version}" if result.version else ""),
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{_code(name, value)}</dd>" for name, value in facts if value)
    return f"<section><h2>What was measured</h2><dl class=facts>{rows}</dl></section>"


def definitions(result: Result, *, degrees: bool) -> str:
    """HTML list that says what each number of a result is, and the words that these sentences need.

    Args:
        result: The numbers that are shown.
        degrees: Whether degrees of relevance are shown, which are then explained.
    """
    said: dict[str, list[str]] = {}
    for name in dict.fromkeys(name.rpartition("/")[2] for name in result.numbers):
        said.setdefault(definition_of(name), []).append(name)
    words = [
        (
            "query, candidate, gallery",
            "A query is an image that ranks the captions of the gallery, or a caption that ranks its images; what is"
            " ranked are its candidates, by falling similarity, equal ones by their position.",
        ),
        ("right", f"A candidate that answers the query. Here these are: {result.right}." if result.right else ""),
        ("K, m, t", "The numbers in the name of a measure: K stands after the @, others in parentheses."),
        ("image to text (i2t)", "Images are the queries, and captions the candidates."),
        ("text to image (t2i)", "Captions are the queries, and images the candidates."),
    ]
    words.append(("similarity (S)", "How alike the model finds an image and a caption."))
    if degrees:
        words.append(("degree (R)", "How relevant a candidate is to a query, by a source that is not the model."))
    if result.reference:
        words.append((f"reference {result.reference}", f"{_REFERENCES[result.reference]}."))
    if result.ends:
        words.append(("cut", f"Where relevance ends in a ranking, by a method: {result.ends}."))
    rows = "".join(
        f"<dt>{escape(names)}</dt><dd>{escape(text)}</dd>"
        for names, text in [*((", ".join(own), text) for text, own in said.items()), *words]
        if text
    )
    return f"<dl class=facts>{rows}</dl>"


def definition_of(name: str) -> str:
    """One sentence that says what a measure or a sum is.

    >>> definition_of("MeanR")
    "Mean rank of each query's best right candidate, counted from 1."
    """
    measure = _parsed(name)
    if measure is None:
        return "A measure of a module that is not imported here."
    if measure.definition:
        return measure.definition
    return f"A measure of the module {type(measure).__module__}, which does not say what it is."


def citation(result: Result, origin: ReportOrigin, published: Iterable[PublishedRow], drawn: Iterable[str]) -> str:
    """Section that says how to cite the numbers, the program, and the papers of the measures and rows.

    Args:
        result: The numbers that are shown.
        origin: What they were made from.
        published: Rows of papers that are shown beside.
        drawn: Families of measures that are only drawn, such as ``"CS"``.
    """
    version = result.version
    measured = [
        f"rungwise {version}" if version else "rungwise",
        f"protocol {result.protocol}",
        f"data {result.data_name}" if result.data_name else "",
        f"split {result.split}" if result.split else "",
        f"hash of the data {result.data_hash}" if result.data_hash else "",
        f"degrees of relevance {result.degrees()}" if result.relevance else "",
        f"hash of the model {result.model_hash}" if result.model_hash else "",
        origin.date,
    ]
    entry = {**SOFTWARE, "version": version}
    bibtex = "".join(f"  {name} = {{{value}}},\n" for name, value in entry.items() if value)
    families = {_family(name.rpartition("/")[2]) for name in result.numbers} | set(drawn)
    papers = {paper for family, paper in _PAPER_OF.items() if family in families} | {one.paper for one in published}
    titles = "".join(f"<li>{escape(title)}</li>" for name, title in PAPERS.items() if name in papers)
    origins = dict.fromkeys(one.origin for one in published if one.origin)
    titles += "".join(f"<li>{escape(origin)}</li>" for origin in origins)
    named = f"<p>Papers of the measures and rows that are shown:</p><ul>{titles}</ul>" if titles else ""
    return section(
        "How to cite",
        f"<p>{escape(', '.join(filter(None, measured)))}.</p>"
        f"<pre>@software{{rungwise,\n{escape(bibtex)}}}</pre>{named}",
        "What a reader needs to make these numbers again, the program, and the papers behind the measures.",
    )


def _protocol(result: Result) -> str:
    """Name of the protocol and what it is, as far as this program knows it."""
    try:
        rule = protocol_named(result.protocol)
    except UserError:
        return result.protocol
    folds = len(result.gallery["i2t"])
    several = f" Numbers are means over {folds} galleries." if folds > 1 else ""
    return f"{result.protocol}. {first_sentence(type(rule).__doc__)}{several}"


def _sizes(result: Result) -> str:
    captions, images = result.gallery["i2t"], result.gallery["t2i"]
    few, many = result.captions_per_image["min"], result.captions_per_image["max"]
    each = f"{few:.0f}" if few == many else f"{few:.0f} to {many:.0f}"
    folds = f"{len(images)} galleries of " if len(images) > 1 else ""
    return f"{folds}{images[0]:,} pictures and {captions[0]:,} captions, {each} a picture"


def _code(name: str, value: str) -> str:
    return f"<code>{escape(value)}</code>" if name == "command" or name.startswith("hash") else escape(value)


def _parsed(name: str) -> Measure | Total | None:
    try:
        return parse(name)
    except UserError:
        return None


def _family(name: str) -> str:
    """Family of a measure; of a sum, that of its terms."""
    measure = _parsed(name)
    if isinstance(measure, Total):
        return measure.terms[0].name
    return "" if measure is None else measure.name
