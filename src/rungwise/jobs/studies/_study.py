"""A study: from its file to its table, and the function of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rungwise.core import UserError
from rungwise.core.disk import usable_cache
from rungwise.core.disk.locks import alone
from rungwise.jobs._job import function_of
from rungwise.jobs.studies._study_options import Study

if TYPE_CHECKING:
    from rungwise.jobs.studies._outcome import StudyOutcome


def studied(asked: Study, show: Callable[[StudyOutcome], None] | None = None) -> StudyOutcome:
    """Read the file, check all of it, train, choose, measure, and ``show`` what came of it.

    Raises:
        UserError: If the file or a setting in it does not fit, or a folder holds something else.
    """
    from rungwise.jobs.studies._work import StudyWork

    if asked.jobs < 1:
        raise UserError(f"--jobs must be at least 1, got {asked.jobs}")
    if asked.ray is not None and asked.jobs > 1:
        raise UserError("--jobs and --ray: each says how many runs are trained at a time; give one of them")
    usable_cache(asked.cache)
    study = asked.read()
    work = StudyWork(study, asked, asked.folder_of(study))
    if asked.dry_run:
        found = work.planned()
    else:
        work.refuse_others()
        with alone(work.out, "a study"):
            found = work.go()
    if show is not None:
        show(found)
    return found


study = function_of(
    "study",
    Study,
    studied,
    """
    Returns:
        The study as it stands in its folder, with the numbers of each system over its seeds. Runs that failed are in
        ``failed`` with the reason; they raise nothing.

    Raises:
        UserError: If the study or a setting in it does not fit, or a folder holds something else.

    >>> import rungwise
    >>> arms = [{"name": "max"}, {"name": "sum", "loss": "sum_of_hinges"}]
    >>> rungwise.study({"base": "scenes", "arms": arms, "seeds": [0, 0]})
    Traceback (most recent call last):
    rungwise.core.UserError: seeds: 0 stands twice in 0 0; give each seed once
    """,
)
