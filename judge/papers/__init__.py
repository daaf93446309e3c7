"""The papers. Each paper is one module and one declaration: NAME.py reads a study and computes the measures, and
NAME.toml has everything that can be said without computing (options, parts, conditions, tables, figures, published numbers).

`judge.papers.engine.papers` reads the declarations. The commands `judge score NAME` and `judge suite NAME` then accept the
paper. `compute_scores(study)` does all the work:

    def compute_scores(study: PaperStudy) -> list[Score]:
        chosen = study.answering("qa_answer", "all")              the answers to score; or a step that generates them
        answers = study.rows.answers(chosen)                      one row per answer
        labels = study.labels("eligibility", chosen)              one row per unit, from the chosen run
        none = study.read_generated("qa_answer", "none")          one row per item, with the system's answer
        study.check()                                             raises Incomplete with the commands to type
        return factuality(answers.join(...), ...)                 a function of the same module does the arithmetic

A study is a `Reading` (options, notes and missing steps; `judge.papers.engine.reading`) with two additions: `study.rows` (the
requested items, passages, answers, gold labels and rankings; `judge.papers.engine.queries`) and labels. The labels come from judges'
runs (`judge.papers.engine.run_labels`) or, to compare a judge with people, from people (`judge.papers.engine.people`). The same function
computes the scores from either source.

If `compute_scores` requests data that the study lacks, the study records a `Step` (such as a run to start, or answers
to generate) and returns an empty table. One pass therefore finds all steps that can be performed now.
`compute_scores` calls `study.check()` where it needs the data; if steps were recorded, this raises `Incomplete`.
`judge score` prints the steps as commands; `judge suite` performs them and reads the study again.

Rules for `compute_scores`:
    vectorised       tables are DataFrames; no code loops over rows
    unit ids         `unit_id` is the unit's number in the study (an int); the column `name` is only read on request
    nothing dropped  a unit without a label stays in its table with a status: unparsed, refused, truncated, failed, or
                     "not judged"; the scores count these units
    options          `study.option("name")` is always a string; `study.part("name")` is True if the part was requested
    notes            `study.note(text)` for anything that a reader must know besides the numbers (options are always printed)
"""
