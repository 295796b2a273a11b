"""The device on which models compute."""

from __future__ import annotations

from rungwise.core._errors import UserError


def choose_device(asked: str | None = None) -> str:
    """The given device; by default ``cuda`` where there is one, else ``cpu``."""
    import torch  # slow to load, and commands that print help need no device

    if asked is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise UserError(f"device {asked!r} is unknown; give cpu, or cuda where there is a GPU") from None
    missing = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if missing or (device.type == "mps" and not torch.backends.mps.is_available()):
        raise UserError(f"device {asked!r} is not on this machine; give cpu, or leave the device out")
    return asked
