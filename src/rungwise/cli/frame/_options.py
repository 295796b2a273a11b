"""Options of several commands: type and help of each, declared once.

A command sets their defaults, and whether ``--help`` shows them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from rungwise.serving import ServingLimits

Port = Annotated[int, tyro.conf.arg(help="Number after the colon. 0 takes any that is free.")]
Browser = Annotated[bool, tyro.conf.arg(help="Open the page.")]
Limits = Annotated[ServingLimits, tyro.conf.arg(help="What clients may hold of the server.")]
Data = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA", help="Folder or caption file.")]
IndexFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="INDEX", help="Folder of the index.")]
