"""TREC's files without a format's name: topics, qrels and runs in the forms that the tracks publish."""

from pathlib import Path

import pytest

from judge.importers.signs import recognise_format
from tests.answers.helpers import column, rows
from tests.importers.helpers import write
from tests.suites.helpers import Judge, score

# The layout of the topics of the Robust track, with a blank line first.
ROBUST = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in
international criminal activity.

<narr> Narrative:
A relevant document must identify the organization.

</top>

<top>

<num> Number: 302
<title> Poliomyelitis

</top>
"""
RAG24 = "2024-105741\tis it dangerous to have wbc over 15,000 without treatment?\n2024-127266\thow does the us census work\n"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("topics.robust04.txt", ROBUST, "trec"),
        ("topics.rag24.test.txt", RAG24, "trec"),
        ("qrels.dl19.txt", "19335 Q0 1017759 0\n", "trec"),
        ("judgements", "301 0 FBIS3-10082 1\n", "trec"),
        ("input.bm25", "301 Q0 FBIS3-10082 1 13.2 bm25\n", "trec"),
        ("tabs.run", "301\tQ0\tFBIS3-10082\t1\t13.2\tbm25\n", "trec"),
        ("topics.tsv", "id\tquestion\n1\tWhat?\n", "csv"),
        ("table.csv", "id,question\n1,What?\n", "csv"),
    ],
)
def test_recognised(name: str, text: str, found: str, tmp_path: Path) -> None:
    assert recognise_format([write(tmp_path / name, text)]) == found


def test_from_topics_to_a_score(judge: Judge, tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.robust04.txt", ROBUST)
    documents = write(tmp_path / "docs.tsv", "F-1\tCrime.\nF-2\tTea.\nF-3\tPolio.\n")
    qrels = write(tmp_path / "qrels.robust04.txt", "301 0 F-1 1\n301 0 F-2 0\n302 0 F-3 2\n")
    judge("items", "import", documents, qrels, topics)
    runs = [
        write(tmp_path / "input.one", "301 Q0 F-1 1 9 one\n302 Q0 F-3 1 9 one\n"),
        write(tmp_path / "input.two", "301 Q0 F-2 1 9 two\n301 Q0 F-1 2 8 two\n302 Q0 F-3 1 9 two\n"),
    ]
    judge("systems", "import", "--stage", "retrieve", *runs)
    found = score(judge, "retrieval", "--measure", "RR@10")
    # `two` finds the relevant document of 301 at rank 2, and that of 302 at rank 1.
    assert found.value("RR@10[gold, one retrieve]") == 1
    assert found.value("RR@10[gold, two retrieve]") == (1 / 2 + 1) / 2


def test_topics_alone_are_items_without_passages(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", write(tmp_path / "topics.rag24.test.txt", RAG24))
    [_, second] = rows("SELECT item_id, question FROM items ORDER BY 1")
    assert second == ("trec:2024-127266", "how does the us census work")
    assert column("SELECT count(*) FROM passages") == [0]
