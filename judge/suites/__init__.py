"""The papers: each reads a study and computes its measures with `judge.scores`. There is one file per paper.

A paper is a module with a `PAPER = Paper(...)` (`judge.suites.paper`), listed in `judge.suites.papers`; `judge score
NAME` and `judge suite NAME` then offer it, with its options, its parts and its help. `compute_scores(study)` does everything:

    def compute_scores(study: PaperStudy) -> list[Score]:
        chosen = study.answering("qa_answer", "all")              whose answers: --system, --condition; or how to make some
        answers = study.rows.answers(chosen)                      one row per answer
        labels = study.labels("eligibility", chosen)              one row per unit, from the chosen run
        none = study.generated("qa_answer", "none")               one row per item, with the system's answer
        study.check()                                             raises Incomplete with the commands to type
        return garage.factuality(answers.join(...), ...)          judge.scores does the arithmetic

A study is a `Reading` (options, notes, missing steps; `judge.suites.reading`) with two parts: `study.rows` (the requested
rows: items, passages, answers, gold, rankings; `judge.suites.queries`), and the labels. The labels come from judges' runs
(`judge.suites.run_labels`) or, where a judge is compared with people, from people (`judge.suites.people`). The same function
computes both sides.

`compute_scores` is the only declaration. If it requests data that the study lacks, a `Step` is recorded (a run to make, answers
to generate, ...) and an empty table is returned, so that one pass finds all steps that can be taken now. `study.check()` stops
at the point where the missing data are needed. `judge score` prints the steps as commands; `judge suite` performs them and
reads the study again.
Rules for `compute_scores`:
    vectorised       tables are DataFrames; nothing loops over rows
    unit ids         `unit_id` is the unit's number in the study (an int); `name` is only read on request
    nothing dropped  a unit without a label stays in its table with a status: unparsed, refused, truncated, failed, or
                     "not judged"; the scores count them
    options          `study.option("name")`, always a string; `study.part("name")`: was this part requested?
    notes            `study.note(text)` for anything a reader must know besides the numbers (the options used are always printed)
    light imports    no numpy, pandas or judge.scores at the top of a paper's file: `--help` reads it. Import in the function
"""
