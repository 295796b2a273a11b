import numpy as np
import pytest

from rungwise.scenes import (
    Mention,
    Scene,
    SceneConfig,
    SceneObject,
    SceneRelevance,
    Statement,
    facts_in,
    held_out_combinations,
    sample_picture,
)

STAR = SceneObject("star", "red", "small", "plain", 0.2, 0.2)
HEART = SceneObject("heart", "blue", "large", "plain", 0.7, 0.25)


def test_true_facts_over_stated_ones_are_the_degree():
    config, held_out = SceneConfig(captions_per_picture=2, seed=8), held_out_combinations()
    pictures = [sample_picture(config, number, held_out) for number in range(40)]
    scenes = [picture.scene for picture in pictures]
    statements = [statement for picture in pictures for _, statement in picture.captions]
    found = [[facts_in(one, scene) for one in statements] for scene in scenes]
    shares = np.array([[facts.true / facts.stated for facts in row] for row in found])
    assert shares == pytest.approx(SceneRelevance(scenes, statements).dense())
    assert all(bool(facts.wrong) == (facts.true < facts.stated) for row in found for facts in row)


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        (Statement((Mention("star", "red"),)), ()),
        (Statement((Mention("star", "green"),)), ("star is red, not green",)),
        (Statement((Mention("cross", "red"),)), ("star, not cross",)),
        (Statement((Mention("heart"), Mention("star")), (("left of", 0, 1),)), ("right of, not left of",)),
        (Statement((Mention("heart"), Mention("star")), (("above", 0, 1),)), ("right of, not above",)),
        (Statement((Mention("star"),), count=1), ("2 in all, not 1",)),
        (
            Statement((Mention("heart"), Mention("star"), Mention("cross", "pink"))),
            ("no pink cross",),
        ),
    ],
)
def test_what_is_wrong_in_words(statement, wrong):
    assert facts_in(statement, Scene((STAR, HEART))).wrong == wrong
