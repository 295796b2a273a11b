from ._command import main as main
from ._cutoffs import known_of as known_of
from ._cutoffs import scored_of_index as scored_of_index
from ._cutoffs import unrelated_to as unrelated_to
from ._inputs import ScoredInputs as ScoredInputs
from ._inputs import read_part as read_part
from ._inputs import scored_by as scored_by
from ._inputs import scores_of as scores_of
