"""The configuration of the source that compares scene graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rungwise.core import UserError
from rungwise.core.text import idle_where, idle_without
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Degrees
from rungwise.relevance.config._base import Building, CaptionsConfig, Counter

if TYPE_CHECKING:
    from rungwise.language.scene_graphs import Synonyms
    from rungwise.relevance.embedding import WordSimilarity


_BOTH = "give both, or leave {} out"
_NO_WORDNET = "spice: no WordNet here; synonyms are those of a short list of everyday words"


@dataclass(frozen=True)
class SpiceConfig(CaptionsConfig):
    """Facts in common: objects, attributes and relations (SPICE).

    Attributes:
        measure: f, as SPICE has it, or precision: only whether what the caption says is so.
        weights: What an object, an attribute and a relation count; SPICE counts all alike.
        unbound: What an attribute counts on whatever thing. With 0, as SPICE has it, a red star and a red heart
            have nothing in common.
        likeness: How words match that are no synonyms: not at all (none), by a sentence model (sentences), or by word
            vectors (words).
        vectors: File of word vectors for likeness words, such as glove.6B.300d.txt.
        model: Sentence model for likeness sentences; default: the packaged one.
        least: Cosine from which words are alike, for likeness; default: 0.4 for sentences, 0.6 for words.
        wordnet: Folder of WordNet's dictionary files; default: where it is installed, else a short list of synonyms.
        spacy: A model of spaCy, by name or folder, that parses instead of the built-in grammar.
    """

    kind: Literal["spice"] = field(default="spice", init=False)
    measure: Literal["f", "precision"] = "f"
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    unbound: float = 0.0
    likeness: Literal["none", "sentences", "words"] = "none"
    vectors: Path | None = None
    model: str | None = None
    least: float | None = None
    wordnet: Path | None = None
    spacy: str | None = None

    IDLE = (
        idle_where("vectors", lambda asked: asked.likeness != "words", "without {likeness} words", _BOTH),
        idle_where("model", lambda asked: asked.likeness != "sentences", "without {likeness} sentences", _BOTH),
        idle_without("least", "likeness"),
    )

    def make(self, data: ImageCaptions, building: Building) -> Degrees:
        self._check(building)
        from rungwise.language.scene_graphs import chunking, dependency_parser
        from rungwise.relevance.scene_graph import FactWeights, Spice

        likeness, synonyms = self._likeness(building), self._synonyms(building)
        source = Spice(
            data.captions,
            data.image_of_caption,
            parser=chunking.parse if self.spacy is None else dependency_parser(self.spacy),
            synonyms=synonyms,
            likeness=likeness,
            measure=self.measure,
            weights=FactWeights(*self.weights, self.unbound),
            leave_one_out=self.leave_one_out,
            images=len(data),
            progress=Counter(building, f"of {len(data.captions):,} captions parsed", len(data.captions)),
        )
        facts, empty = sum(map(len, source.graphs)), sum(not graph for graph in source.graphs)
        building.say(f"spice: {facts:,} facts of {len(data.captions):,} captions; {empty:,} captions state none")
        return source

    def _check(self, building: Building) -> None:
        """Refuse that an option is missing."""
        if self.likeness == "words" and self.vectors is None:
            raise UserError(f"spice needs {building.option('vectors')}: a file of word vectors")

    def _likeness(self, building: Building) -> WordSimilarity | None:
        from rungwise.language.sentence_models import PACKAGED_MODEL
        from rungwise.relevance.embedding import LEAST_OF_SENTENCES, LEAST_OF_WORDS, by_sentences, by_word_vectors

        if self.likeness == "words":
            assert self.vectors is not None, "_check says so before"
            return by_word_vectors(self.vectors, least=LEAST_OF_WORDS if self.least is None else self.least)
        if self.likeness == "sentences":
            least = LEAST_OF_SENTENCES if self.least is None else self.least
            return by_sentences(self.model or PACKAGED_MODEL, least=least)
        return None

    def _synonyms(self, building: Building) -> Synonyms:
        from rungwise.language.scene_graphs import Synonyms, wordnet_folder

        place = self.wordnet or wordnet_folder()
        found = Synonyms.own() if place is None else Synonyms.wordnet(place)
        building.say(f"spice: synonyms of WordNet in {place}" if place else _NO_WORDNET)
        return found
