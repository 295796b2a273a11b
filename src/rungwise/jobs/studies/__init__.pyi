from ._outcome import StudiedRun as StudiedRun
from ._outcome import StudyOutcome as StudyOutcome
from ._study import studied as studied
from ._study import study as study
from ._study_options import Study as Study
