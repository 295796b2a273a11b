from ._calibration import refit as refit
from ._cutoff import Cutoff as Cutoff
from ._cutoff import end_of as end_of
from ._hit_texts import known_of as known_of
from ._hit_texts import known_of_texts as known_of_texts
