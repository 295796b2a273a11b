from ._feature_folder import feature_folders as feature_folders
from ._feature_folder import folders_of_rows as folders_of_rows
from ._feature_folder import read_feature_folder as read_feature_folder
from ._feature_folder import split_of_rows as split_of_rows
from ._mat import MAT_SUFFIX as MAT_SUFFIX
from ._mat import labelled_mats as labelled_mats
from ._mat import read_labelled_mat as read_labelled_mat
