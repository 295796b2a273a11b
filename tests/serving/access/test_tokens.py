from urllib.parse import parse_qs, urlsplit

import pytest

from rungwise.core import UserError
from rungwise.serving.access import AccessTokens, Visitor, check_guarded, cookie_of, new_token, with_token


def test_tokens_are_long_and_never_twice_the_same() -> None:
    drawn = {new_token() for _ in range(100)}
    assert len(drawn) == 100
    assert min(map(len, drawn)) >= 32


@pytest.mark.parametrize("token", ["", "short", "has a space", "Schlüssel", "line\nbreak1", "\x00" * 20])
def test_unfit_tokens_are_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(UserError, match="at least 8 characters") as refused:
        AccessTokens.single(token)
    assert not token or token not in str(refused.value)


def test_only_the_token_is_the_token() -> None:
    tokens, cookie = AccessTokens.single("correct-horse"), cookie_of("correct-horse")
    assert tokens.bearer_of("correct-horse") == Visitor("", "write")
    for wrong in ("", "correct-hors", "correct-horse ", "Correct-horse", "\udcff", cookie):
        assert tokens.bearer_of(wrong) is None
    assert tokens.owner_of(cookie) == Visitor("", "write")
    for wrong in ("", "correct-horse", cookie[:-1], cookie_of("another-horse")):
        assert tokens.owner_of(wrong) is None
    assert "correct-horse" not in cookie


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1"])
def test_this_machine_alone_needs_no_token(bound: str) -> None:
    check_guarded(bound, False, open_to_all=False)
    check_guarded(bound, True, open_to_all=False)


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "192.0.2.1"])
def test_others_need_one_or_the_word(bound: str) -> None:
    with pytest.raises(UserError, match="other machines can reach"):
        check_guarded(bound, False, open_to_all=False)
    check_guarded(bound, True, open_to_all=False)
    check_guarded(bound, False, open_to_all=True)
    with pytest.raises(UserError, match="choose one"):
        check_guarded(bound, True, open_to_all=True)


def test_any_token_survives_the_address() -> None:
    token = "".join(map(chr, range(ord("!"), ord("~") + 1)))
    assert parse_qs(urlsplit(with_token("http://127.0.0.1:1/", token)).query) == {"token": [token]}
