"""Check for words of the validation captions that a vocabulary lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rungwise.core.text import written_without_blanks
from rungwise.data import ImageCaptions
from rungwise.doctor._finding import EXAMPLES, Finding, share
from rungwise.doctor._roles import Roles

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN_TOKENS = 0.05
"""Share of the tokens of the validation captions that a vocabulary may lack. Flickr8K lacks 2.6 % where words that
occur less than four times are left out.
"""


def captions_of(data: ImageCaptions, roles: Roles, role: str) -> list[str]:
    """The captions of the split with a role."""
    of_image = roles.role_of(data)
    return [
        text
        for text, image in zip(data.captions, data.image_of_caption.tolist(), strict=True)
        if of_image[image] == role
    ]


def missing_words(vocabulary: Tokenizer, captions: Sequence[str], whose: str, cure: str) -> Iterator[Finding]:
    """Finding where a vocabulary does not know much of some captions.

    Args:
        vocabulary: Tokenizer with a token for unknown words; one that cuts every word into pieces has none.
        captions: Captions of the validation split.
        whose: Name of the vocabulary in a sentence.
        cure: Cure of the finding.
    """
    unknown = getattr(vocabulary.model, "unk_token", None)
    if unknown is None or not captions:
        return
    missing: Counter[str] = Counter()
    tokens = touched = 0
    for at in range(0, len(captions), 1000):
        part = [text.encode("utf-8", "replace").decode() for text in captions[at : at + 1000]]
        for text, encoding in zip(part, vocabulary.encode_batch(part, add_special_tokens=False), strict=True):
            places = [place for place, token in zip(encoding.offsets, encoding.tokens, strict=True) if token == unknown]
            tokens += len(encoding.tokens)
            touched += bool(places)
            missing.update(text[begin:end].lower() for begin, end in places)
    if missing.total() > UNKNOWN_TOKENS * tokens:
        yield Finding(
            "words missing from the vocabulary",
            "fault",
            f"{whose} lacks {missing.total()} of {tokens} tokens of the validation captions"
            f" ({share(missing.total(), tokens)}); {touched} of {len(captions)} captions"
            f" ({share(touched, len(captions))}) hold an unknown word.",
            cure,
            tuple(f"{word} ({count} times)" for word, count in missing.most_common(2 * EXAMPLES)),
        )


def learnt_words(data: ImageCaptions, roles: Roles, min_count: int) -> Iterator[Finding]:
    """Finding where a vocabulary of training words with ``min_count`` occurrences lacks many of validation."""
    if data.text_features is not None:
        return
    from rungwise.encoders.texts import learn_vocabulary

    train = captions_of(data, roles, "training")
    if not train:
        return
    yield from missing_words(
        learn_vocabulary(train, min_count),
        captions_of(data, roles, "validation"),
        f"A vocabulary of the training captions (words seen at least {min_count} times)",
        "Lower model.text.min_count, start from word vectors of a file (model.text.word_vectors, vocabulary: both), or"
        " take a text encoder that knows more words.",
    )


def no_blanks(data: ImageCaptions) -> Iterator[Finding]:
    """Finding where the captions are of a language without blanks between words."""
    if data.text_features is None and written_without_blanks(data.captions):
        yield Finding(
            "no blanks between words",
            "advice",
            "The captions have no blanks between words, so that sources of relevance that compare words (tfidf, cider,"
            " cider-d, cbow) take each caption for one word, and nearly all degrees are 0.",
            "Give these sources --tokenizer icu (in a configuration tokenizer: icu).",
            data.captions[:1],
        )
