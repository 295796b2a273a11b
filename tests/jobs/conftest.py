from tests.cli.conftest import _installed, connected, world

__all__ = ["_installed", "connected", "world"]
