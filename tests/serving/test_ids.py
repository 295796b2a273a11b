import pytest

from rungwise.serving.ids import possible, sendable


@pytest.mark.parametrize("item_id", ["dogs/7.jpg", "日本", "a b?c#d%2F", "\udcff.jpg", "x\ud800y", "bytes:plain", ""])
def test_every_id_leads_back_from_what_is_sent(item_id: str) -> None:
    sent = sendable(item_id)
    sent.encode("utf-8")  # or it could not be sent
    assert item_id in possible(sent)


@pytest.mark.parametrize("sent", ["bytes:", "bytes:!", "bytes:é", "bytes:aGVsbG8"])
def test_whatever_is_sent_is_looked_for(sent: str) -> None:
    assert possible(sent)[0] == sent
