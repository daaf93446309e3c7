"""Batches carry the mask that live calls would: what holds an answer to the labels, and what is read of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.providers.masks import MASKS
from tests.cli.helpers import Done, checked
from tests.jobs.helpers import requests_in, write_lines
from tests.loopback.batches_server import OpenAIBatchServer
from tests.loopback.masked_server import FIELDS, MaskedServer
from tests.loopback.wire import threaded
from tests.runner.helpers import make_study, numbered, select

UNITS = 6
Judge = Callable[..., Done]


class MaskedBatches(OpenAIBatchServer, MaskedServer):
    """Both; `forgets`: its batches do not heed a mask, whatever its single calls do."""

    forgets = False

    def end(self, batch: Any) -> None:
        known = self.knows
        self.knows = () if self.forgets else known
        super().end(batch)
        self.knows = known


def labels(db: Path) -> list[Any]:
    return select(db, "SELECT unit_id, value, distribution FROM labels ORDER BY 1")


def asked(url: str, *more: str) -> list[str]:
    return ["stance", "-m", "openai/loopback", "--answers", "codes", "--base-url", url, *more]


@pytest.mark.parametrize("mask", MASKS)
def test_a_batch_asks_as_live_calls_do(mask: str, db: Path, judge: Judge, tmp_path: Path) -> None:
    live = make_study(tmp_path / "live.db", numbered(UNITS))
    with threaded(MaskedBatches()) as server:
        server.knows = (mask,)
        judge("run", *asked(server.url), "-d", live)
        calls = [body for body in server.bodies if "Passage number" in str(body)]
        judge("run", *asked(server.url), "--batch")
    written = requests_in(*(tmp_path / "study.jobs").glob("*/part-0001.jsonl"))
    assert {json.dumps(line["body"], sort_keys=True) for line in written} == {
        json.dumps(body, sort_keys=True) for body in calls
    }
    assert labels(db) == labels(live)
    # The whole mass is the labels' own.
    assert all(json.loads(told)["unassigned"] == 0 for _, _, told in labels(db))
    assert select(db, "SELECT json_extract(options, '$.mask') FROM runs") == [(mask,)]


def test_a_batch_that_does_not_heed_the_mask_is_said(db: Path, judge: Judge) -> None:
    with threaded(MaskedBatches()) as server:
        server.knows, server.forgets = ("structured_outputs",), True
        done = judge("run", *asked(server.url), "--batch", code=None)
    assert f"{UNITS} answers were not restricted to the labels" in done.err


def test_files_for_another_program_carry_the_mask_that_is_named(
    db: Path, judge: Judge, tmp_path: Path
) -> None:
    offline = ["run", "stance", "-m", "openai/qwen3", "--answers", "codes", "--offline"]
    judge(*offline, "free")
    assert not FIELDS & set(requests_in(tmp_path / "free/part-0001.jsonl")[0]["body"])
    assert "/tokenize" in judge(*offline, "biased", "--option", "mask=logit_bias", code=2).err
    named = ["--as", "held", "--option", "mask=structured_outputs"]
    told = checked(judge(*offline, "held", *named, "--json").out, "jobs_write")
    rows = requests_in(tmp_path / "held/part-0001.jsonl")
    assert rows[0]["body"]["structured_outputs"] == {"choice": ["A", "B", "C"]}
    # vLLM gives no more of them unless it was started so.
    assert rows[0]["body"]["top_logprobs"] == 20
    server = MaskedServer("structured_outputs")
    answers = [
        {
            "custom_id": row["custom_id"],
            "response": {"status_code": 200, "body": json.loads(server.answer(row["body"], "", None).body)},
        }
        for row in rows
    ]
    judge("jobs", "read", told["job"], write_lines(tmp_path / "held/results", answers))
    # Of 0.18, 0.09 and 0.03: the codes share the whole mass.
    [first, *_] = labels(db)
    assert sorted(json.loads(first[2]).values(), reverse=True)[:3] == pytest.approx([0.6, 0.3, 0.1])
