"""doccano's JSON Lines for text classification (github.com/doccano/doccano, `data_export`).

Exports are a folder with the guidelines, and `examples.jsonl` and `labels.json` to import into a project.
Imports are the export of a project: one file for each annotator (`alice.jsonl`, or a zip file or folder of
such files), or the `all.jsonl` of a collaborative project, which does not name the annotators.

    {"id": 1, "text": "...", "label": ["support"], "Comments": [], "adjudge_unit_id": "..."}

If a task has several questions, its labels have the form `FIELD=LABEL`. Sequence labels, which are in
`entities` or in `label` as [start, end, name], are imported as evidence.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from annotate.exchange.base import UNIT_KEY, ExchangeUnit, Export, Out, ReadOptions, Response
from annotate.exchange.files import json_records
from annotate.exchange.proof import TextOfRecord
from annotate.exchange.texts import EVIDENCE, compose, inward, outward
from annotate.exchange.values import read_boolean, read_list, read_spans
from annotate.guidelines import markdown
from judge.errors import BadInput
from judge.prompts.load import Task
from judge.types import Where

NAME = "doccano"
HELP = "doccano's JSONL for text classification: exports project files, imports one file per annotator"
WRITES = "folder"
NOBODY = ("all", "unknown", "examples")
"""File names that are not annotators' names."""
LABELS = ("label", "labels", "cats")


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write `examples.jsonl` or, in an export of labels, one `ANNOTATOR.jsonl` for each person."""
    task = export.task
    out.write_json(
        "labels.json", [{"text": _label(task, f, v.value), **_key(v.key)} for f, v in _labels(task)]
    )
    with out.open("guidelines.md") as file:
        file.write(markdown(task) + "\n")
    if not export.labels:
        with out.lines("examples.jsonl") as put:
            for unit in export.units():
                put({"text": compose(unit.inputs)[0], UNIT_KEY: unit.unit_id, "label": []})
        return
    units = {unit.unit_id: unit for unit in export.units()}
    for name in sorted({r.annotator for r in export.responses()}):
        # A name from an imported file must not choose where a file is written.
        if "/" in name or name in NOBODY:
            raise BadInput(f"annotator '{name}' cannot be the name of a file")
        with out.lines(f"{name}.jsonl") as put:
            for number, response in enumerate(export.responses(), 1):
                if response.annotator == name and not response.skipped and not response.repeat:
                    put(_row(task, units[response.unit], response, number))


def _labels(task: Task) -> Iterator[tuple[str, Any]]:
    return ((q.field, label) for q in task.spec.questions for label in q.labels)


def _label(task: Task, field: str, value: str) -> str:
    return value if len(task.spec.questions) == 1 else f"{field}={value}"


def _key(key: str | None) -> dict[str, str]:
    return {"suffixKey": key} if key else {}


def _row(task: Task, unit: ExchangeUnit, response: Response, number: int) -> dict[str, Any]:
    text, parts = compose(unit.inputs)
    row: dict[str, Any] = {"id": number, "text": text, UNIT_KEY: response.unit}
    row["label"] = [_label(task, f, v) for f, v in response.answers.items()]
    row["Comments"] = [response.note] if response.note else []
    if response.spans:
        row["entities"] = [[a, b, EVIDENCE] for a, b in outward(response.spans, parts)]
    blind = {response.is_blind(f) for f in response.answers}
    return row | ({"adjudge_blind": blind.pop()} if len(blind) == 1 else {})


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the labels of a file, of a folder of files, or of the zip file that doccano exports."""
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise BadInput("the folder has no .jsonl file", path=str(path))
        for file in files:
            yield from _file(file, None, file.stem, reading)
    elif path.suffix.lower() == ".zip":
        yield from _archive(path, reading)
    else:
        yield from _file(path, None, path.stem, reading)


def _archive(path: Path, reading: ReadOptions) -> Iterator[Response]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(".jsonl"))
            if not names:
                raise BadInput("the archive has no .jsonl file", path=str(path))
            for name in names:
                with archive.open(name) as member:
                    yield from _file(path / name, member, Path(name).stem, reading)
    # zlib.error means a damaged member, RuntimeError a password, and NotImplementedError an unknown
    # compression.
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, OSError) as e:
        raise BadInput(f"cannot be unpacked: {e}", path=str(path)) from e


def _file(path: Path, data: IO[bytes] | None, stem: str, reading: ReadOptions) -> Iterator[Response]:
    records = json_records(path, reading.bad, data)
    return reading.read_each(path, records, lambda row, where: _responses(row, stem, where, reading))


def _responses(row: Mapping[str, Any], stem: str, where: Where, reading: ReadOptions) -> Iterator[Response]:
    if isinstance(row.get("annotations"), list):
        raise BadInput(
            "this export of doccano 1.0 contains label numbers; export it again as JSONL", field="annotations"
        )
    unit = row.get(UNIT_KEY)
    meta = row.get("meta")
    if unit is None and isinstance(meta, Mapping):
        unit = meta.get(UNIT_KEY)
    if not isinstance(unit, str) or not unit:
        raise BadInput("the unit's id is missing", field=UNIT_KEY)
    # A project of sequence labels has spans in place of labels.
    labels = [value for key in LABELS for value in read_list(row, key)]
    words = [value for value in labels if isinstance(value, str)]
    spans = [
        *read_spans({"label": [value for value in labels if not isinstance(value, str)]}, "label"),
        *read_spans(row, "entities"),
    ]
    answers = _answers(words, reading)
    notes = [str(c) for c in read_list(row, "Comments") if str(c).strip()]
    if not answers and not spans and not notes:
        reading.remarks["units without a label"] += 1
        return
    yield Response(
        unit=unit,
        annotator=_annotator(row, stem, reading),
        answers=answers,
        spans=inward(spans, row.get("text"), reading.inputs(unit)) or None,
        note="\n".join(notes) or None,
        blind=read_boolean(row, "adjudge_blind"),
        where=where,
        shown=TextOfRecord(text=row.get("text")),
    )


def _answers(words: list[str], reading: ReadOptions) -> dict[str, str]:
    questions = {q.field: q for q in reading.task.spec.questions} if reading.task else {}
    only = reading.field or (next(iter(questions)) if len(questions) == 1 else None)
    labels: dict[str, list[str]] = {}
    for word in words:
        # A label of the only question may itself contain "=".
        field, equals, value = word.partition("=")
        named = bool(equals) and field in questions and not (only and word in reading.domain(only))
        if not named and only is None:
            raise BadInput(
                f"the label '{word}' does not name its question; write FIELD=LABEL, or pass --field",
                field="label",
            )
        labels.setdefault(field if named else str(only), []).append(value if named else word)
    answers = {}
    for field, values in labels.items():
        if field in questions and questions[field].many:
            answers[field] = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        elif len(values) == 1:
            answers[field] = values[0]
        else:
            raise BadInput(
                f"'{field}' has {len(values)} labels, but a question allows only one", field="label"
            )
    return answers


def _annotator(row: Mapping[str, Any], stem: str, reading: ReadOptions) -> str:
    for key in ("username", "user", "annotator"):
        if isinstance(row.get(key), str) and row[key]:
            return str(row[key])
    return reading.as_person or ("" if stem in NOBODY else stem)
