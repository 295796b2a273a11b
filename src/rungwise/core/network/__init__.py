"""Object stores, the model hub, and telemetry of libraries."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
