"""List the data that must be added to an imported data set before its paper's scores can be computed.

For example, answers under some conditions, the ranking of a system, or human answers may be missing.
"""

from collections.abc import Iterable

from judge.commands import command
from judge.importers.conditions import DOCUMENT, name_of
from judge.paper_files import read_declarations
from judge.retrieve import NAME
from judge.store.listing import formats_of, list_outputs
from judge.store.study import Store

NEEDED = {
    name: declaration["needed"]
    for name, declaration in read_declarations().items()
    if "needed" in declaration
}
"""Maps a data set's format to the conditions that its paper requires.

Each condition is given by its full name, or by the beginning of its name.
"""
_INSTEAD = {"mixed": "retrieved-", "plain": "top:"}
_SHOWN = {"top-": "top-1 or top-5"}


def lacks_human_answers(dataset: str) -> str:
    """Return a message about the GaRAGe scores that need human answers.

    The message also says how to import the published answers.
    """
    return (
        f"'{dataset}' has no human answers, so eligibility has no baseline and attribution has no "
        "reference; to import the published answers: "
        + command(
            "judge systems import FILE --map id=sample_id --map text=answer_generate --system human",
            "--dataset",
            dataset,
        )
    )


def lacking(store: Store, datasets: Iterable[str]) -> list[str]:
    """Return one message for each missing part of these data sets."""
    missing_parts = []
    for dataset in sorted(set(datasets)):
        formats = formats_of(store, dataset)
        there: dict[str, list[str]] = {}
        for row in list_outputs(store, dataset):
            there.setdefault(str(row["system"]), []).append(str(row["condition"]))
        if "garage" in formats and "human" not in there:
            missing_parts.append(lacks_human_answers(dataset))
        for name in sorted(formats & NEEDED.keys()):
            for system, conditions in there.items():
                paper_names = [_name(name, condition) for condition in conditions]
                missing = [_SHOWN.get(c, c) for c in NEEDED[name] if not _has(c, paper_names)]
                # Human answers do not have the conditions of a system.
                if missing and system != "human":
                    if "ranking" in missing and (
                        others := _find_unowned_rankings(store, dataset, set(there))
                    ):
                        named = ", ".join(f"'{name}'" for name in others)
                        missing[-1] += (
                            f" (there is no system called {named}; use --system to give a ranking the name "
                            "of its system)"
                        )
                    missing_parts.append(
                        f"'{system}' lacks {', '.join(missing)} for {name}; it has {', '.join(dict.fromkeys(paper_names))}"
                    )
    return missing_parts


def _find_unowned_rankings(store: Store, dataset: str, systems: set[str]) -> list[str]:
    """Return the names of the data set's imported rankings that do not match any system.

    A ranking is named after its TREC tag. A tag cannot contain spaces, so it may differ from the system's
    name.
    """
    query = "SELECT DISTINCT name FROM rankings WHERE name <> ? AND item_id IN (SELECT item_id FROM items WHERE dataset = ?)"
    return [str(row[0]) for row in store.conn.execute(query, [NAME, dataset]) if row[0] not in systems]


def _name(paper: str, condition: str) -> str:
    """Return the name that a paper uses for a condition.

    RAGuard uses the name `oracle` for outputs about single documents.
    """
    return "oracle" if condition == DOCUMENT else name_of(paper, condition)


def _has(wanted: str, conditions: list[str]) -> bool:
    # MIRAGE and URAG can also be scored with the passages from the system's own retriever.
    starts = (wanted, _INSTEAD.get(wanted, wanted))
    return any(c.startswith(starts) for c in conditions)
