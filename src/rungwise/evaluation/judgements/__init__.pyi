from ._human_positives import HumanPositives as HumanPositives
from ._human_positives import read_human_positives as read_human_positives
from ._positives import RightAnswers as RightAnswers
from ._positives import check_positives as check_positives
from ._positives import positives_from_json as positives_from_json
from ._positives import positives_from_labels as positives_from_labels
from ._record import JudgementRecord as JudgementRecord
