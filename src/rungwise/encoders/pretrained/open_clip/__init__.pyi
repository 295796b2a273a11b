from ._text_cleaning import Cleaning as Cleaning
from ._text_cleaning import cleaner as cleaner
