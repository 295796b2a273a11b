from ._threshold_examples import render_rungs as render_rungs
from ._threshold_examples import rungs as rungs
from ._threshold_examples import rungs_page as rungs_page
