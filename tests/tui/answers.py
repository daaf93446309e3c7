"""A study of answers: sentences with citations, claims, passages of other questions as noise, gold of passages."""

from pathlib import Path

from annotate.store import open_study
from judge.store import Store
from judge.store.answers import add_answers
from judge.store.imports import ImportInfo
from judge.store.items import add_items
from judge.types import Answer, AnswerRow, Claim, Item, Passage, Row, Vote, Where

TEA = "China grows the most tea [cite_1]. Most of it is sold in Mombasa [cite_2][cite_3]. I hope this helps!"
BRIDGE = "It was designed by Nora Quist [1]. It was designed by Nora Quist [1]. She drew it [2]."


def build_answers(path: Path) -> Path:
    """Two questions with answers of three sentences each; the bridge was answered with a passage about tea too."""
    tea = Item("tea", "d", question="Which country grows the most tea?", claim="Tea comes from China.", pair_id="1",
               polarity="original", passages=[
        Passage("China harvests more tea than any other country. India follows.", "cite_1", "Tea", "2024-01-02", "web",
                votes=[Vote("relevance", "ANSWER-THE-QUESTION")]),
        Passage("Kenya exports most of its tea; it is sold in Mombasa.", "cite_2", "Kenya",
                votes=[Vote("relevance", "RELATED-INFORMATION")]),
        Passage("Mombasa is a port.", "cite_3", "Mombasa", votes=[Vote("relevance", "IRRELEVANT")]),
    ])  # fmt: skip
    other = Item("tea2", "d", claim="Tea comes from Kenya.", pair_id="1", polarity="counter")
    bridge = Item("bridge", "d", question="Who designed the bridge?", reference_answers=["Nora Quist"],
                  passages=[Passage("The bridge was drawn by Nora Quist. It opened in 1931."), Passage("Bridges rot.")])  # fmt: skip
    for item in (tea, other, bridge):
        item.votes = [Vote("claim_verdict", "true")]
    with Store.open(path) as store:
        rows = [Row(item, Where("test", n)) for n, item in enumerate((tea, other, bridge), 1)]
        add_items(store, iter(rows), ImportInfo("test", {}), [], _raise)
        first = store.conn.execute(
            "SELECT passage_id FROM passages WHERE item_id = 'd:bridge' ORDER BY position"
        )
        context = ["d:tea/cite_3", *(r[0] for r in first)]
        answers = [
            Answer("tea", "model", "full", TEA, claims=[Claim("China grows the most tea"), Claim("It is sold")]),
            Answer("bridge", "model", "noise", BRIDGE, cited=[context[1], context[0]], context=context),
            Answer("bridge", "human", "full", "Nora Quist did.", context=context),
        ]  # fmt: skip
        add_answers(
            store,
            (AnswerRow(a, Where("test", n)) for n, a in enumerate(answers, 1)),
            ImportInfo("test", {}),
            [],
            _raise,
        )
    open_study(path).close()
    return path


def _raise(e: Exception) -> None:
    raise e
