"""Modules that a person names, by ``--module`` or in the configuration that is given to a training."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from rungwise.core import UserError
from rungwise.core.compute import send_whole
from rungwise.core.output import printable
from rungwise.parts._entry_points import package_of

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LONGEST = 200
_SUFFIX = ".py"
_imported: dict[str, None] = {}
"""What was imported, as it was named, in order; files by their whole paths."""
_files: dict[str, Path] = {}
"""Files that were imported, by the names of their modules."""
_owned: dict[str, None] = {}
"""Names of all modules that were imported because they were named, also by commands that have ended."""
_OURS = "rungwise"


def import_named(names: Iterable[str], *, option: str = "--module") -> None:
    """Import modules that a person named, each once.

    A dotted name is found on Python's ordinary import path. The path of a file ``FILE.py`` is loaded as the module
    ``FILE``; its folder does not become a part of the import path.

    Args:
        names: Names of modules, or paths of files that end with ``.py``.
        option: Where they were named, for errors.

    Raises:
        UserError: In one line, if there is no such module, its code fails, or a module of another file has its name.

    >>> import_named(["no_such_module"])
    Traceback (most recent call last):
    rungwise.core.UserError: --module no_such_module: there is no such module on Python's import path; install it, ...
    """
    for name in names:
        if not name:
            raise UserError(f"{option}: name a module after it, or a file such as mylosses.py")
        if name.endswith(_SUFFIX):
            _import_file(name, option)
            _imported[str(_whole(name))] = None
            _owned[_whole(name).stem] = None
        else:
            _check_names([name], option)
            _import_module(name, option)
            _imported[name] = _owned[name] = None


@contextmanager
def naming(names: Iterable[str]) -> Iterator[None]:
    """Import what was named for one command; :func:`named_modules` are these alone until the block ends."""
    before = dict(_imported)
    _imported.clear()
    try:
        import_named(names)
        yield
    finally:
        _imported.clear()
        _imported.update(before)


def named_modules() -> tuple[str, ...]:
    """What was named for this command, or by :func:`import_named` outside of any, for another process to import."""
    return tuple(_imported)


def is_imported(name: str) -> bool:
    """Whether a module is imported, as a person named it or in any other way."""
    return module_name(name) in sys.modules


def is_on_path(name: str) -> bool:
    """Whether a module of a name without a dot is on Python's import path; nothing is imported.

    A name with a dot would import the package before it.

    >>> is_on_path("json"), is_on_path("no_such_module")
    (True, False)
    """
    assert "." not in name, name
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, OSError):  # of a module that is there without a specification, or an odd path
        return name in sys.modules


def _check_names(names: Iterable[str], where: str) -> None:
    """Refuse what is no dotted name of a module, such as the path of a file.

    >>> _check_names(["../mylosses.py"], "run.yaml: modules")
    Traceback (most recent call last):
    rungwise.core.UserError: run.yaml: modules: '../mylosses.py' is no dotted name of a module; give a file with ...
    """
    for name in names:
        if len(name) > _LONGEST or not _NAME.fullmatch(name):
            remedy = "give a file with --module" if name.endswith(_SUFFIX) else "write it such as mypackage.mylosses"
            raise UserError(f"{where}: {printable(name)[:_LONGEST]!r} is no dotted name of a module; {remedy}")


def module_name(name: str) -> str:
    """The name in ``sys.modules`` of what :func:`import_named` was given.

    >>> module_name("/home/me/mylosses.py"), module_name("mypackage.losses")
    ('mylosses', 'mypackage.losses')
    """
    return Path(name).stem if name.endswith(_SUFFIX) else name


def _whole(name: str) -> Path:
    return Path(name).expanduser().resolve()


def _import_module(name: str, option: str) -> None:
    try:
        with failures_of(f"{option} {name}"):
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if missing != name and not name.startswith(f"{missing}."):
            raise UserError(f"{option} {name}: it needs the module {missing}, which is missing; install it") from error
        file = f"{name.replace('.', '/')}{_SUFFIX}"
        raise UserError(
            f"{option} {name}: there is no such module on Python's import path; install it, put its folder in"
            f" PYTHONPATH, or give its file, such as {file}"
        ) from error


def _import_file(name: str, option: str) -> None:
    path = _whole(name)
    if not path.is_file():
        raise UserError(f"{option} {name}: there is no such file; give a file that ends with .py, or a module's name")
    stem = path.stem
    if not stem.isidentifier() or len(stem) > _LONGEST:
        raise UserError(
            f"{option} {name}: {printable(stem)[:_LONGEST]!r} is no name of a module; give the file a name of letters,"
            " digits and _, such as mylosses.py"
        )
    if _files.get(stem) == path:
        return
    known = sys.modules.get(stem)
    there = importlib.util.find_spec(stem) if known is None else known.__spec__
    if (known, there) != (None, None) and (there is None or there.origin is None or _whole(there.origin) != path):
        raise UserError(f"{option} {name}: another module is called {stem}; give the file another name")
    if known is not None:  # this very file, by its name on the import path
        return
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None, "the ending is that of Python"
    assert spec.loader is not None, "the ending is that of Python"
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module  # as in an ordinary import: a dataclass looks its module up while it is made
    try:
        with failures_of(f"{option} {name}"):
            _run(spec.loader, module, f"{option} {name}")
    except BaseException:
        sys.modules.pop(stem, None)
        raise
    _files[stem] = path
    send_whole(module)  # workers on other machines do not have the file


def _run(loader: importlib.abc.Loader, module: ModuleType, where: str) -> None:
    try:
        loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise UserError(f"{where}: it needs the module {error.name}, which is missing; install it") from error


@contextmanager
def failures_of(where: str, file: str | None = None) -> Iterator[None]:
    """Turn an error of a module's own code into one line, which names the line of that code.

    Args:
        where: What was being done, at the start of the line.
        file: File of that code, of which a line is named; None names the innermost line of any file.

    Raises:
        UserError: If the code of the block raises anything but that, a missing module, or a lack of memory.
    """
    try:
        yield
    except (UserError, ModuleNotFoundError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())[:_LONGEST] or "no reason given"
        place = _place(error, file)
        raise UserError(f"{where}: its code fails{place} with {type(error).__name__}: {said}; mend it") from error


def own_place(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost frame of a traceback that is of a named module or an entry point.

    None where there is no such frame. A module that was named as a part of a package stands for all of that package.
    """
    roots = {name.partition(".")[0] for name in _owned} - {_OURS}
    found, trace = None, error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in roots or package_of(module) is not None:
            found = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _place(error: BaseException, wanted: str | None) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    trace = error.__traceback__
    found = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file == wanted or (wanted is None and not file.startswith("<frozen")):
            found = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found
