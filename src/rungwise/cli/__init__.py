"""The command line: a command is a module that parses, calls and prints; only the requested one is imported.

Ctrl-C may come while the program is being loaded, and until :func:`main` runs the interpreter answers it with a
traceback. So nothing is imported before that which is not loaded already.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = {
    "demo": "make pictures, train, measure, and search them in the browser",
    "inspect": "what a folder of pictures and captions holds, and what is odd in it",
    "presets": "the presets of train, and the printed rows that they stand for",
    "train": "train a joint embedding from a preset or a configuration file",
    "study": "many runs from one file: trained, chosen on validation, tested",
    "evaluate": "how good a model's rankings are",
    "table": "a table that a paper prints, with your runs in it",
    "compare": "whether one model ranks better than another beyond chance",
    "plot": "curves of runs: by epoch, by K, by rank, by a setting",
    "calibrate": "learn where relevance ends, from captions or from grades",
    "relevance": "degrees of relevance from captions, models, labels or people",
    "grade": "ask people how well captions describe pictures",
    "plan": "what a collection takes: disk, memory, hours, machines",
    "index": "make pictures searchable",
    "search": "find pictures by texts, by pictures, or by both",
    "check": "what the approximate search of an index misses, and what that costs",
    "serve": "the search page",
    "serve-model": "a model for other programs, such as a photo library",
    "mcp": "search for an assistant that speaks the Model Context Protocol",
    "token": "a token with a name and a right, for a server with several",
    "export": "a model as ONNX graphs, for search without torch",
    "import": "take over a model that the VSE++ program trained",
    "push": "upload a model to a model hub",
    "doctor": "what is wrong with data or with a run, and the cure",
    "verify": "whether something that rungwise made is whole, and as it was made",
}

_MODULES = {
    **dict.fromkeys(("train", "relevance", "index", "search", "serve"), "{}._command"),
    **dict.fromkeys(("inspect", "doctor", "verify"), "examine._{}"),
    **dict.fromkeys(("table", "compare", "plot"), "results._{}"),
    **dict.fromkeys(("export", "push"), "models._{}"),
    **dict.fromkeys(("check", "plan"), "index._{}"),
    "presets": "train._presets",
    "serve-model": "serve._model",
    "mcp": "serve._mcp",
    "token": "serve._token",
    "study": "train._study",
    "import": "models._import_model",
}
"""Modules of commands that are no modules of the same name beside this one."""

_EXTRAS = {
    **dict.fromkeys(("train", "study", "evaluate", "import", "push", "export"), "train"),
    **dict.fromkeys(("index", "search", "check", "plan", "verify", "calibrate"), "search"),
    **dict.fromkeys(("demo", "grade", "serve", "serve-model", "token"), "serve"),
    "mcp": "mcp",
}
"""Extras that bring all that a command usually needs, so that nobody is sent from one extra to the next."""

BAD_INPUT, UNFORESEEN, INTERRUPTED = 2, 70, 130
"""Exit statuses; 70 is sysexits' internal software error, and 130 is the shells' status for Ctrl-C."""

_TRACEBACK = "--traceback"
_MODULE = "--module"
_NO_ROOM = "out of memory; free some, or give smaller batches, smaller pictures or less data"
"""Message where there is no memory left to make another."""
_NO_MEMORY = 12
"""Value of errno.ENOMEM, which is not imported yet."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    ``--traceback``, anywhere on the line, shows where in the program an error comes from, and the messages of
    libraries. ``--module NAME`` imports a module first, whose losses, measures and sources can then be named.

    Args:
        arguments: Words after ``rungwise``; None takes those of this process, which then belongs to the command
            (:func:`rungwise.cli.frame.own_process`).

    Returns:
        Exit status: 0 when done; 2 for bad input and 70 for unforeseen errors, both with one line; 130 when
            interrupted.
    """
    if arguments is not None:
        return _outcome(list(arguments), lambda: None)
    given = sys.argv[1:]
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # or it is ignored, as in the background
            signal.signal(signal.SIGINT, _end)
        from rungwise.cli.frame import own_messages, own_process

        traced = _TRACEBACK in given
        own_process(traced=traced)
        if not traced and (code := _watched(_named(given))) is not None:
            return code
        if not traced:
            own_messages()
        return _outcome(given, _loaded)
    except KeyboardInterrupt:  # before anything was begun, or after all was said
        return INTERRUPTED
    except (ImportError, MemoryError, OSError) as error:  # there is no room for what tells what became of a command
        line = _NO_ROOM if not isinstance(error, OSError) or error.errno == _NO_MEMORY else error.strerror
        os.write(2, f"{_named(given)}: {line}\n".encode())
        return BAD_INPUT
    finally:
        _ending()


def _watched(name: str) -> int | None:
    """The exit status in a process that only watches; None in the one that does the work.

    There is no watcher where memory and threads have no limit. It must be started before a library is loaded, and
    before a thread is left running.
    """
    from rungwise.core.compute import memory_limit, settle_for_fewer

    if not settle_for_fewer() and memory_limit() is None:
        return None
    from rungwise.cli.frame import watched

    return watched(name, BAD_INPUT)


def _named(words: list[str]) -> str:
    words = _without_modules(_without_flag(words, _TRACEBACK)[0])[0]
    return f"rungwise {words[0]}" if words else "rungwise"


def _end(number: int, frame: object) -> None:
    """End at once: a command that is being loaded has nothing to clean up, and an exception might not get through."""
    try:
        os.write(2, b"\nrungwise: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


def _loaded() -> None:
    """Make Ctrl-C an exception from now on, so that the command cleans up and reports it."""
    import signal

    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ending() -> None:
    """Let Ctrl-C end the process while the interpreter shuts down after all is done."""
    import signal

    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _outcome(words: list[str], loaded: Callable[[], None]) -> int:
    """Run a command and report how it ended; ``loaded`` is called once its module is imported."""
    import traceback

    from rungwise.cli.frame import complain, is_unread, streams

    given, traced = _without_flag(words, _TRACEBACK)
    given, modules = _without_modules(given)
    name = _named(given)
    with streams():
        try:
            try:
                code = _run(given, loaded, modules)
            except SystemExit:  # how help ends
                print(end="", flush=True)
                raise
            print(end="", flush=True)  # here, where a refusal is understood; a standard output that was closed is none
            return code
        except SystemExit:
            raise
        except BaseException as error:  # libraries in Rust panic with an error that is no Exception
            if isinstance(error, BrokenPipeError) and is_unread():
                return 0  # the reader, such as head, has seen enough
            if _is_of_an_interrupt(error):
                complain(f"\n{name}: interrupted")
                return INTERRUPTED
            if traced:
                traceback.print_exc()
            try:
                code, line = _explained(error, given[0] if given else "")
            except MemoryError:
                code, line = BAD_INPUT, _NO_ROOM
            error.__traceback__ = error.__cause__ = error.__context__ = None  # with all that their frames hold
            complain(f"{name}: {' '.join(line.split())}")
            return code


def _is_of_an_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is the cause: libraries that are interrupted during import may raise something else."""
    from rungwise.core import UserError

    one: BaseException | None = error
    while one is not None and not isinstance(one, UserError):
        if isinstance(one, KeyboardInterrupt):
            return True
        one = one.__cause__ or one.__context__
    return False


def _explained(error: BaseException, command: str) -> tuple[int, str]:
    import errno

    from rungwise.cli.frame import failure_of_output
    from rungwise.core import MissingExtraError, UserError, explained, with_options
    from rungwise.core.compute import nearly_out, remedy, shortage
    from rungwise.parts import own_place

    if isinstance(error, ModuleNotFoundError) or getattr(error, "imported", False):
        missing = explained(error, wider=_EXTRAS.get(command, ""))
        if missing is not None:
            return BAD_INPUT, str(missing)
    if isinstance(error, UserError) and isinstance(lacked := _lacked(error), MissingExtraError):
        return BAD_INPUT, with_options(error).replace(
            f"[{lacked.extra}]", f"[{lacked.beside(_EXTRAS.get(command, ''))}]"
        )

    short = shortage(error)
    cause = error.__cause__
    if isinstance(cause, ImportError) and cause.name is None and nearly_out():
        short = short or cause  # a library that could not load a part of its own, and does not say why
    if isinstance(error, UserError):
        if short is None or not _is_sure(short) or str(error).startswith("out of memory"):
            return BAD_INPUT, with_options(error)
        error = short  # what was refused for want of memory is not to blame
    if isinstance(error, OSError) and error.filename is None:  # a refusal to write a file names it
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or failure_of_output() is not None:
            why = "the disk is full; free some space" if full else f"{error.strerror}; give another"
            return BAD_INPUT, f"standard output: {why}, then run again"
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):
        return BAD_INPUT, "no temporary folder can be written; name one by TMPDIR"
    if _lacks_files(error):
        return BAD_INPUT, "too many files are open at once; raise the limit with ulimit -n, then run again"
    if short or nearly_out():
        return BAD_INPUT, f"out of memory ({_reason(short or error)}); {remedy(_reason(short or error))}"
    reason = _reason(error)
    kind = type(error).__name__
    if place := own_place(error):
        return BAD_INPUT, f"the code of {place[0]}, line {place[1]}, fails with {kind}: {reason}; mend it"
    files = [str(name) for name in (getattr(error, "filename", None), getattr(error, "filename2", None)) if name]
    where = "; ".join([*files, *_place(error)])
    return (
        UNFORESEEN,
        f"unforeseen {kind}: {reason} ({where}); run it again with {_TRACEBACK} to see more, and report it",
    )


def _lacked(error: BaseException) -> BaseException | None:
    """The missing library that an error tells of, be it in the words of what needed it."""
    from rungwise.core import MissingExtraError

    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, MissingExtraError):
        seen = seen.__cause__
    return seen


def _lacks_files(error: BaseException) -> bool:
    """Whether an error came of a limit of open files, even if a library reports it in its own words."""
    import errno

    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in (errno.EMFILE, errno.ENFILE):
            return True
        if os.strerror(errno.EMFILE) in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _is_sure(short: BaseException) -> bool:
    """Whether the cause of an error can only be lack of memory.

    The interpreter's parser raises the same for deep nesting, and a lock that another process holds is unavailable too.
    """
    from rungwise.core.compute import nearly_out

    return nearly_out() or not isinstance(short, MemoryError | BlockingIOError)


def _reason(error: BaseException) -> str:
    from rungwise.core.compute import says_ran_out

    lines = str(error).strip().splitlines() or ["no reason given"]
    return next(filter(says_ran_out, lines), lines[0])


def _place(error: BaseException) -> list[str]:
    import traceback
    from pathlib import Path

    package = Path(__file__).parents[1]
    ours = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).is_relative_to(package)]
    return [f"{Path(one.filename).relative_to(package.parent).as_posix()}, line {one.lineno}" for one in ours[-1:]]


def _without_flag(given: list[str], flag: str) -> tuple[list[str], bool]:
    end = given.index("--") if "--" in given else len(given)
    kept = [one for one in given[:end] if one != flag]
    return kept + given[end:], len(kept) < end


def _without_modules(given: list[str]) -> tuple[list[str], list[str]]:
    """The words without ``--module NAME``, wherever it stands before ``--``, and the names."""
    end = given.index("--") if "--" in given else len(given)
    words, modules, at = [], [], 0
    while at < end:
        word = given[at]
        if word == _MODULE:
            modules.append(given[at + 1] if at + 1 < end else "")
            at += 1
        elif word.startswith(f"{_MODULE}="):
            modules.append(word.partition("=")[2])
        else:
            words.append(word)
        at += 1
    return words + given[end:], modules


def _run(given: list[str], loaded: Callable[[], None], modules: Sequence[str] = ()) -> int:
    import importlib

    if given[:1] == ["--version"]:
        from rungwise.core.version import __version__

        print(f"rungwise {__version__}")
        return 0
    if not given or given[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    _settle_temporary_folder()
    if given[0] not in COMMANDS:
        from rungwise.core.text import near_names

        near = near_names(given[0], COMMANDS)
        guess = f"did you mean {near[0]}? " if near else ""
        print(f"rungwise: no command {given[0]!r}; {guess}there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    from rungwise.parts import naming

    command = importlib.import_module("rungwise.cli." + _MODULES.get(given[0], "_{}").format(given[0]))
    loaded()
    with naming(modules):
        code: int = command.main(given[1:])
    return code


def _settle_temporary_folder() -> None:
    """Set an unwritable TMPDIR to the folder that Python takes, so that other libraries take the same one."""
    named = os.environ.get("TMPDIR")
    if named and not os.access(named, os.W_OK | os.X_OK):
        import tempfile

        os.environ["TMPDIR"] = tempfile.gettempdir()


def _overview() -> str:
    lines = ["usage: rungwise COMMAND ...", ""]
    lines += [f"  {name:<9} {what}" for name, what in COMMANDS.items()]
    lines += [
        "",
        "rungwise COMMAND --help shows the usual options, --help-all shows all.",
        "rungwise --version tells the version.",
        "--module NAME with any command imports a module of your own first, with its",
        "losses, measures and sources of relevance; NAME may be a file, such as my.py.",
        "--traceback with any command shows where in the program an error comes from.",
    ]
    return "\n".join(lines)
