"""The version, for what is written to files; ``pyproject.toml`` has the same."""

__all__ = ["__version__"]

__version__ = "0.2.0"
