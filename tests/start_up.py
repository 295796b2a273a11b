"""A light process in which each case runs in a fork of its own, and says which modules it loaded; run by tests.

Reads a JSON object from standard input: by name, a module to import, or commands, each with the status that it ends
with. Writes by the same names the top-level modules that are loaded then.
"""

import json
import os
import sys
from importlib import import_module


def run(case):
    """Import a module, or run commands."""
    if isinstance(case, str):
        import_module(case)
        return
    from rungwise.cli import main

    for arguments, status in case:
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
        assert code == status, f"{arguments} ended with {code}"


def loaded_by(case):
    """Top-level modules that are loaded after a case, which may say what it likes."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        try:
            run(case)
            with os.fdopen(writer, "w") as answer:
                json.dump(sorted({name.partition(".")[0] for name in sys.modules}), answer)
        except BaseException as error:
            print(case, repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
    return json.loads(text)


if __name__ == "__main__":
    json.dump({name: loaded_by(case) for name, case in json.load(sys.stdin).items()}, sys.stdout)
