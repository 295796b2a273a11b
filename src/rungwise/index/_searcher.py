"""An index and the model that built it: searches by text and by picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration import QueryJudgement
from rungwise.core import UserError, check_length
from rungwise.data.files import PackedPicture, Picture
from rungwise.index._answers import Answer, CaptionHit, Hit, SearchOptions, WordUse, hits_of
from rungwise.index._index import Index
from rungwise.index._ranking import MOST_BY_WORDS, PictureCandidates
from rungwise.index.cutoff import Cutoff, end_of, refit
from rungwise.index.filters import Where
from rungwise.index.query import (
    GivenPicture,
    GivenVector,
    Like,
    Meaning,
    Query,
    UnknownWord,
    Words,
    combined,
    parse_query,
    unknown_words,
)
from rungwise.index.search import MOST_OF, StateCache, groups_of, reranked
from rungwise.index.stores import check_k, checked_queries, word_set, words_of
from rungwise.index.update import one_line

if TYPE_CHECKING:
    from rungwise.calibration import Calibration, CalibrationComparison
    from rungwise.models import DualEncoder


class Searcher:
    """Searches of an index with words, pictures, and both.

    The model's fingerprint, for which all its weights are read, is compared with that of the index when the searcher is
    made and not again: make a new searcher for a model whose weights have changed since.

    Args:
        index: The index that is searched.
        model: The model that built it.
        meaning: Finds known words near those that the model does not know; by spelling alone if None.

    Raises:
        UserError: If another model built the index.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from rungwise.data import ImageCaptions
    >>> from rungwise.data.files import FeatureRows
    >>> from rungwise.models import DualEncoder, EncodedImages
    >>> from rungwise.similarity import Cosine
    >>> from rungwise.similarity import unit_rows
    >>> class Letters(DualEncoder):  # images are given as how many a and b they show, texts are counted
    ...     dimension, fingerprint, similarity = 2, "letters", Cosine()
    ...     def encode_image(self, pictures, *, progress=None, cache=None):
    ...         return EncodedImages(unit_rows(pictures[:]), np.arange(len(pictures)))
    ...     def encode_text(self, texts):
    ...         return unit_rows([[text.count("a"), text.count("b")] for text in texts])
    >>> data = ImageCaptions(("x", "y"), ("aa",), np.array([0]), features=FeatureRows(np.array([[3.0, 0], [1, 1]])))
    >>> index = Index.build(data, Letters(), Path(tempfile.mkdtemp()) / "index")
    >>> searcher = Searcher(index, Letters())
    >>> [(hit.id, round(hit.score, 3)) for hit in searcher.search("abab").hits]
    [('y', 1.0), ('x', 0.707)]
    >>> answer = searcher.search('"ab" - "b"')
    >>> [hit.id for hit in answer.hits], answer.reading
    (['x', 'y'], 'pictures like "ab", less like "b"')
    """

    def __init__(self, index: Index, model: DualEncoder, *, meaning: Meaning | None = None) -> None:
        index.check(model)
        self.index = index
        self.model = model
        self._meaning = meaning
        self._state = state = StateCache(index)
        self._cutoff = Cutoff(index, model, lambda: state.rarity)

    def __repr__(self) -> str:
        return f"Searcher of {self.index!r}"

    def search(
        self,
        query: Query | str,
        k: int = 10,
        *,
        offset: int = 0,
        where: Where | None = None,
        options: SearchOptions | None = None,
        vectors: Mapping[str, ArrayLike] | None = None,
    ) -> Answer:
        """The k pictures that fit a query best.

        Pictures are ranked by the model's similarity with the query's vector, which is the weighted sum of those of its
        parts; by the cosine where all parts are pictures. Pictures of the index that the query names are left out.

        Full text is joined with that ranking by reciprocal rank fusion (``options.words``). With ``"auto"`` it brings
        the pictures whose captions and columns hold most of the words of the query, rare words counting more than
        frequent ones; so a word that the model never learnt is found where it is written. Where something is wanted
        less, it brings none. With ``"on"`` any word brings a picture, unless it has all words that are wanted less.

        Where relevance ends is judged by the calibration of the index, else by that of the model, else by unrelated
        texts; queries of pictures alone by pictures of nothing, and those of words and pictures, or with a picture that
        is wanted less, by the scores alone. A picture is judged against the whole index,
        whatever the filter. Pictures whose captions and columns have all words that are wanted stand before the end in
        any case. Reranking and full text say which pictures come first, and the judgement how many of them fit how
        well.

        Near-duplicates are folded under the first of them. An answer with an ``offset`` goes on where the one without
        ended.

        Args:
            query: A query, or a text that :func:`~rungwise.index.parse_query` reads without opening files.
            k: Number of hits.
            offset: Number of hits to pass over.
            where: Filter of the pictures that may be found; all if None.
            options: Options of the search; the defaults if None.
            vectors: (D,) vectors of texts that :meth:`encode_texts` has encoded already, by text.

        Raises:
            UserError: If the query is empty, a picture cannot be read or is not in the index, no picture has a column
                that the filter names, the filter compares dates with what is none, or k is less than 1.
        """
        options = options or SearchOptions()
        query = _parsed(query)
        check_k(k)
        if offset < 0:
            raise UserError(f"offset is {offset}; give 0 or more")
        understood = self.index.understood(where or Where())
        store = self.index.picture_store
        candidates = PictureCandidates(
            store,
            self._vector_of(query, vectors or {}),
            None if query.has_words else "cosine",
            understood.and_without(frozenset(query.like)),
            options.exact,
        )
        notes, unknown = [*query.notes, *understood.notes], self._unknown(query)
        by_words, certain = self._found_by_words(query, candidates, options.words)
        ended = None
        if options.end:
            ended, problems = self._cutoff.judged(query, candidates)
            notes.extend(problems)
        if by_words and ended is None:  # else bands say how well pictures fit, whatever found them
            notes.append(_said(len(by_words), options.words))
        groups = groups_of(
            candidates,
            offset + k + 1,
            by_words=by_words,
            reorder=self._reordering(query, options, notes) if options.rerank else None,
            fold=options.fold_duplicates,
            diversity=options.diversity,
            judged=ended,
            certain=certain,
        )
        shown = groups[offset : offset + k]
        end = None
        if ended is not None:
            filtered, has_words = bool(candidates.where.conditions), query.has_words
            end = end_of(
                ended,
                groups,
                shown,
                filtered=filtered,
                unknown=unknown,
                by_words=len(by_words),
                has_words=has_words,
                has_certain=bool(certain),
            )
        return Answer(
            hits=tuple(map(Hit, (ids := [group.id for group in shown]), candidates.scores(ids))),
            folded={group.id: group.folded for group in shown if group.folded},
            unknown=unknown,
            reading=query.reading,
            notes=tuple(notes),
            more=bool(len(groups) > offset + k),  # of NumPy's integers it is no bool of Python
            end=end,
        ).with_pictures(self.index.small_picture)

    @staticmethod
    def texts_of(query: Query | str) -> tuple[str, ...]:
        """The distinct texts that a search for this query encodes."""
        return _parsed(query).texts

    def encode_texts(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """(D,) vectors by text, for :meth:`search`: texts of many queries are encoded faster together."""
        return dict(zip(texts, self.model.encode_text(texts), strict=True)) if texts else {}

    def search_text(self, text: str, k: int = 10) -> list[Hit]:
        """The k pictures most similar to a text, by the model's own similarity, best first.

        Raises:
            UserError: If the text is blank, or k is less than 1.
        """
        query = self._queries(self.model.encode_text(_checked(Query.of(text)).texts), k)
        return hits_of(self.index.picture_store.search(query, k))[0]

    def search_image(self, picture: Picture | bytes, k: int = 10) -> list[Hit]:
        """The k pictures most similar to any picture, best first.

        Raises:
            UserError: If the picture cannot be read, or k is less than 1.
        """
        return self.index.search(self.encode_picture(picture), k)[0]

    def captions_for(self, picture: Picture | bytes | str | ArrayLike, k: int = 10) -> list[CaptionHit]:
        """The k captions of the collection that fit a picture best; none when the collection has no captions.

        ``picture`` is a file, the bytes of one, the id of a picture of the index, or a vector, (D,) or (1, D).

        Raises:
            UserError: If the picture cannot be read or is not in the index, or k is less than 1.
        """
        match picture:
            case str():
                vector: ArrayLike = self._rows_of([picture])[picture]
            case Path() | PackedPicture() | bytes():
                vector = self.encode_picture(picture)
            case _:
                vector = picture
        found = self.index.caption_store.search(self._queries(vector, k), k)
        bearers = self.index.ids_with_captions(found.ids[0])
        return [
            CaptionHit(text, score, bearers[text])
            for text, score in zip(found.ids[0], found.scores[0].tolist(), strict=True)
            if text in bearers  # a process that died may have left one that no picture has
        ]

    def captions_near(self, vector: ArrayLike, k: int = 10) -> list[CaptionHit]:
        """The k captions that fit a picture best, by its vector, (D,) or (1, D)."""
        return self.captions_for(vector, k)

    def encode_picture(self, picture: Picture | bytes) -> NDArray[np.float32]:
        """(1, D) vector of a picture that need not be in the index; a UserError says that it cannot be read."""
        return self.prepare_picture(picture)()

    def prepare_picture(self, picture: Picture | bytes) -> Callable[[], NDArray[np.float32]]:
        """Read a picture now, in any thread, and give a function that encodes it as :meth:`encode_picture` does.

        A picture that cannot be read is refused now, by some models when the function is called.
        """
        encode = self.model.prepare_image(picture)

        def vector() -> NDArray[np.float32]:
            encoded = encode()
            if not len(encoded.kept):
                raise UserError(one_line(encoded.issues[0]))
            return self._queries(encoded.vectors, 1)

        return vector

    def calibration_of_grades(self) -> tuple[Calibration, CalibrationComparison]:
        """Calibration fitted to people's grades, for :meth:`Index.keep_calibration`, compared with what judges now.

        Raises:
            UserError: If too few queries have grades, or nothing can be learnt from them.
        """
        return refit(self.index, self.model, self._state.rarity, self.judging)

    @property
    def judging(self) -> Calibration:
        """What judges texts now: the calibration of the index, else that of the model, else one without judgements."""
        return self._cutoff.of_texts

    def judge_list(self, vector: ArrayLike, ids: Sequence[str]) -> QueryJudgement:
        """Judge where the list should end that another search of these pictures gave to a text.

        It is judged by the scores alone; a search knows the words of the query and the texts of hits as well.

        Args:
            vector: (D,) vector of the text, by the model of the index.
            ids: Pictures of the index in the order of that list.

        Returns:
            Degrees and rungs of the pictures in the order given, and the number of them before the end. These
            are the first ones where the list is ordered by similarity.

        Raises:
            UserError: If the index does not hold a picture, or has fewer than two.
        """
        query = self._queries(vector, 1)
        if not ids:
            return QueryJudgement(np.zeros(0), np.zeros(0, np.int64), cut=0, belief=0.0)
        rows = self._rows_of(ids)
        scores = self.index.picture_store.similarity.array(np.stack([rows[one] for one in ids]), query)[:, 0]
        order = np.argsort(-scores, kind="stable")
        judged = self._cutoff.of_list(query[0], scores[order])
        degrees, rungs = np.empty(len(ids)), np.empty(len(ids), np.int64)
        degrees[order], rungs[order] = judged.degrees, judged.rungs
        return QueryJudgement(degrees, rungs, judged.cut, judged.belief)

    def on(self, index: Index) -> Searcher:
        """Searcher with the same model on another index, which it must have built; no weights are read."""
        ours, theirs = self.index.manifest, index.manifest
        if ours.dimension != theirs.dimension or not ours.models & theirs.models:
            raise UserError(
                f"built by model {theirs.model_fingerprint[:12]} (dimension {theirs.dimension}), not by"
                f" {ours.model_fingerprint[:12]} (dimension {ours.dimension})"
            )
        other = copy(self)
        other.index = index
        other._state = state = StateCache(index)
        other._cutoff = self._cutoff.on(index, lambda: state.rarity)
        return other

    def _vector_of(self, query: Query, vectors: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """(1, D) vector of the whole query."""
        missing = [text for text in query.texts if text not in vectors]
        texts = {**vectors, **self.encode_texts(missing)}
        rows = self._rows_of(query.like)
        parts: list[NDArray[np.float32]] = []
        for term in query.terms:
            match term.what:
                case Words(text):
                    parts.append(self._queries(texts[text], 1))
                case Like(item_id):
                    parts.append(self._queries(rows[item_id], 1))
                case GivenPicture(picture, name):
                    parts.append(self._encoded(picture, name))
                case GivenVector(vector):
                    parts.append(self._queries(vector, 1))
        return combined(parts, [term.weight for term in query.terms])

    def _encoded(self, picture: Picture | bytes, name: str) -> NDArray[np.float32]:
        try:
            return self.encode_picture(picture)
        except UserError as error:
            raise error if name in str(error) else UserError(f"{name}: {error}") from None

    def _rows_of(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        rows = self.index.picture_store.get(ids) if ids else {}
        for one in ids:
            if one not in rows:
                self.index.item(one)  # which says that there is none
        return {one: row.vector for one, row in rows.items()}

    def _found_by_words(
        self, query: Query, candidates: PictureCandidates, use: WordUse
    ) -> tuple[list[str], frozenset[str]]:
        """Ids that full text brings, best first, and those of them that have all words that are wanted.

        None has all words of what is wanted less.
        """
        words = " ".join(query.wanted_texts)
        wanted_less = [term for term in query.terms if term.weight < 0]
        # Words cannot tell what is wanted less: a picture that has the wanted words would come first in spite of it.
        if use == "off" or (use == "auto" and wanted_less) or not words_of(words):
            return [], frozenset()
        found = candidates.found_by_words(words)
        less = [some for term in wanted_less if isinstance(term.what, Words) and (some := word_set(term.what.text))]
        shares = self._state.rarity.shares_of_sets(words, found.values())
        chosen = [
            one
            for (one, held), share in zip(found.items(), shares, strict=True)
            if (use == "on" or share >= MOST_OF) and not any(some <= held for some in less)
        ]
        by_words = list(candidates.labelled(chosen))  # others were removed meanwhile
        wanted = word_set(words)
        return by_words, frozenset(one for one in by_words if wanted <= found[one])

    def _reordering(
        self, query: Query, options: SearchOptions, notes: list[str]
    ) -> Callable[[Sequence[str]], list[str]] | None:
        texts = [(term.what.text, term.weight) for term in query.terms if isinstance(term.what, Words)]
        scorer = options.rerank
        if scorer is None or not texts:
            notes.append("not reranked: the query has no words")
            return None

        def reorder(ids: Sequence[str]) -> list[str]:
            items = self.index.found(ids[: options.rerank_top])
            first = list(items)
            done = reranked(scorer, [items[one].path for one in first], *zip(*texts, strict=True))
            notes.append(done.note)
            return [first[place] for place in done.order] + [one for one in ids if one not in items]

        return reorder

    def _unknown(self, query: Query) -> tuple[UnknownWord, ...]:
        return unknown_words(
            query.texts,
            self.model,
            self._state.has_word,
            lambda: self._state.frequent_words,
            self._meaning,
        )

    def _queries(self, vectors: ArrayLike, k: int) -> NDArray[np.float32]:
        return checked_queries(np.atleast_2d(np.asarray(vectors, np.float32)), self.index.manifest.dimension, k)


def _said(found: int, use: WordUse) -> str:
    """Note of the number of pictures that full text brought."""
    many = f"{found} or more pictures" if found >= MOST_BY_WORDS else f"{found} pictures" if found > 1 else "1 picture"
    return f"{many} {'has' if found == 1 else 'have'} {'some' if use == 'on' else 'most'} of these words"


def _parsed(query: Query | str) -> Query:
    return parse_query(query, pictures=False) if isinstance(query, str) else _checked(query)


def _checked(query: Query) -> Query:
    """Refuse a query with a text that is longer than may be typed."""
    for text in query.texts:
        check_length(text, "the query")
    return query
