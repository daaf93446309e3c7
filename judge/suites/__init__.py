"""The papers: each reads a study and computes its measures with `judge.scores`. There is one file per paper.

A paper is a module with a `PAPER = Paper(...)` (`judge.suites.paper`), listed in `judge.suites.papers`; `judge score
NAME` and `judge suite NAME` then have it, with its options, its parts and its help. Its `compute_scores(study)` does all:

    def compute_scores(study: PaperStudy) -> list[Score]:
        chosen = study.answering("qa_answer", "all")              whose answers: --system, --condition; or how to make some
        answers = study.rows.answers(chosen)                      one row an answer
        labels = study.labels("eligibility", chosen)              one row a unit, from the run that was chosen
        none = study.generated("qa_answer", "none")               one row an item, what the system answered
        study.check()                                             raises Incomplete with the commands to type
        return garage.factuality(answers.join(...), ...)          judge.scores does the arithmetic

A study is a `Reading` (options, notes, missing steps; `judge.suites.reading`) with two parts: `study.rows` (the rows asked
about: items, passages, answers, gold, rankings; `judge.suites.queries`), and the labels. They are those of judges' runs
(`judge.suites.run_labels`) or, where a judge is compared with people, theirs (`judge.suites.people`): the same function gives
both sides.

`compute_scores` is the only declaration there is. What it asks for and the study lacks is noted as a `Step` (a run to make, answers
to generate, ...) and comes back empty, so that one pass finds all steps that can be typed now; `study.check()` stops
where what follows needs them. `judge score` prints the steps as commands, `judge suite` performs them and reads again.
Rules for `compute_scores`:
    vectorised       tables are DataFrames; nothing loops over rows
    unit ids         `unit_id` is the unit's number in the study (an int), `name` is only read when asked for
    nothing dropped  a unit without a label stays in its table with a status: unparsed, refused, truncated, failed, or
                     "not judged"; the scores count them
    options          `study.option("name")`, always text; `study.part("name")`: was this part asked for?
    notes            `study.note(text)` for what a reader must know beside the numbers (the reading used is printed anyway)
    light imports    no numpy, pandas or judge.scores at the top of a paper's file: `--help` reads it. Import in the function
"""
