from ._agreement import agreement_of as agreement_of
from ._application import create_grading_app as create_grading_app
from ._questions import Questions as Questions
from ._questions import read_questions as read_questions
from ._questions import with_pictures as with_pictures
