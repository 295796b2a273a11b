"""``rungwise`` of a shell in the documents: a command in a process of its own, shortened like those in ours."""

import sys

from tests.documents._commands import called
from tests.documents._page import _shorten

if __name__ == "__main__":
    _shorten()
    sys.exit(called(sys.argv[1:]))
