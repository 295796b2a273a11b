"""``python -m rungwise`` is the command ``rungwise``."""

import sys

from rungwise.cli import main

sys.exit(main())
