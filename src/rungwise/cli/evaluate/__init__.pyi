from ._command import main as main
from ._inputs import ScoredInputs as ScoredInputs
from ._inputs import read_part as read_part
from ._inputs import scored_by as scored_by
from ._inputs import scores_of as scores_of
