"""Words in every script: marks and highlights begin and end at the boundaries of Unicode (UAX 29)."""

from pathlib import Path

import pytest

from annotate.highlights import find_answers, find_terms, query_terms, words
from annotate.tui.app import AnnotateApp
from tests.tui.screens import press, sitting, text_of
from tests.tui.studies import drawn
from tests.tui.test_drag import drag, marked

JAPANESE = "アスピリンは一般的な薬です。アスピリンは軽い頭痛を和らげる。"
CHINESE = "阿司匹林是一种常用药物。它可在一小时内缓解轻度头痛。"
THAI = "แอสไพรินเป็นยาที่ใช้กันทั่วไป"
ARABIC = "يخفف الأسبرين الصداع الخفيف خلال ساعة."


@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        (JAPANESE, "一", "な", "一般的な"),  # all 29 characters were marked
        (JAPANESE, "ス", "リ", "スピリ"),  # UAX 29 keeps Katakana together; here it goes by character as well
        (CHINESE, "常", "物", "常用药物"),
        (THAI, "ยา", "ที่", "ยาที่"),  # vowel signs and tone marks stay with their consonant
        ("Pain was relieved, said 71 % of them.", "eli", "71", "relieved, said 71"),
    ],
)
async def test_a_drag_marks_words_and_in_scripts_without_spaces_characters(
    text: str, first: str, last: str, expected: str, tmp_path: Path
) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    async with sitting(path) as pilot:
        await drag(pilot, first, last)
        assert marked(pilot) == [expected]


async def test_the_cursor_goes_through_a_chinese_text(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": CHINESE}, n=1)
    async with sitting(path) as pilot:
        await press(pilot, "asterisk", *["right"] * 7, "space", *["right"] * 3, "enter")
        assert marked(pilot) == ["常用药物"]


def test_words_of_every_script() -> None:
    def split(text: str) -> list[str]:
        return [text[a:b] for a, b in words(text)]

    assert split("It's $5, state-of-the-art.") == ["It's", "$", "5", ",", "state", "-", "of", "-", "the", "-", "art", "."]  # fmt: skip
    assert split(ARABIC) == ["يخفف", "الأسبرين", "الصداع", "الخفيف", "خلال", "ساعة", "."]
    assert split("コンピュータ 東京") == ["コ", "ン", "ピ", "ュ", "ー", "タ", "東", "京"]
    assert split("👩‍👩‍👧‍👦 👍🏽") == ["👩‍👩‍👧‍👦", "👍🏽"]


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        ("阿司匹林缓解头痛", CHINESE, ["阿司匹林", "缓解", "头痛"]),
        # "です" alone is grammar, as "is" is; with a character of a word before it, it is a sequence.
        ("アスピリンは頭痛に効く薬です", JAPANESE, ["アスピリンは", "薬で", "アスピリンは", "頭痛"]),
        ("แอสไพรินเป็นยา", THAI, ["แอสไพรินเป็นยา"]),
        ("الأسبرين يعالج الصداع", ARABIC, ["الأسبرين", "الصداع"]),
        (
            "Aspirin relieves pain.",
            "Pain was relieved; aspirin relieves it.",
            ["Pain", "aspirin", "relieves"],
        ),
    ],
)
def test_highlights_mark_exact_words(claim: str, text: str, expected: list[str]) -> None:
    assert [text[a:b] for a, b in find_terms(text, query_terms([claim]))] == expected


def test_an_answer_is_highlighted_as_whole_words() -> None:
    assert list(find_answers("Parisians in Paris, 1942 or 42", ["Paris", "42"])) == [(13, 18), (28, 30)]
    assert list(find_answers("日本の東京です", ["東京"])) == [(3, 5)]


@pytest.mark.parametrize(
    ("text", "is_web", "warned"), [(ARABIC, True, True), (ARABIC, False, False), (THAI, True, False)]
)
async def test_a_browser_screen_says_that_it_cannot_lay_out_right_to_left_text(
    text: str, is_web: bool, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnnotateApp, "is_web", is_web)
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    async with sitting(path) as pilot:
        assert ("right-to-left text in the wrong order" in text_of(pilot, "message")) == warned
