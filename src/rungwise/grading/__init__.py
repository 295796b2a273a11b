"""People in the loop: a local page that asks people how well captions describe pictures, and keeps what they say.

What they say goes into a judgement file (:mod:`rungwise.relevance.human.log`), which evaluation and training read.
"""
