"""A Parquet data set that Hugging Face `datasets` can load: a folder with a card, units and labels.

    load_dataset("DIR", "units"); load_dataset("DIR", "labels")     locally, or after uploading the folder

It needs the extra `adjudge[parquet]`.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import yaml

from annotate.exchange.base import ExchangeUnit, Export, Out
from annotate.exchange.formats._own import COLUMNS, label_rows
from annotate.exchange.units import PASSAGE_KEYS
from annotate.guidelines import markdown
from judge.errors import MissingExtra
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task

NAME = "parquet"
HELP = "Parquet with a data set card, for Hugging Face: units and, with --labels, also labels"
WRITES = "folder"
OPTIONS = {
    "licence": "export: licence of the texts as an identifier of Hugging Face, e.g. cc-by-4.0 (default: other)"
}
ROW_GROUP = 1000
TYPES = {"repeat": "int32", "blind": "bool", "seconds": "float64", "weight": "float64"}
"""The label columns that are not strings."""


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write `data/units.parquet`, `data/labels.parquet` if there are labels, and `README.md` with the features."""
    # pyarrow is optional, because it takes 165 MB.
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as e:
        raise MissingExtra("--to parquet needs pyarrow: pip install 'adjudge[parquet]'") from e
    tables: dict[str, tuple[dict[str, Any], Iterable[Mapping[str, Any]]]] = {
        "units": (_unit_columns(export.task), ({"unit": u.unit_id, **_cells(u)} for u in export.units()))
    }
    if export.labels:
        tables["labels"] = (_label_columns(), map(_label, label_rows(export)))
    sizes: dict[str, int] = {}
    for name, (columns, rows) in tables.items():
        schema = pyarrow.schema([(column, _arrow(pyarrow, kind)) for column, kind in columns.items()])
        file = f"data/{name}.parquet"
        out.rows[file] = sizes[file] = 0
        with out.convert_errors(), pyarrow.parquet.ParquetWriter(out.place(file), schema) as writer:
            # Rows are written in groups, so that a batch of 100,000 units does not fill the memory.
            remaining = iter(rows)
            while group := list(islice(remaining, ROW_GROUP)):
                table = pyarrow.Table.from_pylist(group, schema)
                writer.write_table(table)
                out.rows[file] += len(group)
                sizes[file] += table.nbytes
    with out.open("README.md") as file_:
        file_.write(_card(export, {n: c for n, (c, _) in tables.items()}, out.rows, sizes, options))


def _unit_columns(task: Task) -> dict[str, Any]:
    kinds: dict[str, Any] = {"unit": "string"}
    for name in task.input_names:
        if name in LIST_INPUTS:
            kinds[name] = [dict.fromkeys(PASSAGE_KEYS, "string")]
        elif name == "options":
            kinds[name] = [{"letter": "string", "text": "string"}]
        else:
            kinds[name] = ["string"] if name == "reference_answers" else "string"
    return kinds


def _cells(unit: ExchangeUnit) -> dict[str, Any]:
    # Letters differ from item to item, so options are a list of pairs; a struct would need one column for each
    # letter.
    return {
        name: [{"letter": k, "text": str(v)} for k, v in value.items()]
        if isinstance(value, Mapping)
        else value
        for name, value in unit.inputs.items()
    }


def _label_columns() -> dict[str, Any]:
    kinds: dict[str, Any] = {name: TYPES.get(name, "string") for name in COLUMNS}
    kinds["sources"] = ["string"]
    return kinds | {"spans": [{"input": "string", "start": "int32", "end": "int32"}]}


def _label(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "spans": [{"input": n, "start": a, "end": b} for n, a, b in row["spans"]]}


def _arrow(pyarrow: Any, kind: Any) -> Any:
    if isinstance(kind, list):
        return pyarrow.list_(_arrow(pyarrow, kind[0]))
    if isinstance(kind, dict):
        return pyarrow.struct([(name, _arrow(pyarrow, k)) for name, k in kind.items()])
    return {"bool": pyarrow.bool_(), "int32": pyarrow.int32(), "float64": pyarrow.float64()}.get(
        kind, pyarrow.string()
    )


def _feature(name: str, kind: Any) -> dict[str, Any]:
    """Return the description of a column for the data set card."""
    if isinstance(kind, list):
        inner = kind[0]
        if isinstance(inner, dict):
            return {"name": name, "list": [_feature(n, k) for n, k in inner.items()]}
        return {"name": name, "list": inner}
    return {"name": name, "dtype": kind}


def _card(
    export: Export,
    tables: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, int],
    sizes: Mapping[str, int],
    options: Mapping[str, str],
) -> str:
    licence = options.get("licence", "other")
    head = {
        "license": licence,
        "pretty_name": f"{export.task.spec.title} ({export.batch})",
        "tags": ["adjudge", "human-annotation", "retrieval-augmented-generation"],
        "configs": [
            {"config_name": name, "data_files": [{"split": "train", "path": f"data/{name}.parquet"}],
             **({"default": True} if name == "units" else {})}
            for name in tables
        ],
        "dataset_info": [
            {"config_name": name, "features": [_feature(n, k) for n, k in columns.items()],
             "splits": [{"name": "train", "num_examples": rows[file], "num_bytes": sizes[file]}]}
            for name, columns in tables.items()
            for file in [f"data/{name}.parquet"]
        ],
    }  # fmt: skip
    parts = [
        f"# Batch {export.batch} of {export.task.name}",
        f"Units that people label with the task below. `units` has {rows['data/units.parquet']:,} rows, one per unit.",
    ]
    if "labels" in tables:
        parts.append(
            f"`labels` has {rows['data/labels.parquet']:,} rows, one per unit, annotator, question and layer. The "
            "layer `first` contains labels that were given blind, and `assisted` labels with visible suggestions. Labels in "
            "`undeclared` are not known to be either, and labels in `revised` were given after the judge's label was shown. "
            "A row without a label was skipped, or has only a note or evidence. Rows with the role `training` or `attention` "
            "are checks with a known answer, and rows with the role `repeat` are second answers to a unit. `weight` is the "
            "number of units of the study that the unit represents. `spans` are offsets in an input, in code points."
        )
    parts.append(
        "The texts keep the licence of the data they come from"
        + (
            ": name the licence before you publish this folder."
            if licence == "other"
            else f", given as {licence}."
        )
    )
    front = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n" + "\n\n".join(parts) + f"\n\n{markdown(export.task)}\n"
