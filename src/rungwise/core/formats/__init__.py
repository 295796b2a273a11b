"""Files of arrays of unknown origin: NumPy's, MATLAB's and safetensors."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
