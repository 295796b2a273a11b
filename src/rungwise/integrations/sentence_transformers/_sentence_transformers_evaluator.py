"""The evaluator for sentence-transformers."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sentence_transformers.base.evaluation import BaseEvaluator

from rungwise.core import UserError, read_text
from rungwise.core.disk import appending, make_folder
from rungwise.data import ImageCaptions
from rungwise.data.pictures import load_picture
from rungwise.evaluation import (
    EvaluationSettings,
    GivenPositives,
    Protocol,
    Provenance,
    Result,
    evaluate,
    protocol_named,
)
from rungwise.integrations.sentence_transformers._sentence_transformers_rows import TEXTS
from rungwise.metrics import DIRECTIONS, Direction, Measure, Positives, Total, parse, parse_all
from rungwise.relevance import Degrees, as_degrees


class GradedRetrievalEvaluator(BaseEvaluator):
    """An evaluator of sentence-transformers with the measures of rungwise, in both directions, with intervals.

    Numbers have the names and the scales of rungwise: rates run from 0 to 100. The last :class:`Result
    <rungwise.evaluation.Result>` is kept as ``result``, its intervals as ``intervals``.

    Args:
        data: Collection whose pictures and captions are encoded; of one that :func:`collection_of` made, the texts.
        relevance: Source of degrees, or (images, captions) numbers; needed by graded measures.
        queries: (images,) what the model encodes in place of the pictures, such as texts.
        measures: Measures or their names; default those of first right answers, with nDCG@10 where there are degrees.
        primary: Name of the number that chooses the best model; default ``rsum`` where it is measured, else the first.
        directions: Directions that are reported.
        protocol: Gallery and right answers, or its name.
        name: Name that stands before those of the numbers.
        batch_size: Number of texts or pictures that are encoded at a time.
        level: Level of the intervals.
        draws: Number of draws of the bootstrap; 0 leaves intervals out.
        settings: What counts as right beside the annotation, and where relevance ends.
        write_csv: Append a line to a CSV in the trainer's folder, and write the whole result beside it.
        show_progress_bar: Whether the model shows its progress.

    Raises:
        UserError: If the collection lacks pictures or captions, or the primary number is not measured.
    """

    def __init__(
        self,
        data: ImageCaptions,
        relevance: Degrees | ArrayLike | None = None,
        *,
        queries: Sequence[Any] | None = None,
        measures: Iterable[str | Measure | Total] | None = None,
        primary: str | None = None,
        directions: Sequence[Direction] = DIRECTIONS,
        protocol: str | Protocol = "full",
        name: str = "",
        batch_size: int = 32,
        level: float = 0.95,
        draws: int = 1000,
        settings: EvaluationSettings | None = None,
        write_csv: bool = True,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if queries is None and data.layout == TEXTS:
            queries = data.image_ids
        if not data.captions or not (data.paths or queries):
            raise UserError(f"{data.name}: has no {'pictures' if data.captions else 'captions'} to encode")
        if queries is not None and len(queries) != len(data):
            raise UserError(f"queries= has {len(queries)} entries for {len(data)} pictures; give one for each")
        self.data, self.queries = data, queries
        self.relevance = None if relevance is None else as_degrees(relevance, data)
        graded = ("nDCG@10",) if relevance is not None else ()
        self.measures = parse_all(("R@1", "R@5", "R@10", "rsum", *graded) if measures is None else measures)
        self.name, self.batch_size, self.level, self.draws = name, batch_size, level, draws
        self.settings = settings
        self.write_csv, self.show_progress_bar = write_csv, show_progress_bar
        self.protocol, self.directions = protocol_named(protocol), tuple(directions)
        self.result: Result | None = None
        self.intervals: Mapping[str, Any] = {}
        names = self._names()
        self.primary_metric = primary or ("rsum" if "rsum" in names else names[0])
        if self.primary_metric not in names:
            raise UserError(f"primary= {primary!r} is not measured; name one of {', '.join(names)}")
        self.greater_is_better = parse(self.primary_metric.rpartition("/")[2]).higher_is_better
        self._primary = self.primary_metric

    @classmethod
    def of_judgements(
        cls,
        queries: Mapping[str, str],
        corpus: Mapping[str, str],
        judgements: Mapping[str, Mapping[str, float]],
        *,
        right_from: float | None = None,
        measures: Iterable[str | Measure | Total] = ("R@1", "R@10", "MRR", "nDCG@10"),
        **options: Any,
    ) -> GradedRetrievalEvaluator:
        """An evaluator of queries and documents with graded judgements, such as 0, 1, 2, 3 or 0.37.

        Numbers are named ``i2t/...``: queries stand where pictures stand elsewhere. A pair that is not judged has the
        degree 0.

        Args:
            queries: Texts by id.
            corpus: Texts of documents by id.
            judgements: For the id of a query, degrees by the ids of documents.
            right_from: Degree from which a document counts as right, for measures such as ``R@1``; default: above 0.
            measures: Measures or their names.
            options: Further arguments of the class.

        Raises:
            UserError: If an id is not known.

        >>> evaluator = GradedRetrievalEvaluator.of_judgements(
        ...     {"q": "dog"}, {"a": "a dog", "b": "a cat"}, {"q": {"a": 2, "b": 0.5}})
        >>> evaluator.primary_metric
        'i2t/nDCG@10'
        """
        query_at, document_at = ({one: at for at, one in enumerate(ids)} for ids in (queries, corpus))
        degrees = np.zeros((len(queries), len(corpus)), np.float32)
        for query, own in judgements.items():
            for document, degree in own.items():
                if query not in query_at or document not in document_at:
                    strange = document if query in query_at else query
                    raise UserError(f"judgements, query {query!r}: {strange!r} is not among queries and corpus")
                degrees[query_at[query], document_at[document]] = degree
        right = degrees > 0 if right_from is None else degrees >= right_from
        owners = np.where(right.any(axis=0), right.argmax(axis=0), 0)
        data = ImageCaptions(tuple(queries), tuple(corpus.values()), owners, tuple(corpus), name="texts", layout=TEXTS)
        settings = EvaluationSettings(
            positives={way: _positives(right if way == "i2t" else right.T) for way in DIRECTIONS}
        )
        asked = parse_all(measures)
        primary = "i2t/nDCG@10" if "nDCG@10" in map(str, asked) else f"i2t/{asked[0]}"
        usual = {"primary": primary, "directions": ("i2t",), "protocol": _Judged("judgements")}
        texts = tuple(queries.values())
        return cls(data, degrees, queries=texts, measures=asked, settings=settings, **{**usual, **options})

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate a model.

        Args:
            model: ``SentenceTransformer`` that encodes both sides.
            output_path: Folder for the CSV and the result; None writes nothing.
            epoch: Epoch, or -1 outside of training.
            steps: Steps in the epoch, or -1 at its end.

        Returns:
            Numbers by name.
        """
        texts: Sequence[Any] = self.data.captions
        self.result = evaluate(
            image_embeddings=self._vectors(model.encode_query, self.queries or _Pictures(self.data)),
            text_embeddings=self._vectors(model.encode_document, texts),
            image_of_caption=self.data.image_of_caption,
            similarity_function=lambda one, other: model.similarity(one, other).float().numpy(),
            relevance=self.relevance,
            measures=self.measures,
            protocol=self.protocol,
            provenance=Provenance.of(self.data),
            settings=self.settings,
        )
        numbers = {name: self.result[name] for name in self._names()}
        self.intervals = self.result.intervals(list(numbers), self.level, self.draws) if self.draws else {}
        if output_path is not None and self.write_csv:
            self._write(Path(output_path), epoch, steps, numbers)
        self.primary_metric = self._primary
        named: dict[str, float] = self.prefix_name_to_metrics(numbers, self.name)
        self.store_metrics_in_model_card_data(model, named, epoch, steps)
        return named

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model's card."""
        degrees = "" if self.relevance is None else self.relevance.title()
        return {"measures": ", ".join(map(str, self.measures)), "relevance": degrees, "protocol": self.protocol.name}

    def _names(self) -> list[str]:
        both = [(one, way) for one in self.measures for way in self.directions]
        return list(dict.fromkeys(str(one) if isinstance(one, Total) else f"{way}/{one}" for one, way in both))

    def _vectors(self, encode: Callable[..., Any], items: Sequence[Any]) -> NDArray[np.float32]:
        """Vectors of all items; pictures are opened a batch at a time."""
        run = self.batch_size * 32
        return np.concatenate(
            [
                encode(items[start : start + run], batch_size=self.batch_size, show_progress_bar=self.show_progress_bar)
                for start in range(0, len(items), run)
            ]
        )

    def _write(self, folder: Path, epoch: int, steps: int, numbers: Mapping[str, float]) -> None:
        """Append a line to the CSV of these columns, and write the result."""
        assert self.result is not None
        make_folder(folder)
        bounds = {
            f"{name}/{side}": getattr(one, side) for name, one in self.intervals.items() for side in ("low", "high")
        }
        row = {"epoch": epoch, "steps": steps, **numbers, **bounds}
        stem = f"graded_retrieval{'_' * bool(self.name)}{self.name}"
        header, line = _csv_lines(row)
        path, number = folder / f"{stem}_results.csv", 1
        while path.exists() and read_text(path, "text_bytes").partition("\n")[0] != header.strip():
            number += 1  # another program's columns, or other measures of an earlier run
            path = folder / f"{stem}_results_{number}.csv"
        text = line if path.exists() else header + line
        with appending(path) as file:
            file.write(text.encode())
        self.result.to_json(folder / f"{stem}_epoch{epoch}_steps{steps}.json")


class _Judged(GivenPositives):
    """Queries and documents with graded judgements."""

    right = "documents that were judged relevant"


class _Pictures(Sequence[Any]):
    """Pictures of a collection, opened when they are asked for."""

    def __init__(self, data: ImageCaptions) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, asked: Any) -> Any:
        from PIL import Image

        if isinstance(asked, slice):
            return [self[at] for at in range(*asked.indices(len(self)))]
        return Image.fromarray(load_picture(self.data.paths[asked]).permute(1, 2, 0).numpy())


def _positives(right: NDArray[np.bool_]) -> Positives:
    counts = right.sum(axis=1)
    return Positives(np.concatenate([[0], np.cumsum(counts)]), np.nonzero(right)[1])


def _csv_lines(row: Mapping[str, object]) -> tuple[str, str]:
    """The header and the line of a row."""
    lines = []
    for cells in (row.keys(), row.values()):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        lines.append(text.getvalue())
    return lines[0], lines[1]
