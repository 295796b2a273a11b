from html.parser import HTMLParser

from rungwise.core.output import embedded_jpeg, page, whole_characters


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inside: dict[str, str] = {}
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.inside[self.open[-1]] = self.inside.get(self.open[-1], "") + data


def test_the_title_is_text_and_the_body_is_html():
    parser = Texts()
    parser.feed(page("<b> & co", "<h2>one</h2>", "h2 { color: red; }"))
    assert not parser.open
    assert parser.inside["title"] == parser.inside["h1"] == "<b> & co"
    assert parser.inside["h2"] == "one"
    assert parser.inside["style"].endswith("h2 { color: red; }")


def test_the_page_stands_alone_and_can_be_written():
    text = page("caf\udcc3", "<p>caf\udcc3</p>")
    assert "http" not in text
    assert "<script" not in text
    assert "url(" not in text
    assert text.encode("utf-8").count(b"caf?") == 3


def test_a_name_is_text_in_a_picture():
    assert embedded_jpeg(b"", 'a "dog" <i>') == '<img alt="a &quot;dog&quot; &lt;i&gt;" src="data:image/jpeg;base64,">'


def test_whole_text_stays_as_it_is():
    assert whole_characters("Käse \U0001f9c0") == "Käse \U0001f9c0"
