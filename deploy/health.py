"""Ask the server of rungwise in this container whether it is well; exit status 0 if it is.

python health.py health    # it answers
python health.py ready     # searches would be answered: the store of the index answers too

The token is read from the file that RUNGWISE_TOKEN_FILE names, else from RUNGWISE_TOKEN; one with the right to watch
does. The port is that of RUNGWISE_PORT (8000).
"""

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

_SECONDS = 8.0


def main() -> int:
    """Ask, and say what is wrong in a line."""
    asked = sys.argv[1] if len(sys.argv) == 2 else ""
    if asked not in ("health", "ready"):
        print("give health or ready", file=sys.stderr)
        return 2
    address = f"http://127.0.0.1:{os.environ.get('RUNGWISE_PORT', '8000')}/{asked}"
    try:
        token = _token()
    except (OSError, UnicodeDecodeError) as error:
        print(f"no token: {error}", file=sys.stderr)
        return 1
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            print(answer.read().decode("utf-8", "replace"))
            return 0
    except urllib.error.HTTPError as error:
        print(f"status {error.code}: {error.read(500).decode('utf-8', 'replace')}", file=sys.stderr)
    except OSError as error:
        print(f"no answer: {error}", file=sys.stderr)
    return 1


def _token() -> str:
    """The token; empty where there is none."""
    if file := os.environ.get("RUNGWISE_TOKEN_FILE", ""):
        return Path(file).read_text(encoding="ascii").strip()
    return os.environ.get("RUNGWISE_TOKEN", "")


if __name__ == "__main__":
    sys.exit(main())
