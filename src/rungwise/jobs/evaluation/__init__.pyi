from ._inputs import ScoredInputs as ScoredInputs
from ._inputs import read_part as read_part
from ._inputs import scored_by as scored_by
from ._inputs import scores_of as scores_of
from ._options import Evaluate as Evaluate
from ._run import Shown as Shown
from ._run import evaluate as evaluate
from ._run import evaluated_and_shown as evaluated_and_shown
