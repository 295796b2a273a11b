from ._kept_pictures import THUMBNAIL as THUMBNAIL
from ._kept_pictures import KeptPictures as KeptPictures
from ._kept_queries import KeptQueries as KeptQueries
from ._overview import Overviews as Overviews
from ._picture_files import PictureFiles as PictureFiles
from ._reranker import Reranker as Reranker
from ._served_index import Current as Current
from ._served_index import ServedIndex as ServedIndex
