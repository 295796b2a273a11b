from ._entry_points import GROUPS as GROUPS
from ._entry_points import Group as Group
from ._entry_points import load_offered as load_offered
from ._entry_points import offered as offered
from ._named_modules import import_named as import_named
from ._named_modules import is_imported as is_imported
from ._named_modules import named_modules as named_modules
