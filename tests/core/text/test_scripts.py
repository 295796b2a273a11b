import pytest

from rungwise.core.text import written_without_blanks

CHINESE = ["一只棕色的狗在草地上奔跑。", "两个人在海边散步", "红色的连衣裙, 棉质"]
JAPANESE = ["茶色い犬が草の上を走っている。", "海辺を歩く二人", "赤いワンピース"]
THAI = ["สุนัขสีน้ำตาลวิ่งบนสนามหญ้า", "คนสองคนเดินเล่นริมทะเล"]
LAO = ["ໝາສີນ້ຳຕານແລ່ນຢູ່ເທິງຫຍ້າ", "ສອງຄົນຍ່າງຫຼິ້ນແຄມທະເລ"]
KHMER = ["ឆ្កែពណ៌ត្នោតរត់លើស្មៅ", "មនុស្សពីរនាក់ដើរលេងនៅមាត់សមុទ្រ"]
BURMESE = ["အညိုရောင်ခွေးတစ်ကောင်မြက်ပေါ်တွင်ပြေးနေသည်", "လူနှစ်ယောက်ပင်လယ်ကမ်းခြေတွင်လမ်းလျှောက်နေသည်"]
LATIN = ["A brown dog runs on the grass.", "Two people walk by the sea.", "Ein rotes Kleid"]


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE, THAI, LAO, KHMER, BURMESE, CHINESE + LATIN, ["你好吗"] * 5000])
def test_languages_without_blanks(texts):
    assert written_without_blanks(texts)
    assert written_without_blanks([*texts, "", "12 30 !"])


@pytest.mark.parametrize(
    "texts",
    [
        LATIN,
        [],
        ["", "  ", "7"],
        ["A red scarf 红色的连衣裙", "Dress 赤いワンピース for women, size M", "A dog."],
        ["一只 棕色 的 狗 在 草地 上 奔跑 。", "两个 人 在 海边 散步"],
        ["茶色い 犬 が 草 の 上 を 走っ て いる"],
        ["สุนัข สี น้ำตาล วิ่ง บน สนาม หญ้า", "คน สอง คน เดิน เล่น"],
        ["갈색 개가 잔디 위를 달린다", "두 사람이 바닷가를 걷는다"],
        ["Коричневая собака бежит", "כלב חום רץ על הדשא", "كلب بني يركض", "भूरा कुत्ता दौड़ता है"],
        LATIN * 3 + CHINESE,
    ],
)
def test_others(texts):
    assert not written_without_blanks(texts)


def test_a_long_text_is_looked_at_in_part():
    """The first thousand characters decide, so that the time does not grow with the text."""
    assert written_without_blanks(["红" * 2000 + "a" * 1_000_000])
