from ._labels import curve_measures as curve_measures
from ._page import report_page as report_page
