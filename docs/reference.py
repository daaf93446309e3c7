"""The reference pages of the site, made from the code: commands, tasks, task files, JSON documents, the study's tables.

A hook of mkdocs.yml: the pages are in the site and in no folder, so none can be out of date. For another generator:

    uv run python -m docs.reference      # writes docs/reference/*.md
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from judge.cli.options import SHOW_ALL

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "tests" / "schemas"
WIDTH = 80

# What one row of a table is.
TABLES = {
    "imports": "one import: format, files with sha256, maps, counts, skipped rows",
    "items": "a question or claim; `item_id` is `dataset:id`",
    "passages": "a passage of an item; `passage_id` is `item/id`",
    "answers": "what a system answered under a condition: text, `cited` and `context` (passage ids), `origin` (import or run)",
    "rankings": "one passage in a list: name, stage, item, rank (from 1), score",
    "units": "what can be labelled: item, passage, answer `item@system@condition`, sentence `…#s0`, citation `…#s0/passage`, "
    "claim `…#c0`, nugget `…#n0`, pair of claims `item~item`; `span` says where a sentence stands (code points) and what it cites",
    "nuggets": "what a good answer to an item contains: item, n, text, importance (vital or okay)",
    "tasks": "a task file, by name and version",
    "prompts": "a constant prompt part or answer schema, by sha256",
    "runs": "one task with one model and one set of options; `derived_from` names what a judge made without a call was made of",
    "requests": "one request by its sha256: model, server, prompt parts by hash, parameters, repeat; the run and unit that "
    "have its answer",
    "judgements": "one attempt on a unit: status, raw reply, reason, tokens, cost, latency (s), resolved model",
    "run_counts": "how many units of a run stand how, kept by a trigger",
    "annotators": "who labels: human, judge (one per run), gold, adjudicated",
    "labels": "one label: unit, field, annotator, value, distribution, `derived_from`",
    "batches": "an annotation batch with its options",
    "batch_units": "a drawn unit with stratum, probability, weight",
    "assignments": "one position of one annotator's queue, and how it stands",
    "events": "one thing a person did: label, skip, flag, note, span, shown, keep, revise, undo; with active and idle ms, and "
    "for labels the ms since the unit was painted. Append-only",
    "sessions": "one sitting",
    "label_imports": "labels made elsewhere: format, batch, declared blindness, files with sha256, counts",
    "label_studio_projects": "a project that a batch was pushed to",
    "label_studio_tasks": "a task there, and its unit",
    "label_studio_annotations": "an annotation that came in",
    "batch_changes": "what a lead did to a batch in flight. Append-only",
    "event_sources": "which record of another program an event came from, so that it can be retracted with it",
    "fitted_on": "a question whose labels a derived run was fitted on, with its fold",
    "handed_over": "a seat in a queue that was taken from somebody, so that a pack made before can still come back",
    "quarantine": "an incoming label that did not prove itself, with the reason; no number reads it",
    "splits": "a task's questions in learn, tune and a sealed test, frozen",
    "split_questions": "a question of a split, and its part",
    "split_looks": "a look at a sealed test, logged before a number of it is shown",
    "stopped": "a person whose labels in a batch count no more, with the reason",
    "label_sources": "what people said of a unit, by source (batch, import, votes, adjudication); labels follow from it",
    "imported_labels": "what imports and votes of items said: the log by which label_sources is verified. Append-only",
    "label_resolutions": "labels in conflict that a lead decided: what does not count, and the source that does. Append-only",
    "label_rulings": "the decisions in label_resolutions, numbered: the log by which they are verified. Append-only",
    "label_changes": "labels of a study of 0.2.0 whose status changed when their sources were recorded",
    "batch_judges": "a run that a batch tests; all runs of a batch share one significance level",
    "guideline_changes": "guidelines of a batch that were clarified: the hashes of the old and the new text, reason. Append-only",
    "corrections": "a value that a corrected file changed: the old value, the new value, and the row of the file. Append-only",
    "corrected_units": "a unit whose text was corrected, and when: labels that were given before are for the old text. Append-only",
    "given_for_corrected": "labels of one person and source for a corrected unit that were given before the time of the "
    "correction, but for the corrected text, because their study had this text already. A merge of studies adds them. Append-only",
    "jobs": "a run's job for a provider's batch service: model, limits, state",
    "job_parts": "a request file of a job: its sha256, its id at the provider, state",
    "job_requests": "a unit in a job: the line of the request file, the upper bounds of tokens and cost, state",
    "drafts": "texts that were typed and not stored",
    "exposures": "what a person was shown of a unit, and when. Append-only",
}


def pages() -> dict[str, str]:
    """Path below docs/ -> the page as Markdown."""
    import annotate.cli
    import judge.cli
    from judge.prompts.manual import page

    return {
        "reference/judge.md": _commands(judge.cli.main, "judge"),
        "reference/annotate.md": _commands(annotate.cli.main, "annotate"),
        "reference/tasks.md": _tasks(),
        "reference/task-files.md": page(),
        "reference/formats.md": _formats(),
        "reference/json.md": _documents(),
        "reference/schema.md": _tables(),
    }


def on_config(config: Any) -> Any:
    """mkdocs has read its file: pages that its menu does not have come at the menu's end, so that none is lost."""
    listed = set(re.findall(r"[\w/-]+\.md", json.dumps(config.nav)))
    rest = sorted(p.name for p in (ROOT / "docs").glob("*.md") if p.name not in listed)
    if rest:
        config.nav.append({"More": rest})
    return config


def on_files(files: Any, config: Any) -> Any:
    """mkdocs asks for the files of the site."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def _commands(program: click.Command, name: str) -> str:
    parts = [
        f"# {name}",
        f"Every command of `{name}`, with every option. Generated from the program.",
    ]
    for words, command in commands(program, (name,)):
        context = click.Context(
            command,
            info_name=" ".join(words),
            terminal_width=WIDTH,
            max_content_width=WIDTH,
            show_default=program.context_settings.get("show_default"),
        )
        context.meta[SHOW_ALL] = True
        level = "##" if len(words) < 3 else "###"
        parts.append(f"{level} {' '.join(words)}\n\n```text\n{command.get_help(context).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def commands(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words, the groups too."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (member := command.get_command(context, name)) is not None:
                yield from commands(member, (*words, name))


def _tasks() -> str:
    from judge.prompts import load_task

    names = sorted({p.name.split(".")[0] for p in (ROOT / "prompts").glob("*.v*.md")})
    parts = [
        "# Shipped tasks",
        "What each task asks, of what, with which labels. Generated from the files in `prompts/`.",
    ]
    for name in names:
        spec = load_task(name).spec
        told = [f"## {name}", f"{spec.title}", f"Unit: {spec.unit}. Inputs: {', '.join(spec.inputs)}."]
        for question in spec.questions:
            told.append(f"**{question.field}** ({question.level}): {question.ask}")
            rows = [f"| `{_cell(label.value)}` | {_cell(label.meaning)} |" for label in question.labels or ()]
            if rows:
                told.append("\n".join(["| label | means |", "|---|---|", *rows]))
        told += [f"Derived: `{field}` from `{made.source}`." for field, made in (spec.derive or {}).items()]
        if spec.citation is not None:
            told.append(
                f"From: {spec.citation.paper} ({spec.citation.year})"
                + (f", {spec.citation.where}." if spec.citation.where else ".")
            )
        parts += told
    return "\n\n".join(parts) + "\n"


def _formats() -> str:
    from judge.importers import base

    parts = [
        "# Import formats",
        "What `judge items import FORMAT` reads, and which gold labels it makes. Generated from the modules that read them.",
    ]
    for name in base.names():
        module = base.get(name)
        told = inspect.cleandoc(module.__doc__ or "")
        parts.append(f"## {name}\n\n```text\n{told}\n```")
    return "\n\n".join(parts) + "\n"


def _cell(text: Any) -> str:
    return re.sub(r"([|<])", r"\\\1", str(text)).replace("\n", " ")


def _documents() -> str:
    parts = [
        "# JSON documents",
        "What `--json` prints, one document on stdout with its `schema`. Generated from the JSON Schemas that the tests hold "
        "every document against. A dot goes into an object, `[]` into a list; what is in no bracket is always there.",
    ]
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text("utf-8"))
        if path.stem == "shared":
            continue
        parts.append(f"## adjudge/{path.stem}/1\n\n" + _rows(schema, schema, path.stem))
    shared = json.loads((SCHEMAS / "shared.json").read_text("utf-8"))
    parts.append("## Shapes that several documents share")
    for name, one in shared["$defs"].items():
        body = _rows(one, shared, name) if "properties" in one else f"{_type(one)}"
        parts.append(f"### {name}\n\n{body}")
    return "\n\n".join(parts) + "\n"


def _rows(schema: Mapping[str, Any], root: Mapping[str, Any], name: str) -> str:
    # Alternatives of one object repeat its keys with less to say; the last is the whole shape.
    rows = [f"| {key} | {kind} |" for key, kind in dict(_keys(schema, root, "", ())).items()]
    return "\n".join(["| key | is |", "|---|---|", *rows]) if rows else _type(schema)


def _keys(
    schema: Mapping[str, Any], root: Mapping[str, Any], at: str, seen: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    required = set(schema.get("required", ()))
    for name, one in schema.get("properties", {}).items():
        key = f"{at}{name}"
        yield (f"`{key}`" if name in required or not required else f"[`{key}`]"), _type(one)
        for inner, suffix, ref in _inside(one, root):
            if ref is None or ref not in seen:
                yield from _keys(inner, root, f"{key}{suffix}.", (*seen, ref) if ref else seen)


def _inside(
    one: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], str, str | None]]:
    """The objects that a key holds, with `[]` for each list on the way; shared shapes have their own section."""
    ref = one.get("$ref")
    if ref is not None:
        if ref.startswith("#/$defs/"):
            found = root["$defs"][ref.rpartition("/")[2]]
            yield from ((inner, suffix, ref) for inner, suffix, _ in _inside(found, root))
        return
    for choice in (*one.get("anyOf", ()), *one.get("oneOf", ())):
        yield from _inside(choice, root)
    if "properties" in one:
        yield one, "", None
    if isinstance(one.get("items"), Mapping):
        yield from ((inner, f"[]{suffix}", found) for inner, suffix, found in _inside(one["items"], root))


def _type(one: Mapping[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})" if one["$ref"].startswith("shared.json") else name
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        return " or ".join("null" if v is None else f"`{v}`" for v in one["enum"])
    choices = [*one.get("anyOf", ()), *one.get("oneOf", ())]
    if choices:
        return " or ".join(dict.fromkeys(map(_type, choices)))
    kinds = one.get("type", "anything")
    words = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array" and isinstance(one.get("items"), Mapping):
            words.append(f"list of {_type(one['items'])}")
        elif kind == "object" and isinstance(one.get("additionalProperties"), Mapping):
            words.append(f"mapping to {_type(one['additionalProperties'])}")
        else:
            words.append({"array": "list", "string": "text", "integer": "whole number"}.get(kind, kind))
    return " or ".join(words)


def _tables() -> str:
    from annotate.store import open_study
    from judge.store import Store

    parts = [
        "# The study's schema",
        "One SQLite file (`-d FILE` or `JUDGE_DB`; default `study.db`) that `sqlite-utils` and Datasette open as it is. Times are "
        "UTC in ISO 8601, JSON columns hold valid JSON. Schemas change by named migrations that are only added to: a study of "
        "version 0.2.0 or later is brought up to date when it is opened. Generated from an empty study.",
    ]
    with TemporaryDirectory() as folder:
        Store.open(Path(folder) / "study.db").close()
        store = open_study(Path(folder) / "study.db")
        found = store.conn.execute(
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY type, name"
        ).fetchall()
        views = [name for name, kind in found if kind == "view"]
        for name in [name for name, kind in found if kind == "table"]:
            columns = store.conn.execute(f"SELECT name, type, pk FROM pragma_table_info('{name}')").fetchall()
            if name.startswith("_"):
                continue
            keys = {
                row[0]: f"{row[1]}.{row[2] or row[0]}"
                for row in store.conn.execute(
                    f'SELECT "from", "table", "to" FROM pragma_foreign_key_list(\'{name}\')'
                )
            }
            rows = [
                f"| `{c}` | {kind} | {'key' if pk else ''}{' ' if pk and c in keys else ''}{('→ ' + keys[c]) if c in keys else ''} |"
                for c, kind, pk in columns
            ]
            parts.append(
                "\n".join(
                    [
                        f"## {name}",
                        "",
                        TABLES[name],
                        "",
                        "| column | type | |",
                        "|---|---|---|",
                        *rows,
                    ]
                )
            )
        store.close()
    parts.append(f"## Views\n\nFor reading: {', '.join(f'`{v}`' for v in views)}. `unit_texts` is what `--where` sees, "
                 "`latest_judgements` the last attempt of each unit, `batch_labels` one label with batch, annotator, layer and seconds.")  # fmt: skip
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the pages below docs/."""
    for path, text in pages().items():
        target = ROOT / "docs" / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
