"""Words of English that carry no content of a scene, or carry it in a way of their own."""

from __future__ import annotations

__all__ = [
    "ADVERBS",
    "AND",
    "BE",
    "BESIDE",
    "DEPTHS",
    "DETERMINERS",
    "FRAMES",
    "HOLDING",
    "INTO",
    "KINDS",
    "LIGHT",
    "LIVING",
    "MADE_OF",
    "MODALS",
    "MOVING",
    "NEGATIONS",
    "NUMBERS",
    "PARTITIVES",
    "PERSONS",
    "PHRASES",
    "PLURAL_ONLY",
    "PREPOSITIONS",
    "PRONOUNS",
    "SHORT",
    "SHOWING",
    "SINGLE",
    "TRANSITIVE",
    "TWO",
    "WHILE",
    "WHO",
    "WHOLE",
    "WHOLE_ROOTS",
]

DETERMINERS = frozenset((
    "a", "an", "the", "this", "that", "these", "those", "some", "any", "each", "every", "all", "both", "another",
    "other", "many", "several", "various", "few", "its", "his", "her", "their", "our", "my", "your", "no", "such",
    "more", "most", "multiple", "numerous", "what", "whose", "certain", "own",
))  # fmt: skip
"""Words that may begin a noun phrase and do not describe the thing."""

SINGLE = frozenset(("a", "an", "another", "each", "every", "one", "this"))
"""Determiners of a single thing: after its noun, a word in -s is a verb."""

NUMBERS = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "dozen": "12", "twenty": "20", "hundred": "100",
}  # fmt: skip
"""Words for numbers."""

PREPOSITIONS = frozenset((
    "in", "on", "at", "by", "for", "with", "about", "into", "through", "during", "from", "off", "over", "under",
    "above", "below", "between", "behind", "beside", "near", "around", "along", "across", "against", "among", "amongst",
    "toward", "towards", "onto", "upon", "atop", "beneath", "underneath", "inside", "outside", "within", "without",
    "past", "beyond", "down", "up", "like", "of", "amid", "alongside", "after", "before", "to", "via", "throughout",
    "aboard", "opposite", "unto", "per", "amidst", "than",
))  # fmt: skip

PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("on", "top", "of"): ("on top of",),
    ("in", "front", "of"): ("in front of",),
    ("in", "back", "of"): ("in back of",),
    ("in", "the", "middle", "of"): ("in the middle of",),
    ("in", "the", "center", "of"): ("in the middle of",),
    ("on", "the", "side", "of"): ("on the side of",),
    ("at", "the", "edge", "of"): ("at the edge of",),
    ("on", "the", "edge", "of"): ("at the edge of",),
    ("next", "to"): ("next to",),
    ("close", "to"): ("close to",),
    ("up", "to"): ("up to",),
    ("out", "of"): ("out of",),
    ("inside", "of"): ("inside of",),
    ("outside", "of"): ("outside of",),
    ("along", "with"): ("along with",),
    ("together", "with"): ("along with",),
    ("away", "from"): ("away from",),
    ("left", "of"): ("left of",),
    ("right", "of"): ("right of",),
    ("to", "the", "left", "of"): ("left of",),
    ("to", "the", "right", "of"): ("right of",),
    ("on", "the", "left", "of"): ("left of",),
    ("on", "the", "right", "of"): ("right of",),
    ("to", "the", "upper", "left", "of"): ("above", "left of"),
    ("to", "the", "upper", "right", "of"): ("above", "right of"),
    ("to", "the", "lower", "left", "of"): ("below", "left of"),
    ("to", "the", "lower", "right", "of"): ("below", "right of"),
}
"""Several words that are one relation, or two at once."""

SHORT = {"cannot": "can not", "can't": "can n't", "won't": "will n't", "n't": " n't"}
"""Short forms of "not" and what they are taken apart to, one after the other."""
NEGATIONS = frozenset(("not", "n't", "never"))
"""Words that deny what follows."""
AND = frozenset(("and", "or", "&"))
WHILE = frozenset(("while", "as", "when", "where", "because", "so", "if", "but", "then", "although", "though"))
"""Words that begin another clause."""
WHO = frozenset(("who", "that", "which", "whom"))
BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "am", "'s", "'re", "isn't", "aren't"))
MODALS = frozenset(("can", "could", "will", "would", "may", "might", "must", "should", "do", "does", "did", "has",
                    "have", "had"))  # fmt: skip
"""Words that help another verb; has and have are verbs of their own where none follows."""
PRONOUNS = frozenset((
    "he", "she", "it", "they", "we", "i", "you", "him", "them", "us", "me", "himself", "herself", "itself",
    "themselves", "everyone", "everything", "nothing", "something", "else", "everybody", "anything", "there", "here",
))  # fmt: skip
PERSONS = frozenset(("someone", "somebody", "anyone", "anybody"))
ADVERBS = frozenset((
    "very", "just", "only", "also", "not", "n't", "almost", "nearly", "quite", "too", "still", "already", "together",
    "alone", "away", "forward", "outdoors", "indoors", "nearby", "out", "again", "now", "really", "apart", "ahead",
    "downhill", "uphill", "even", "else", "instead", "aside", "overhead", "upside", "partially", "mostly", "however",
    "somewhere", "elsewhere", "backwards", "forwards", "downstairs", "upstairs", "yet", "once", "twice", "perhaps",
))  # fmt: skip
"""Words without an ending of their own that may stand beside a verb and are dropped there."""

PARTITIVES = frozenset(("group", "bunch", "number", "lot", "lots", "set", "variety", "kind", "type", "sort", "array",
                        "couple", "pair", "kinds", "types", "sorts", "plenty", "assortment"))  # fmt: skip
"""Words that do not describe a thing before "of", except couple and pair, which mean two."""
TWO = frozenset(("couple", "pair"))
KINDS = frozenset(("kind", "type", "kinds", "types", "sort", "sorts"))
"""Partitives whose number is that of the things: two kinds of fruit."""
MADE_OF = frozenset(("covered", "shaped", "filled", "colored", "coloured", "lined", "faced", "haired", "sized",
                     "topped", "themed", "decorated", "powered", "style"))  # fmt: skip
"""Words that are adjectives after a noun and before another one: a snow covered mountain."""

FRAMES = frozenset(("picture", "photo", "photograph", "image", "drawing", "painting", "view", "shot", "close-up",
                    "closeup", "scene", "pictures", "photos", "images", "close", "portrait", "sketch"))  # fmt: skip
"""Words that mean the picture and not what it shows, before "of" (a picture of) or "with"."""

WHOLE = {
    ("hot", "dog"): "hot dog",
    ("hot", "dogs"): "hot dogs",
    ("ice", "cream"): "ice cream",
    ("french", "fry"): "french fry",
    ("french", "fries"): "french fries",
    ("roller", "coaster"): "roller coaster",
    ("roller", "coasters"): "roller coasters",
    ("plus", "sign"): "plus sign",
    ("plus", "signs"): "plus signs",
}
WHOLE_ROOTS = {
    "hot dogs": "hot dog",
    "plus signs": "plus sign",
    "french fries": "french fry",
    "roller coasters": "roller coaster",
}
"""Two words for a thing that the last word alone does not name."""

LIGHT = frozenset(("go", "get", "start", "begin", "come", "continue", "seem", "appear", "keep", "let", "be", "have"))
"""Verbs without meaning where another verb follows at once."""

LIVING = frozenset((
    "man", "woman", "boy", "girl", "child", "kid", "person", "people", "guy", "lady", "baby", "toddler", "player",
    "dog", "cat", "horse", "bird", "elephant", "bear", "giraffe", "zebra", "cow", "sheep", "puppy", "skier",
    "snowboarder", "surfer", "skateboarder", "rider", "biker", "cyclist", "worker", "teenager", "adult", "family",
    "couple", "crowd", "group", "team", "officer", "child", "student", "performer", "musician", "runner", "swimmer",
    "female", "male", "gentleman", "individual", "friend", "soldier", "policeman", "chef", "athlete", "batter",
))  # fmt: skip
"""Things that act: a verb after "... in a red shirt" is theirs and not the shirt's."""

PLURAL_ONLY = frozenset(("pants", "pajamas", "sunglasses", "glasses", "jeans", "shorts", "scissors", "goggles",
                         "trousers", "tongs", "overalls", "tights", "leggings", "clothes", "binoculars"))  # fmt: skip
"""Nouns that have no singular of the same meaning."""

TRANSITIVE = frozenset(("wearing", "holding", "carrying", "riding", "using", "making", "eating", "doing", "having",
                        "watching", "taking", "throwing", "catching", "hitting", "pulling", "pushing", "swinging",
                        "kicking", "reading", "cutting", "drinking", "preparing", "selling", "chasing"))  # fmt: skip
"""Verbs whose object follows at once, also without an article: wearing bracelets."""

DEPTHS = frozenset(("background", "foreground", "distance"))
"""Places of what stands before "in" them: a street with mountains in the background."""

BESIDE = frozenset(("near", "by", "next to", "beside", "behind", "in front of", "past", "at", "between", "over"))
"""Relations after which a participle belongs to the living thing that they lead to: a cat near a man using a laptop."""

SHOWING = frozenset(("see", "show", "picture", "depict", "display", "feature"))
"""Verbs that are about the picture where they stand after "is" or "can be"."""
HOLDING = frozenset(("hold", "carry", "wear", "have", "eat", "contain", "feature", "show", "get", "make", "prepare"))
"""Verbs whose object is described by a "with" that follows it."""
MOVING = frozenset(("hold", "put", "place", "pour", "set", "lay", "keep", "stuff", "take", "pull", "get", "remove"))
"""Verbs after which a place is that of their object."""
INTO = frozenset(("in", "into", "on", "onto", "above", "over", "out of", "inside", "on top of"))
