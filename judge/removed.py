"""Options and commands of earlier versions, each with its replacement.

`judge.console.Command` prints a line of these tables instead of click's "No such option". A value is an option to type
(`--max 5usd`), a whole command, or a sentence if there is nothing to type.
"""

from collections.abc import Iterator

_OPTIONS: dict[str, str] = {
    "annotate open, annotate adjudicate --keymap": "Your keys are in adjudge/keymap.toml of the configuration folder.",
    "annotate open, annotate adjudicate --theme": "The menu (Ctrl+P) has the themes; the last one is kept.",
    "annotate watch --every": "The file is read every 2 seconds.",
    "annotate push --run": "--with-predictions RUN",
    "annotate annotators list, annotate conflicts list, annotate quarantine list, annotate verify --csv": "--json",
    "judge items show, judge answers show, judge tasks show, judge models show, judge jobs show --csv": "--json",
    "judge systems list --csv": "--json",
    "annotate batches new --equal-parts": "--draw equal-parts",
    "annotate batches new --queue": "--draw least-sure",
    "annotate batches new --from-route": "--draw route",
    "annotate batches new --for": "--draw ppi",
    "annotate batches new --prompts": "TASK may be the path of a task file.",
    "annotate batches policy --majority": "annotate batches policy NAME majority",
    "annotate batches policy --none": "annotate batches policy NAME none",
    "annotate import --unit": "--option unit=COLUMN",
    "annotate import --label": "--option label=COLUMN",
    "annotate import --annotator-column": "--option annotator=COLUMN",
    "annotate import --field-column": "--option field=COLUMN",
    "annotate import --map-annotator": "--map-label annotator:OLD=NEW",
    "annotate export --out": "--output FILE",
    "judge score --model": "--run MODEL",
    "judge score --correct-by": "The labels that correct a judge are named with --reference WHO.",
    "judge score --batch": "annotate report --batch NAME",
    "judge score --rationale": "--run RUN",
    "judge score, annotate agreement, annotate report --junit": "--output FILE.xml",
    "judge score, annotate report --summary": "--output FILE",
    "judge score, judge suite, annotate agreement --csv": "--output FILE.csv",
    "judge score --sample": "Label a sample with judge run -n N --sample SEED, then score it with --partial.",
    "judge score, judge suite, judge calibrate, judge panel --replicates": "Intervals use 1,000 resamples.",
    "judge score, judge suite, judge calibrate, judge panel, annotate agreement --seed": "Intervals use the seed 0.",
    "judge score --stage": "The last stage of a ranking is read.",
    "judge score --unanswered": "A missing answer is a failure of the system.",
    "judge score raguard --examples": "The examples are those of the system's runs, else a true and a false claim.",
    "judge score raguard --outside": "An answer outside the options is wrong.",
    "judge score garage --citations": "Citations are compared with the human answers', else with the marked passages.",
    "judge score garage --partial-support": "Partial support counts as 0.",
    "judge score garage --density-cuts": "Density is low below 1/3, medium below 2/3, else high.",
    "judge score mirage --reading": "The system answers with the task mirage_answer.",
    "judge score mirage --match --word-boundary": "An answer is right if it holds an alias.",
    "judge score mirage --k": "Retrieval is measured at 1, 3 and 5.",
    "judge score urag --reading": "The system answers with the task urag_choice.",
    "judge score urag --exchange": "--aware wrong-second",
    "judge score urag --split --calibration --split-seed": "The file's split is used, else half of the questions calibrate.",
    "judge score confirmation --context": "--condition NAME",
    "judge score confirmation --consensus": "Pairs are kept from 73 % of the annotators on.",
    "judge score confirmation --unchecked": "Pairs that nobody checked are kept.",
    "judge score confirmation --plot": "--output FILE.html",
    "judge score confirmation --claims": "--output FILE.csv",
    "judge score nuggets --people": "The majority of the annotators ranks the systems beside the judge.",
    "judge score nuggets --topics": "--output FILE.csv",
    "judge score retrieval --k": "--measure nDCG@5",
    "judge score retrieval --qrels": "Gold or the --reference is used, and the judge's labels if there are some.",
    "judge score retrieval --field": "The field is the one that gold has, else the task's first with grades.",
    "judge score retrieval --relevant-from": "--measure 'P(rel=2)@10'",
    "judge score retrieval --ranking": "--system NAME",
    "judge score faithfulness --gamma": "The length penalty ends at 10 facts; factscore_unpenalised has none.",
    "judge score faithfulness --uncited": "An answer without citations has no precision.",
    "judge score conformal --truth": "--reference WHO",
    "judge score conformal --by-score": "Ambiguous units are those of LAC.",
    "judge score conformal --convention": "The quantile is exact.",
    "judge score conformal --calibration --split-seed": "Half of the questions calibrate.",
    "judge score compare --set": "Each paper is compared with its default options.",
    "judge score compare --sample-seed": "The difference rests on the units that both have labelled.",
    "judge suite --by": "Print it with judge score PAPER, which has --by.",
    "judge suite --interval": "Print it with judge score PAPER, which has --interval.",
    "judge suite --confidence": "Print it with judge score PAPER, which has --confidence.",
    "judge suite --label-order --guidelines --max-output-tokens --prices --timeout --same-model": "Make the run with judge run: a suite reads it.",
    "annotate agreement, annotate report, annotate plan --unit --annotator --label": "Columns are recognised by their names: unit, annotator, label, question.",
    "annotate agreement, annotate report, annotate plan --run": "--judge RUN",
    "annotate agreement, annotate report, annotate plan --order": "--level ordinal:LOW,HIGH",
    "annotate agreement --no-pairwise": "Pairs are always listed; many are summarised.",
    "annotate agreement --per-class": "--measure per_class",
    "annotate agreement --dawid-skene": "--measure dawid_skene",
    "annotate agreement --alt-test": "--measure alt_test",
    "annotate agreement --epsilon": "annotate report --epsilon X",
    "annotate agreement --least-others": "annotate report --least-others 2",
    "annotate agreement --replicates": "Intervals use 2,000 resamples.",
    "annotate agreement --summary": "--output FILE.md",
    "annotate report --format": "--output FILE.html (or .md, .tex, .json, .csv)",
    "annotate report --limit": "A report lists at most 50 disagreements of each judge.",
    "annotate report --probabilities": "A column probabilities is recognised by its name.",
    "annotate report --require-trust": "--fail-under verdict=trust",
    "annotate report --allow-part": "--fail-under verdict=part",
    "annotate plan --pair": "--annotators A,B",
    "annotate plan --least-others": "A plan for a verdict counts units that one other person labelled.",
    "annotate plan --confidence": "Planned intervals are 95 % ones.",
    "--max-cost": "--max 5usd",
    "--max-tokens": "--max 1Mtokens",
    "--max-time": "--max 2h",
    "--no-temperature": "--temperature none",
    "--replicas --workers --worker-gpus --worker-command": "--base-url URL (once for each server)",
    "--orders": "--label-order 3",
    "--allow-host": "--allow HOST",
    "--allow-env": "--allow env:NAME",
    "--allow-folder": "--allow FOLDER",
    "judge run, judge answers generate --dry-run": "--estimate",
    "judge run --engine --worker-cpus": "--base-url URL (once for each server)",
    "judge run --log-json": "judge runs watch RUN --json",
    "judge run --poll": "Batches are looked at once a minute.",
    "judge run --prompts": "judge run ./FOLDER/TASK.v1.md -m MODEL",
    "judge runs watch --every": "The file is read every 2 seconds.",
    "judge runs watch --failures": "The last three failures are shown.",
    "judge pairs list --consensus": "Pairs are kept from 73 % of the annotators on.",
    "judge distractors export --name": "The data set is called distractors.",
    "judge distractors export --calibration": "Half of the questions calibrate.",
    "judge distractors export --force": "Name another file, or delete the old one first.",
    "judge answers generate --context-seed": "The noise is always drawn with the same seed.",
    "judge drift --junit": "--output drift.xml",
    "judge drift, judge probe, judge route --summary": "--output summary.md",
    "judge probe --junit": "--output probe.xml",
    "judge probe --sample": "Units are always drawn with the same seed.",
    "judge route --junit": "--output route.xml",
    "judge route --dry-run": "A route only adds a run, which no score reads unless it is named.",
    "judge calibrate --dry-run": "A calibration only adds a run, which no score reads unless it is named.",
    "judge drift --temperature --seed --answers --rationale --label-order": "--run RUN (a stored run with this setting)",
    "judge drift --guidelines --examples --max-output-tokens": "--run RUN (a stored run with this setting)",
    "judge probe --temperature --answers --label-order --max-output-tokens": "--run RUN (a stored run with this setting)",
    "judge improve --temperature --seed --max-output-tokens": "--run RUN (a stored run with this setting)",
    "judge models show --timeout": "Its one question may take two minutes.",
    "judge improve --recipe": "--output TASK.recipe.yaml",
}
"""Commands (or beginnings of them) between commas, and their options: what to type instead, or why there is nothing to type.

Options that are listed without a command apply to every command that has their replacement.
"""


def _each() -> Iterator[tuple[str, str]]:
    for removed, instead in _OPTIONS.items():
        commands, dashes, options = removed.partition("--")
        for command in commands.split(","):
            for option in f"{dashes}{options}".split():
                yield f"{command.strip()} {option}".strip(), instead


REMOVED_OPTIONS = dict(_each())
"""Command and option, or the option alone -> what to type instead: `judge suite --replicates`."""
REMOVED_COMMANDS: dict[str, str] = {
    "annotate batches list": "annotate batches show",
    "annotate batches labels": "annotate export NAME --labels -o FILE.csv",
    "annotate batches guidelines": "annotate batches show NAME --guidelines",
    "annotate batches next": "annotate batches extend NAME",
    "annotate batches reopen": "annotate batches close NAME --undo",
    "annotate batches add": "annotate batches assign NAME --to A,B",
    "annotate batches hand-over": "annotate batches assign NAME --from A --to B",
    "annotate batches pack": "annotate export NAME --for PERSON -o FILE.db",
    "annotate batches merge": "annotate import FILE.db",
    "judge items list": "judge items show",
    "judge answers list": "judge answers show",
    "judge tasks list": "judge tasks show",
    "judge models list": "judge models show",
    "judge models check": "judge models show MODEL",
    "judge answers import": "judge systems import FILE",
    "judge rankings import": "judge systems import FILE",
    "judge rankings list": "judge systems list",
    "judge jobs list": "judge jobs show",
    "judge jobs write": "judge run TASK -m MODEL --offline FOLDER",
    "judge jobs submit": "judge run TASK -m MODEL --batch",
    "judge jobs fetch": "judge jobs read JOB",
    "judge jobs status": "judge jobs show JOB",
    "judge estimate": "judge run TASK -m MODEL --estimate",
}
"""By the command with the program's name."""
_TYPED = ("-", "judge ", "annotate ")
"""Prefixes of values that are to be typed. All other values are sentences."""


def removed_option(command: str, option: str, has: set[str]) -> str | None:
    """Return the error for an option that `command` no longer has, or None for one that it never had.

    `has` contains the options of the command, because a replacement that the command lacks is of no use.
    """
    words = command.split()
    # The longest beginning first, so that an entry for one command precedes an entry for its group.
    keys = [" ".join([*words[:n], option]) for n in range(len(words), -1, -1)]
    for key in keys:
        instead = REMOVED_OPTIONS.get(key)
        # Commands without the replacement never had the option: there click's own error is right.
        if instead is None or (key == option and instead.startswith("-") and instead.split()[0] not in has):
            continue
        return f"{command} {option} was removed. {_advice(instead)}"
    return None


def removed_command(command: str) -> str | None:
    """Return the error for a command that no longer exists, or None for a command that never existed."""
    instead = REMOVED_COMMANDS.get(command)
    return None if instead is None else f"{command} was removed. {_advice(instead)}"


def _advice(instead: str) -> str:
    return f"Type instead: {instead}" if instead.startswith(_TYPED) else instead
