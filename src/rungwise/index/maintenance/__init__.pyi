from ._export import export as export
from ._export import require_writable_export as require_writable_export
from ._verify import verify_index as verify_index
