from ._data_report import MIN_COUNT as MIN_COUNT
from ._data_report import examine_data as examine_data
from ._finding import Finding as Finding
from ._finding import Report as Report
from ._roles import Roles as Roles
from ._run_files import is_run as is_run
from ._run_report import examine_run as examine_run
