"""Planning of a collection: the disk, memory, hours and machines that it takes, each with what was measured.

Importing it loads nothing heavy: the command line parses a :class:`Need` before it knows whether it is used.
"""

from rungwise.planning.measurement import MeasuredSample, measured
from rungwise.planning.need import Device, Need, StoreKind, parse_count
from rungwise.planning.plan import Plan, plan, title
from rungwise.planning.quantity import Quantity
from rungwise.planning.rates import STORED, Rate, Rates
from rungwise.planning.text import plan_text

__all__ = [
    "STORED",
    "Device",
    "MeasuredSample",
    "Need",
    "Plan",
    "Quantity",
    "Rate",
    "Rates",
    "StoreKind",
    "measured",
    "parse_count",
    "plan",
    "plan_text",
    "title",
]
