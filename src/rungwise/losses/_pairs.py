"""Entries of a block: pairs, negatives, and masked ones.

Every loss reads a block of similarities, (images, captions), once from the images' side and once from the captions'
side. A :class:`BlockSide` is the block seen from one of them: rows are queries, columns are candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from rungwise.core.output import short_repr

ExtraPositives = Literal["mask", "keep", "pair"]
HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class BlockSide:
    """One direction of a block, for Q queries over C candidates with P pairs.

    Attributes:
        similarity: (Q, C) float32 or float64.
        relevance: (Q, C) relevance degrees in the caller's float type, or None.
        paired: (Q, C) bool, entries that are pairs.
        masked: (Q, C) bool, entries that are neither pulled nor pushed.
        query: (P,) row of each pair.
        column: (P,) column of each pair.
        aligned: Whether pair number k belongs to query number k, so that rows need no copy.
        query_ids: (Q,) key of each query in random draws; None counts from 0.
        candidate_ids: (C,) key of each candidate in random draws; None counts from 0.
        image_degrees: (P, C) how well each candidate's own caption describes the image of the pair, for losses whose
            caption queries read that too; -inf where a candidate has no caption. None stands for the rows of
            ``relevance``.
        within: (Q, K) similarities of the queries to all K items of their own modality, for losses that read them.
        same: (Q, K) bool, items of the queries' own modality that are no negatives of them; goes with ``within``.
    """

    similarity: Tensor
    relevance: Tensor | None
    paired: Tensor
    masked: Tensor
    query: Tensor
    column: Tensor
    aligned: bool
    query_ids: Tensor | None = None
    candidate_ids: Tensor | None = None
    image_degrees: Tensor | None = None
    within: Tensor | None = None
    same: Tensor | None = None

    __repr__ = short_repr

    @property
    def excluded(self) -> Tensor:
        """(Q, C) bool: candidates that are no negatives of the query."""
        return self.paired | self.masked

    @property
    def left_out(self) -> Tensor:
        """(P, C) bool: candidates that are left out for a pair, as other positives of its query or as masked."""
        return self.rows(self.excluded).scatter(1, self.column.unsqueeze(1), False)

    def rows(self, block: Tensor) -> Tensor:
        """(P, C) row of each pair's query, from (Q, C)."""
        return block if self.aligned else block.index_select(0, self.query)

    def of_pairs(self, block: Tensor) -> Tensor:
        """(P,) entry of each pair, from (Q, C)."""
        return self.rows(block).gather(1, self.column.unsqueeze(1)).squeeze(1)

    def sum_per_query(self, values: Tensor) -> Tensor:
        """(Q,) sums of the (P,) values of each query's pairs; 0 for a query without a pair."""
        if self.aligned:
            return values
        return values.new_zeros(len(self.similarity)).index_add(0, self.query, values)

    def graded(self) -> Tensor:
        """The relevance block, for a loss that needs it.

        Raises:
            ValueError: If the loss was called without ``relevance``, or does not declare that it reads it.
        """
        if self.relevance is None:
            raise ValueError(
                "this loss is graded: pass relevance, a tensor of the shape of similarity (and declare it in `reads`)"
            )
        return self.relevance

    def first(self, queries: int) -> BlockSide:
        """The block for its first ``queries`` only; every candidate stays.

        >>> i2t, _ = two_sides(torch.tensor([[0.9, 0.8], [0.1, 0.5]]))
        >>> i2t.first(1).similarity
        tensor([[0.9000, 0.8000]])
        """
        # Aligned pairs are in the order of their queries; listed ones need not be.
        kept = slice(queries) if self.aligned else self.query < queries

        def cut(block: Tensor | None) -> Tensor | None:
            return None if block is None else block[:queries]

        return replace(
            self,
            similarity=self.similarity[:queries],
            relevance=cut(self.relevance),
            paired=self.paired[:queries],
            masked=self.masked[:queries],
            query=self.query[kept],
            column=self.column[kept],
            query_ids=cut(self.query_ids),
            image_degrees=None if self.image_degrees is None else self.image_degrees[kept],
            within=cut(self.within),
            same=cut(self.same),
        )

    def turned(self) -> BlockSide:
        """The block seen from the candidates; pairs keep their order."""
        relevance = None if self.relevance is None else self.relevance.T
        return BlockSide(
            self.similarity.T,
            relevance,
            self.paired.T,
            self.masked.T,
            self.column,
            self.query,
            self.aligned,
            self.candidate_ids,
            self.query_ids,
        )


def one_side(
    similarity: Tensor,
    relevance: Tensor | None,
    positives: Tensor | None,
    own: Tensor | None,
    extra_positives: ExtraPositives = "mask",
    mask_above: float | None = None,
) -> BlockSide:
    """Some queries of a block with all its candidates.

    Args:
        similarity: (Q, C); float16 and bfloat16 are converted to float32.
        relevance: (Q, C) relevance degrees.
        positives: (Q, C) bool.
        own: (Q,) candidate that each query is paired with in a square block; None where every True entry of
            ``positives`` is a pair.
        extra_positives: As in :func:`two_sides`.
        mask_above: As in :func:`two_sides`.
    """
    described = torch.zeros_like(similarity, dtype=torch.bool) if positives is None else positives.bool()
    masked = torch.zeros_like(described)
    paired = described
    if own is not None:
        diagonal = torch.zeros_like(described).scatter(1, own.unsqueeze(1), True)
        paired = described | diagonal if extra_positives == "pair" else diagonal
        if extra_positives == "mask" and positives is not None:
            masked = described & ~diagonal
    elif positives is None:
        queries, candidates = similarity.shape
        raise ValueError(f"a block of {queries} and {candidates} items needs positives: which are pairs?")
    if mask_above is not None:
        if relevance is None:
            raise ValueError("mask_above compares with relevance: pass relevance, or leave mask_above out")
        masked = masked | ((relevance >= mask_above) & ~paired)
    exact = similarity.float() if similarity.dtype in HALF else similarity
    if own is not None and (positives is None or extra_positives != "pair"):
        rows = torch.arange(len(own), device=similarity.device)
        return BlockSide(exact, relevance, paired, masked, rows, own, aligned=True)
    query, column = paired.nonzero(as_tuple=True)
    return BlockSide(exact, relevance, paired, masked, query, column, aligned=False)


def two_sides(
    similarity: Tensor,
    relevance: Tensor | None = None,
    positives: Tensor | None = None,
    extra_positives: ExtraPositives = "mask",
    mask_above: float | None = None,
) -> tuple[BlockSide, BlockSide]:
    """The block seen from its images (i2t) and from its captions (t2i).

    In a square block, the diagonal is the pairs, and other True entries of ``positives`` are treated as
    ``extra_positives`` says. In a rectangular block, every True entry of ``positives`` is a pair, and a pair's other
    positives are masked. Only where pairs have to be listed (rectangular blocks and ``"pair"``) does a GPU wait for the
    host.

    Args:
        similarity: (images, captions); float16 and bfloat16 are converted to float32.
        relevance: (images, captions) relevance degrees.
        positives: (images, captions) bool: the caption describes the image.
        extra_positives: ``"mask"`` (neither pulled nor pushed), ``"keep"`` (negatives) or ``"pair"`` (pairs of their
            own; a row is copied for each, so that P pairs over C candidates take O(P C) memory).
        mask_above: Relevance from which entries that are no pairs are masked; None masks none.

    Raises:
        ValueError: If shapes differ, the block is empty, or something that is needed was not given.

    >>> same = torch.tensor([[True, True, False], [True, True, False], [False, False, True]])
    >>> two_sides(torch.zeros(3, 3), positives=same)[0].masked[0]
    tensor([False,  True, False])
    """
    if similarity.ndim != 2 or similarity.numel() == 0:
        raise ValueError(f"similarity must be (images, captions), not empty; got {tuple(similarity.shape)}")
    for name, block in (("relevance", relevance), ("positives", positives)):
        if block is not None and block.shape != similarity.shape:
            raise ValueError(
                f"{name} is {tuple(block.shape)} but similarity is {tuple(similarity.shape)}: pass equal shapes"
            )
    images, captions = similarity.shape
    if images != captions and positives is None:
        raise ValueError(f"a block of {images} images and {captions} captions needs positives: which are pairs?")
    own = torch.arange(images, device=similarity.device) if images == captions else None
    i2t = one_side(similarity, relevance, positives, own, extra_positives, mask_above)
    return i2t, i2t.turned()
