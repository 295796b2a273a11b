"""Ask the server of rungwise in this container whether it is well; exit status 0 if it is.

python health.py health    # it answers
python health.py ready     # searches would be answered: the store of the index answers too

The token is read from RUNGWISE_TOKEN, the port from RUNGWISE_PORT (8000).
"""

import os
import sys
import urllib.error
import urllib.request

_SECONDS = 8.0


def main() -> int:
    """Ask, and say what is wrong in a line."""
    asked = sys.argv[1] if len(sys.argv) == 2 else ""
    if asked not in ("health", "ready"):
        print("give health or ready", file=sys.stderr)
        return 2
    address = f"http://127.0.0.1:{os.environ.get('RUNGWISE_PORT', '8000')}/{asked}"
    token = os.environ.get("RUNGWISE_TOKEN", "")
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


if __name__ == "__main__":
    sys.exit(main())
