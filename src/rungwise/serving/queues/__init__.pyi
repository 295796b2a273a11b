from ._batches import Batches as Batches
from ._queue import Memory as Memory
from ._queue import WorkQueue as WorkQueue
from ._repeated import repeated as repeated
from ._waiting import BusyError as BusyError
from ._waiting import LateError as LateError
from ._waiting import outcome as outcome
