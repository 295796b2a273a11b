from ._curve_plot import CurvePlot as CurvePlot
from ._curve_plot import form_of as form_of
from ._draw import KINDS as KINDS
from ._draw import draw as draw
from ._panels import BandWords as BandWords
from ._panels import Panel as Panel
from ._panels import PlotCurve as PlotCurve
from ._panels import PlotPart as PlotPart
