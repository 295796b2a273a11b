from ._compare import Compare as Compare
from ._compare import compare as compare
from ._compare import compared_results as compared_results
from ._plot import Plot as Plot
from ._plot import plot as plot
from ._plot import plotted as plotted
