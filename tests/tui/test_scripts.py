"""Words in every script: marks and highlights begin and end at the boundaries of Unicode (UAX 29)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.highlights import find_answers, find_terms, query_terms, words
from annotate.store import check_name
from annotate.tui.app import AnnotateApp
from annotate.tui.untrusted import make_one_line, make_visible
from judge.errors import UsageError
from judge.store import Store
from tests.tui.screens import press, sitting, text_of
from tests.tui.studies import drawn
from tests.tui.terminal import Terminal
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


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("نقشه\u200cرنگ", "نقشه\u200cرنگ"),  # Persian, the compound of two words
        ("مرحبا\u200f!", "مرحبا\u200f!"),
        ("क्\u200dष और र्\u200cय", "क्\u200dष और र्\u200cय"),  # Devanagari, half forms and visible viramas
        ("👩🏽\u200d🚀", "👩🏽🚀"),  # shown apart, and stored as it is
        ("pass\u200dword", "pass\\u200dword"),  # no script needs it, so it may hide something
        ("left\u200fright", "left\\u200fright"),
        ("می\u200c\u200c\u200cخواهم", "می\u200c\\u200c\\u200cخواهم"),
        ("سلام\u202eabc\u202c", "سلام\\u202eabc\\u202c"),  # an override is an attack in every script
        ("سلام\u2067abc", "سلام\\u2067abc"),
    ],
)
def test_joiners_remain_where_the_script_needs_them(raw: str, shown: str) -> None:
    assert make_visible(raw).text == make_one_line(raw) == shown


@pytest.mark.real
def test_a_typed_note_keeps_its_joiners(tmp_path: Path, terminals: Callable[..., Terminal]) -> None:
    path = drawn(tmp_path, items=1, each=1, n=1)
    note = "نمی\u200cدانم 👩\u200d🚀 مرحبا\u200f!"
    terminal = terminals(100, 30)
    terminal.run("open", "pilot", "--as", "alice", "-d", str(path))
    terminal.until("neutral")
    terminal.type("+")
    terminal.until("note")
    terminal.type("-l", note)
    terminal.type("Enter")
    query = "SELECT value FROM events WHERE kind = 'note'"

    def stored() -> list[tuple[str]]:
        with Store.open(path) as store:
            return store.conn.execute(query).fetchall()

    terminal.wait(lambda: bool(stored()), "a stored note")
    assert stored() == [(note,)]


def test_a_name_keeps_its_joiners() -> None:
    check_name("علی\u200cرضا")
    for name in ("ad\u200dmin", "علی\u202eرضا", "bob\u200f"):
        with pytest.raises(UsageError):
            check_name(name)
