"""BEIR and TREC files in, a judge's labels out as qrels, and the score of rankings by both."""

import gzip
import json
from pathlib import Path

import pytest

from judge.errors import BadInput, UsageError
from tests.answers.helpers import rows
from tests.cli.helpers import script
from tests.formats import write_jsonl
from tests.importers.helpers import load, write
from tests.real import require
from tests.suites.helpers import Judge, give, items, people, ranking, score


def beir(folder: Path, grades: tuple[int, ...] = (1, 0, 1)) -> tuple[Path, Path, Path]:
    asked = [{"_id": "q1", "text": "who?", "metadata": {}}, {"_id": "q2", "text": "when?"}]
    queries = write_jsonl(folder / "queries.jsonl", asked)
    corpus = write_jsonl(
        folder / "corpus.jsonl",
        [
            {"_id": "d1", "title": "T", "text": "one"},
            {"_id": "d2", "title": "only a title", "text": ""},
            {"_id": "d3", "title": "", "text": "three", "metadata": {"url": "u"}},
            {"_id": "d4", "title": "", "text": "nobody asks for this one"},
        ],
    )
    lines = [f"q1\td1\t{grades[0]}", f"q1\td2\t{grades[1]}", f"q1\td3\t{grades[2]}"]
    return (
        queries,
        corpus,
        write(folder / "test.tsv", "query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n"),
    )


def test_beir_imports_only_documents_named_in_qrels(tmp_path: Path) -> None:
    result = load("beir", *beir(tmp_path))
    assert not result.bads
    (item,) = result.items
    assert (item.item_id, item.question) == ("beir:q1", "who?")
    assert [(p.source_id, p.title, p.text) for p in item.passages] == [
        ("d1", "T", "one"),
        ("d2", "only a title", "only a title"),
        ("d3", None, "three"),
    ]
    assert result.gold("relevant") == {"relevant": 2, "not_relevant": 1}
    assert result.notes == [
        "1 queries were not imported, because neither qrels nor a run names a document for them"
    ]


@pytest.mark.parametrize(
    ("grades", "field", "labels"),
    [
        ((1, 1, 1), "relevant", {"relevant": 3}),
        ((2, 0, 1), "relevance_grade", {"2": 1, "0": 1, "1": 1}),
        ((3, 0, 1), "relevance_0_3", {"3": 1, "0": 1, "1": 1}),
    ],
)
def test_the_gold_field_follows_from_the_grades(
    tmp_path: Path, grades: tuple[int, ...], field: str, labels: dict[str, int]
) -> None:
    assert load("beir", *beir(tmp_path, grades)).gold(field) == labels


def test_label_maps_define_other_grades(tmp_path: Path) -> None:
    files = beir(tmp_path, (4, -1, 2))
    bads = load("beir", *files).bads
    assert [(b.line, b.field) for b in bads] == [(2, "grade"), (3, "grade")]
    assert "--map-label relevance_0_3:4=LABEL" in str(bads[0])
    maps = {"relevant": {"4": "relevant", "2": "relevant", "-1": "not_relevant"}}
    assert load("beir", *files, label_maps=maps).gold("relevant") == {"relevant": 2, "not_relevant": 1}


def test_a_run_names_documents_without_grades(tmp_path: Path) -> None:
    queries, corpus, qrels = beir(tmp_path)
    run = write(tmp_path / "bm25.run", "q2 Q0 d4 1 9.5 bm25\nq1 Q0 d4 1 3 bm25\nq1 Q0 d1 2 2 bm25\n")
    result = load("beir", queries, corpus, qrels, run)
    assert [[p.source_id for p in i.passages] for i in result.items] == [["d1", "d2", "d3", "d4"], ["d4"]]
    assert result.gold("relevant") == {"relevant": 2, "not_relevant": 1}


def test_bad_lines_are_named_with_file_and_line(tmp_path: Path) -> None:
    queries, corpus, _ = beir(tmp_path)
    lines = ["q1\td1\t1", "q1\td1\t0", "q1\tnone\t1", "zz\td2\t1", "q1\td2\tx", "q1\td2"]
    qrels = write(tmp_path / "q.tsv", "query-id\tcorpus-id\tscore\n" + "\n".join(lines))
    result = load("beir", queries, corpus, qrels)
    assert sorted(result.places) == [
        ("q.tsv", 3, "grade"),
        ("q.tsv", 4, "document"),
        ("q.tsv", 5, "query"),
        ("q.tsv", 6, "grade"),
        ("q.tsv", 7, ""),
    ]


def test_a_missing_kind_of_file_is_named(tmp_path: Path) -> None:
    queries, corpus, qrels = beir(tmp_path)
    with pytest.raises(UsageError, match="beir format also needs qrels or a run"):
        load("beir", queries, corpus)
    with pytest.raises(UsageError, match="beir format also needs corpus"):
        load("beir", queries, qrels)
    odd = write(tmp_path / "odd.txt", "what is this\n")
    with pytest.raises(UsageError, match=r"topics\.\.\."):
        load("trec", odd)


def test_topics_in_every_format_give_the_same_items(tmp_path: Path) -> None:
    corpus = write(tmp_path / "docs.tsv", "a\tfirst\tstill its text\nb\tsecond\n")
    qrels = write(tmp_path / "qrels.txt", "301 0 a 1\n301 0 b 0\n")
    topics = [
        write(tmp_path / "topics.tsv", "301\tWho did R&D?\n302\tnothing\n"),
        write_jsonl(tmp_path / "topics.jsonl", [{"qid": "301", "query": "Who did R&D?"}]),
        write(
            tmp_path / "topics.301",
            "<top>\n<num> Number: 301\n<title> Who did\n R&amp;D?\n<desc> Description:\nMore.\n</top>\n",
        ),
        write(
            tmp_path / "topics.xml",
            '<topics>\n<topic number="301">\n<query>Who did R&amp;D?</query>\n</topic>\n</topics>',
        ),
    ]
    for path in topics:
        result = load("trec", path, corpus, qrels)
        assert not result.bads
        assert [(i.item_id, i.question) for i in result.items] == [("trec:301", "Who did R&D?")]
        assert [p.text for p in result.items[0].passages] == ["first\tstill its text", "second"]
    assert load("trec", topics[2], corpus, qrels).items[0].meta == {"description": "More."}


def test_corpora_in_every_format_give_the_same_passages(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.tsv", "1\twhat\n")
    qrels = write(tmp_path / "qrels.txt", "1 0 a 3\n")
    packed = tmp_path / "docs.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps({"docno": "a", "title": "T", "contents": "x y"}).encode()))
    for path in (
        packed,
        write(tmp_path / "corpus.tsv", "id\ttext\ttitle\na\tx y\tT\nb\tz\tU\n"),
        write(tmp_path / "docs.tsv", "a\thttps://e.org\tT\tx y\n"),
    ):
        (passage,) = load("trec", topics, path, qrels).items[0].passages
        assert (passage.source_id, passage.title, passage.text) == ("a", "T", "x y")


def test_markup_and_templates_in_topics_stay_text(tmp_path: Path) -> None:
    corpus = write(tmp_path / "docs.tsv", "a\t{{ 7*7 }} <b>x</b>\n")
    qrels = write(tmp_path / "qrels.txt", "1 0 a 3\n")
    topics = write(
        tmp_path / "topics.xml",
        '<!DOCTYPE x [<!ENTITY e "boom">]>\n<topic number="1"><query>&e; {{ 1 }}</query></topic>',
    )
    renamed = topics.rename(tmp_path / "topics.trec")
    (item,) = load("trec", renamed, corpus, qrels).items
    assert (item.question, item.passages[0].text) == ("&e; {{ 1 }}", "{{ 7*7 }} <b>x</b>")


def noveleval(judge: Judge, folder: Path) -> Path:
    source = require("shared-data") / "noveleval" / "NovelEval"
    names = ("queries.tsv", "corpus.tsv", "qrels.txt")
    judge("items", "import", "trec", *(source / n for n in names))
    return source


def test_noveleval_is_imported_and_its_labels_are_exported_as_qrels(judge: Judge, tmp_path: Path) -> None:
    source = noveleval(judge, tmp_path)
    message = json.loads(judge("items", "show", "--json", "-n", "1").out)["rows"][0]
    assert (message["item_id"], message["passages"]) == ("trec:0", 20)
    judge("run", "relevance_graded", "-m", "scripted/hash")
    out = tmp_path / "judged.qrels"
    judge("runs", "export", "--to", "qrels", "-o", out)
    given = [line.split() for line in (source / "qrels.txt").read_text().splitlines()]
    got = [line.split() for line in out.read_text().splitlines()]
    # Ids come back unchanged: the same queries and documents, in the order of the topics and the qrels.
    assert sorted((q, d) for q, _, d, _ in got) == sorted((q, d) for q, _, d, _ in given)
    assert {grade for *_, grade in got} == {"0", "1", "2", "3"}
    assert judge("runs", "export", "--to", "qrels", "--field", "relevance_grade").out.count(" 3\n") == 0
    assert "has no field 'nope'" in judge("runs", "export", "--to", "qrels", "--field", "nope", code=2).err
    # Grades of 0 to 2 are compared after the collapse that the task declares: 2 and 3 are 2.
    fields = {f["field"]: f for f in json.loads(judge("runs", "show", "--json").out)["fields"]}
    assert fields["relevance_grade"]["measures"][0]["n_units"] == 420
    assert not fields["relevance_0_3"]["measures"]


def planted(judge: Judge, folder: Path, systems: int) -> None:
    """4 queries with 12 documents of grades 0 to 3; system n has its first 2n documents from the worst end."""
    documents = [(f"d{q}-{n}", n % 4, q) for q in range(4) for n in range(12)]
    write(folder / "topics.tsv", "".join(f"{q}\tquery {q}\n" for q in range(4)))
    write(folder / "docs.tsv", "".join(f"{d}\tof grade-{g} number {d}\n" for d, g, _ in documents))
    write(folder / "qrels.txt", "".join(f"{q} 0 {d} {g}\n" for d, g, q in documents))
    judge("items", "import", "trec", *(folder / n for n in ("topics.tsv", "docs.tsv", "qrels.txt")))
    for n in range(systems):
        lists = {}
        for query in range(4):
            ideal = sorted((d for d in documents if d[2] == query), key=lambda d: (-d[1], d[0]))
            lists[str(query)] = [d for d, _, _ in ideal[12 - 2 * n :] + ideal[: 12 - 2 * n]]
        ranking(judge, folder, f"s{n}", lists)


def says(folder: Path, replies: dict[int, str]) -> list[str]:
    """A judge that gives each grade this label."""
    lines = [(f"of grade-{g} ", json.dumps({"relevance_0_3": label})) for g, label in replies.items()]
    path = script(folder / f"script{''.join(replies.values())}.jsonl", lines)
    return ["-m", "scripted/file", "--option", f"script={path}"]


def at(depth: int) -> list[str]:
    return [word for name in ("nDCG", "RR", "R") for word in ("--measure", f"{name}@{depth}")]


def scored(judge: Judge, *words: str) -> dict[str, dict[str, object]]:
    result = json.loads(judge("score", "retrieval", "--json", *words).out)
    return {m["measure"]: m for m in result["measures"]}


def test_a_judge_equal_to_gold_orders_the_systems_alike(judge: Judge, tmp_path: Path) -> None:
    planted(judge, tmp_path, 6)
    alone = scored(judge, *at(4))
    assert alone["nDCG@4[gold, s0 retrieve]"]["value"] == pytest.approx(1.0)
    # System 1 has two documents of grade 0 before the three of grade 3: the first relevant one is at rank 3.
    assert alone["RR@4[gold, s1 retrieve]"]["value"] == pytest.approx(1 / 3)
    # Its first four hold two relevant ones of 9 (3 of each grade 1, 2, 3).
    assert alone["R@4[gold, s1 retrieve]"]["value"] == pytest.approx(2 / 9)
    assert "tau_b[nDCG@4]" not in alone
    judge("run", "relevance_graded", *says(tmp_path, {0: "0", 1: "1", 2: "2", 3: "3"}))
    same = scored(judge, *at(4))
    assert same["tau_b[nDCG@4]"]["value"] == pytest.approx(1.0)
    assert same["rbo[nDCG@4]"]["value"] == pytest.approx(1.0)
    assert same["nDCG@4[judge, s2 retrieve]"]["value"] == same["nDCG@4[gold, s2 retrieve]"]["value"]


def test_a_judge_opposite_to_gold_reverses_the_order(judge: Judge, tmp_path: Path) -> None:
    planted(judge, tmp_path, 5)
    judge("run", "relevance_graded", *says(tmp_path, {0: "3", 1: "2", 2: "1", 3: "0"}))
    result = scored(judge, *at(2))
    # s0 starts with two of grade 3, s1 to s4 with two of grade 0 (s1, s2) or of a grade in between: recomputed from
    # the printed means by scipy, not assumed.
    from scipy.stats import kendalltau

    means = [
        [float(str(result[f"nDCG@2[{who}, s{n} retrieve]"]["value"])) for n in range(5)]
        for who in ("gold", "judge")
    ]
    assert result["tau_b[nDCG@2]"]["value"] == pytest.approx(kendalltau(*means).statistic)
    assert float(str(result["tau_b[nDCG@2]"]["value"])) < 0


def test_two_systems_are_too_few_for_an_order_and_a_wrong_name_is_refused(
    judge: Judge, tmp_path: Path
) -> None:
    planted(judge, tmp_path, 2)
    judge("run", "relevance_graded", *says(tmp_path, {0: "0", 1: "1", 2: "2", 3: "3"}))
    result = scored(judge)
    assert result["tau_b[ndcg@10]"]["value"] is None
    assert "at least 3" in str(result["tau_b[ndcg@10]"]["reason"])
    assert "no such ranking" in judge("score", "retrieval", "--system", "zz", code=2).err


def test_human_labels_are_qrels_with_reference(judge: Judge, tmp_path: Path) -> None:
    planted(judge, tmp_path, 5)
    judge("run", "relevance_graded", *says(tmp_path, {0: "0", 1: "1", 2: "2", 3: "3"}))
    # ann and bea turn gold round (0 is 3); cal says what gold says: the majority is ann's and bea's.
    query = "SELECT unit_id, value FROM labels WHERE annotator_id = 'gold' AND field = 'relevance_0_3'"
    gold_labels = dict(rows(query))
    turned = {unit: str(3 - int(value)) for unit, value in gold_labels.items()}
    people("relevance_0_3", {"ann": turned, "bea": turned, "cal": gold_labels})
    gold = scored(judge, *at(2))
    cal = scored(judge, *at(2), "--reference", "cal")
    assert cal["nDCG@2[cal, s1 retrieve]"]["value"] == gold["nDCG@2[gold, s1 retrieve]"]["value"]
    assert cal["tau_b[nDCG@2]"]["value"] == pytest.approx(1.0)
    result = scored(judge, *at(2), "--reference", "majority")
    # s0 begins with two of gold's grade 3, which the majority says are 0: no gain at all.
    assert result["nDCG@2[majority, s0 retrieve]"]["value"] == 0.0
    # s1 begins with two of gold's grade 0: grade 3 by the majority, the ideal.
    assert result["nDCG@2[majority, s1 retrieve]"]["value"] == pytest.approx(1.0)
    assert float(str(result["tau_b[nDCG@2]"]["value"])) < 0
    message = judge("score", "retrieval", "--reference", "nobody", code=2).err
    assert "--reference nobody" in message
    board = json.loads(
        judge("score", "retrieval", *at(2), "--system", "all", "--reference", "majority", "--json").out
    )
    assert "nDCG@2[majority]" in {row["measure"] for row in board["rows"]}


def test_a_short_line_of_a_run_is_not_a_grade(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.tsv", "1\twho\n")
    docs = write(tmp_path / "docs.tsv", "d1\tone\nd2\ttwo\n")
    run = write(tmp_path / "a.run", "1 Q0 d1 1 2.0 s\n1 Q0 d2 2\n")
    result = load("trec", topics, docs, run)
    assert result.places == [("a.run", 2, "")]
    assert not result.gold("relevance_grade")


def test_a_document_with_two_texts_is_an_error(tmp_path: Path) -> None:
    queries, corpus, qrels = beir(tmp_path)
    text = corpus.read_text("utf-8")
    write(corpus, text + text.splitlines()[0] + "\n")
    assert not load("beir", queries, corpus, qrels).bads
    write(corpus, text + '{"_id": "d1", "title": "T", "text": "another"}\n')
    result = load("beir", queries, corpus, qrels)
    assert result.places == [("corpus.jsonl", 5, "text")]
    assert "on line 1" in result.bads[0].reason
    topics = write(tmp_path / "topics.tsv", "1\twho\n")
    docs = write(tmp_path / "docs.tsv", "d1\tone\nd1\ttwo\n")
    assert load("trec", topics, docs, write(tmp_path / "q", "1 0 d1 1\n")).places == [("docs.tsv", 2, "text")]


def test_files_without_lines_and_endless_lines_are_refused(tmp_path: Path) -> None:
    queries, corpus, _ = beir(tmp_path)
    head = write(tmp_path / "h.tsv", "query-id\tcorpus-id\tscore\n")
    assert "no lines under the header" in load("beir", queries, corpus, head).bads[0].reason
    with pytest.raises(BadInput, match=r"empty.tsv: the file is empty"):
        load("beir", queries, corpus, write(tmp_path / "empty.tsv", ""))
    long = write(tmp_path / "l.tsv", f"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\t{'x' * 10_000}\t1\n")
    [bad] = load("beir", queries, corpus, long).bads
    assert (bad.line, len(str(bad)) < 300) == (3, True)


def test_a_text_of_three_words_is_not_qrels(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.tsv", "1\t0 cats 5\n")
    docs = write(tmp_path / "docs.tsv", "d1\t0 dogs 7\n")
    result = load("trec", topics, docs, write(tmp_path / "qrels.txt", "1 1 d1 1\n"))
    assert not result.bads
    assert (result.items[0].question, result.items[0].passages[0].text) == ("0 cats 5", "0 dogs 7")


def test_the_grade_that_needs_a_word_does_not_choose_the_field(tmp_path: Path) -> None:
    queries, corpus, _ = beir(tmp_path)
    qrels = write(tmp_path / "m.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t-1\n")
    [bad] = load("beir", queries, corpus, qrels).bads
    assert "--map-label relevant:-1=LABEL" in bad.reason


def test_without_qrels_only_judges_are_used(judge: Judge, tmp_path: Path) -> None:
    passages = [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}]
    items(judge, tmp_path, "d", [{"id": "q", "question": "Which?", "passages": passages}])
    ranking(judge, tmp_path, "s", {"q": "ab"})
    message = judge("score", "retrieval", code=1).err
    assert "relevance_0_3" in message and "judge run relevance_graded -m MODEL" in message
    give("relevance_graded", {"d:q/a": "0", "d:q/b": "3"})
    result = score(judge, "retrieval", "--measure", "RR@10")
    assert (result.names, result.value("RR@10[judge, s retrieve]")) == (["RR@10[judge, s retrieve]"], 1 / 2)
    assert "there are no gold qrels, so only the judge's qrels are used" in result.document["notes"]
    assert "--system" not in judge("score", "retrieval", "--part", "order", code=2).out
