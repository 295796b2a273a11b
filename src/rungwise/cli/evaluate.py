"""``rungwise evaluate``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rungwise.cli.scored import Scored, read_beside, read_scored
from rungwise.cli.terminal import console, messages_apart, say, say_issues
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.core.printable import printable
from rungwise.evaluation import (
    Result,
    card_facts,
    diagnose,
    evaluate,
    format_result,
    protocol_named,
    published_beside,
    render_published,
    render_table,
    report_page,
    write_false_negatives,
)
from rungwise.evaluation.diagnostics import Diagnostics, false_negatives_by_gallery, in_positions_of_data
from rungwise.evaluation.positives import RightAnswers, positives_from_json, positives_from_labels
from rungwise.evaluation.published import PublishedRow
from rungwise.evaluation.ranked_lists import RankedLists
from rungwise.evaluation.tables import Intervals
from rungwise.metrics import Total, parse_all
from rungwise.metrics.rankings import positives_of
from rungwise.metrics.sources import SimilaritySource
from rungwise.models.folder import CARD


@dataclass
class Evaluate:
    """How well a model ranks the captions of pictures and the pictures of captions.

    Give MODEL DATA, or DATA and files of scores, or files of scores alone.

    FILE:KEY names one array of several.

    Attributes:
        model: Folder of a model, a hub repository, or a published model (hf:, open_clip: or st:, and a folder or a
            name); left out where scores come as files.
        data: Folder or caption file: ids, captions, and which caption belongs to which picture.
        old_data: The old spelling of DATA.
        image_embeddings: One vector a picture: npy, npz, safetensors or Parquet (with ids in a column "id").
        text_embeddings: One vector a caption.
        similarity: Scores of every picture (rows) with every caption (columns): npy, npz, or JSON rows.
        ranked_lists: A TREC run, or JSON {query: [candidates]}; one file, or one for each direction.
        captions_per_image: Without data: every picture has so many captions, one picture's after another's.
        image_of_caption: Without data: file with the picture's position of every caption.
        split: The pictures to rank; "all" takes every one.
        captions_only: Do not look for picture files in the data.
        join_restval: Count COCO's restval pictures as training pictures.
        protocol: Gallery and right answers: full, coco-5k, coco-1k-5fold, flickr30k-1k, flickr8k-1k,
            one-caption-per-image, cxc, eccv, labels.
        positives: For cxc and eccv: the two JSON files, image-to-caption first.
        measures: Such as R@1, Recall@5, MedR, MeanR, rsum; graded ones (CS@100, nDCG@10, NCS@10) need degrees.
            Default: the protocol's.
        relevance: Degrees: a folder that "rungwise relevance" wrote, npy or npz. Scenes have theirs.
        out: Write the result as JSON here, with one value a query.
        format: What to print.
        intervals: Print 95 % bootstrap intervals over pictures, too; the report has them in any case.
        report: Write one HTML file with tables, plots and queries here.
        thresholds: Falling degrees that cut the report's rungs.
        beside: Another model of the same data for the report: a model, a similarity file, or two files of embeddings.
        names: Of this model and the other in the report.
        card: Write the numbers with their intervals into the card of the model, a folder of this machine.
        false_negatives: Write candidates that are called wrong and are relevant as CSV here.
        right_from: The degree from which a candidate is right; default the query's least relevant annotated one.
        paper: Set published rows beside: vsepp, ladder_loss, sam, convse, cmal2r.
        dataset: Which of the paper's test sets this is, where the protocol does not say it.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        precision: Of picture features that are not at hand; auto takes bfloat16 where it is faster and close enough.
        least_cosine: What auto asks of features in bfloat16: the cosine to those in float32, picture by picture.
        altered_model: Take a model whose files are not as its SHA256SUMS says.
        cache: Folder of the feature cache; default RUNGWISE_CACHE or the system's.
    """

    model: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[MODEL]")] = None
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[DATA]")] = None
    old_data: Annotated[Path | None, tyro.conf.arg(name="data")] = None
    image_embeddings: str | None = None
    text_embeddings: str | None = None
    similarity: str | None = None
    ranked_lists: tuple[Path, ...] = ()
    captions_per_image: int | None = None
    image_of_caption: Path | None = None
    split: str = "test"
    captions_only: bool = False
    join_restval: bool = False
    protocol: str = "full"
    positives: tuple[Path, ...] = ()
    measures: tuple[str, ...] = ()
    relevance: str | None = None
    out: Path | None = None
    format: Literal["table", "markdown", "latex", "csv", "json"] = "table"
    intervals: bool = False
    report: Path | None = None
    thresholds: tuple[float, ...] = ()
    beside: tuple[str, ...] = ()
    names: tuple[str, str] = ("this model", "the other model")
    card: bool = False
    false_negatives: Path | None = None
    right_from: float | None = None
    paper: tuple[str, ...] = ()
    dataset: str | None = None
    device: str | None = None
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    least_cosine: float = 0.999
    altered_model: bool = False
    cache: Path | None = None

    @property
    def has_files(self) -> bool:
        """Scores come as files rather than from a model."""
        return any((self.image_embeddings, self.text_embeddings, self.similarity, self.ranked_lists))


def main(arguments: list[str]) -> int:
    """Evaluate, print, write."""
    asked = _with_data_in_place(tyro.cli(Evaluate, args=arguments, prog="rungwise evaluate"))
    protocol_named(asked.protocol)  # a mistake in a name should not wait for a model
    parse_all(asked.measures)
    _refuse_idle_options(asked)
    with messages_apart(asked.format != "table"):
        scored = read_scored(asked)
        _refuse_missing_degrees(asked, scored)
        positives = _positives(asked, scored)
        result = evaluate(
            similarity=scored.similarity,
            image_of_caption=scored.data.image_of_caption,
            relevance=scored.relevance,
            measures=_measures(asked, scored, positives),
            protocol=asked.protocol,
            positives=positives,
            data_name=scored.data.name,
            data_hash=scored.data.content_hash() if scored.has_texts else "",
            model_hash=scored.model_hash,
            relevance_name=scored.relevance_name,
            seed=scored.seed,
            image_ids=scored.data.image_ids if scored.has_texts else None,
            caption_ids=scored.data.caption_ids if scored.has_texts else None,
        )
        intervals = result.intervals() if asked.intervals or asked.report or asked.card else None
        rows = [row for paper in asked.paper for row in _published(asked, paper, result, scored.split)]
        _print(asked, result, rows, intervals if asked.intervals else None)
        if asked.out:
            result.to_json(asked.out, per_query=True)
            say(f"written: {asked.out}")
        if asked.card:
            from rungwise.models import add_evaluation  # torch, which files of numbers do not need

            add_evaluation(str(asked.model), card_facts(result, intervals))
            say(f"written: {asked.model}/{CARD}")
        if asked.report or asked.false_negatives:
            _look_closer(asked, scored, positives, result, rows, intervals)
    return 0


def _with_data_in_place(asked: Evaluate) -> Evaluate:
    """DATA alone stands where MODEL would, and the old spelling is an option."""
    if asked.has_files and asked.model is not None and asked.data is None:
        asked = replace(asked, model=None, data=Path(asked.model))
    if asked.old_data is None:
        return asked
    if asked.data is not None:
        raise UserError(f"data were given twice, {asked.data} and --data {asked.old_data}; give one")
    return replace(asked, data=asked.old_data, old_data=None)


def _refuse_idle_options(asked: Evaluate) -> None:
    """An option that would change nothing is a misunderstanding."""
    report, false_negatives = asked.report is not None, asked.false_negatives is not None
    has_data, runs_a_model = asked.data is not None, asked.model is not None or len(asked.beside) == 1
    for option, given, other, is_there in (
        ("--beside", bool(asked.beside), "--report", report),
        ("--thresholds", bool(asked.thresholds), "--report", report),
        ("--right-from", asked.right_from is not None, "--false-negatives or --report", false_negatives or report),
        ("--dataset", asked.dataset is not None, "--paper", bool(asked.paper)),
        ("--split", asked.split != Evaluate.split, "DATA", has_data),
        ("--captions-only", asked.captions_only, "DATA", has_data),
        ("--join-restval", asked.join_restval, "DATA", has_data),
        ("--device", asked.device is not None, "a model", runs_a_model),
        ("--altered-model", asked.altered_model, "a model", runs_a_model),
        ("--card", asked.card, "a model", asked.model is not None),
    ):
        if given and not is_there:
            raise UserError(f"{option} changes nothing without {other}; give both, or leave {option} out")
    if asked.card and not Path(str(asked.model)).is_dir():
        raise UserError(f"--card writes into the folder of a model, which {asked.model} is not; leave --card out")
    for option, given in (
        ("--captions-per-image", asked.captions_per_image is not None),
        ("--image-of-caption", asked.image_of_caption is not None),
    ):
        if given and has_data:
            raise UserError(f"{option} contradicts DATA {asked.data}, which says whose each caption is; give one")


def _refuse_missing_degrees(asked: Evaluate, scored: Scored) -> None:
    needing = [str(one) for one in parse_all(asked.measures or protocol_named(asked.protocol).measures) if one.graded]
    needing += ["--false-negatives"] * (asked.false_negatives is not None)
    needing += ["--thresholds"] * bool(asked.thresholds)
    needing += ["--right-from"] * (asked.right_from is not None)
    if needing and scored.relevance is None:
        raise UserError(f"{needing[0]} needs degrees of relevance; give --relevance, or leave {needing[0]} out")


def _measures(asked: Evaluate, scored: Scored, positives: RightAnswers | None) -> tuple[str, ...]:
    """Those that were asked for; else the protocol's, without those that short lists cannot answer."""
    usual = asked.measures or protocol_named(asked.protocol).measures
    lists = scored.similarity
    if asked.measures or not isinstance(lists, RankedLists):
        return usual
    right = positives or positives_of(scored.data.image_of_caption, len(scored.data))
    kept = []
    for measure in parse_all(usual):
        terms = measure.terms if isinstance(measure, Total) else (measure,)
        reasons = [why for term in terms if (why := lists.reads(term, right))]
        if reasons:
            say(f"left out {measure}: {reasons[0]}")
        else:
            kept.append(str(measure))
    if not kept:
        raise UserError("the ranked lists are too short for every usual measure; ask for --measures that they answer")
    return tuple(kept)


def _positives(asked: Evaluate, scored: Scored) -> RightAnswers | None:
    if asked.positives:
        if len(asked.positives) != 2:
            raise UserError("--positives takes two files: IMAGE_TO_CAPTION.json CAPTION_TO_IMAGE.json")
        if not scored.has_texts:
            raise UserError("--positives names ids; give DATA, whose ids they are")
        positives, issues = positives_from_json(*asked.positives, scored.data)
        say_issues(issues)
        return positives
    if asked.protocol == "labels":
        if not scored.data.labels:
            raise UserError(f"{scored.data.name}: has no class labels; give data with a column 'label' or 'labels'")
        return positives_from_labels(scored.data.labels, scored.data.image_of_caption)
    rule = protocol_named(asked.protocol)
    if rule.takes_positives:
        raise UserError(
            f"protocol {rule.name} needs {rule.right}; give --positives IMAGE_TO_CAPTION.json CAPTION_TO_IMAGE.json"
        )
    return None


def _published(asked: Evaluate, paper: str, result: Result, split: str) -> list[PublishedRow]:
    rows = published_beside(result, paper, dataset=asked.dataset, split=split)
    theirs = dict.fromkeys(name for row in rows for name in row.numbers)
    if not any(name in result.numbers for name in theirs):
        raise UserError(
            f"--paper {paper}: its rows have none of these --measures; ask for one of"
            f" {', '.join(dict.fromkeys(name.rpartition('/')[2] for name in theirs))}"
        )
    return rows


def _print(asked: Evaluate, result: Result, rows: list[PublishedRow], intervals: Intervals | None) -> None:
    if asked.format != "table":
        print(printable(format_result(result, asked.format, rows, asked.names[0], intervals)))
        return
    console.print(render_table(result, intervals))
    if rows:
        say(render_published(result, asked.names[0], rows))


def _look_closer(
    asked: Evaluate,
    scored: Scored,
    positives: RightAnswers | None,
    result: Result,
    rows: list[PublishedRow],
    intervals: Intervals | None,
) -> None:
    def diagnosed(similarity: SimilaritySource) -> Diagnostics:
        return diagnose(
            similarity,
            scored.data,
            relevance=scored.relevance,
            positives=positives,
            protocol=asked.protocol,
            thresholds=asked.thresholds,
        )

    found = diagnosed(scored.similarity)
    galleries = None if asked.false_negatives else 1  # a report shows those of the first
    wrong = false_negatives_by_gallery(found, right_from=asked.right_from, galleries=galleries)
    if asked.false_negatives:
        everywhere = in_positions_of_data(found, wrong)
        write_false_negatives(asked.false_negatives, everywhere, scored.data)
        say(f"written: {asked.false_negatives} ({len(everywhere)} candidates)")
    if asked.report:
        page = report_page(
            result,
            found,
            false_negatives=wrong[0],
            published=rows,
            intervals=intervals,
            beside=diagnosed(read_beside(asked.beside, scored, asked)) if asked.beside else None,
            names=asked.names,
            has_texts=scored.has_texts,
        )
        with replacing(asked.report) as draft:
            draft.write_text(page, encoding="utf-8")
        say(f"report: {asked.report}")
