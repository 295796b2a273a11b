from ._joined_folders import joined as joined
from ._joined_folders import named_folders as named_folders
from ._listing import listing_of as listing_of
