"""What a calibration learns from judged pairs: degrees, probabilities, and the number of relevant candidates."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
