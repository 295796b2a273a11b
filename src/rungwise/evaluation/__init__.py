"""Evaluation: named protocols, results that say what they are, tables, reports, published rows.

Words, which the modules keep to:

* *evaluate*: numbers of a model's rankings, as a :class:`Result`; the pass over the scores is *measured* in
  :mod:`rungwise.metrics`;
* *diagnose*: what lies behind the numbers, query by query, as :class:`Diagnostics`; a report shows both;
* *compare*: two results of the same queries;
* :class:`RankedLists` are rankings that come as lists in files, :class:`Reranked` those of two models one after the
  other; *top candidates* are the first candidates that any scores put before a query;
* *judge* is what people do, whose judgements :mod:`rungwise.relevance.human._source` reads. What a collection holds is
  *inspected* (:mod:`rungwise.data._inspection`), and what degrees of relevance look like is *described*
  (:mod:`rungwise.relevance.description.describe`).
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
