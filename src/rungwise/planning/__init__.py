"""What a collection takes before anybody buys machines: disk, memory, hours, machines, each with what was measured.

Importing it loads nothing heavy: the command line reads a :class:`Need` before it knows what for.
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
