from ._json_answers import A_FILE as A_FILE
from ._json_answers import IMAGES as IMAGES
from ._json_answers import json_answer as json_answer
from ._json_answers import refusals as refusals
from ._json_answers import small_picture as small_picture
from ._why import Why as Why
from ._why import WhyText as WhyText
from ._why import WhyWord as WhyWord
