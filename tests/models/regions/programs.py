"""The loops over captions that the benchmark of regions compares with."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FILE = Path(__file__).parents[3] / "benchmarks" / "region_programs.py"
_found = spec_from_file_location("region_programs", _FILE)
assert _found is not None
assert _found.loader is not None
programs = module_from_spec(_found)
_found.loader.exec_module(programs)
