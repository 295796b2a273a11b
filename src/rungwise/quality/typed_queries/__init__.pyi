from ._collection import TextedPictures as TextedPictures
from ._given import GivenQuery as GivenQuery
from ._given import read_queries as read_queries
from ._making import KINDS as KINDS
from ._making import MIXTURE as MIXTURE
from ._making import training_queries as training_queries
from ._statements import statements_of as statements_of
