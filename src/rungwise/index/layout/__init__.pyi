from ._feedback import DEGREES as DEGREES
from ._feedback import Grade as Grade
from ._feedback import GradeName as GradeName
from ._feedback import Grades as Grades
from ._feedback import add_grade as add_grade
from ._feedback import now as now
from ._feedback import read_grades as read_grades
from ._feedback import take_back as take_back
