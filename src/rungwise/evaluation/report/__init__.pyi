from ._labels import curve_measures as curve_measures
from ._origin import ReportOrigin as ReportOrigin
from ._page import report_page as report_page
