"""Files of values and arrays of unknown origin: JSON, NumPy's, MATLAB's and safetensors."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
