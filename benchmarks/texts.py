"""Words that made-up passages are drawn from."""

WORDS = [
    "trial",
    "patients",
    "dose",
    "effect",
    "measured",
    "cohort",
    "placebo",
    "outcome",
    "risk",
    "vaccine",
    "study",
    "results",
    "significant",
    "increase",
    "group",
    "control",
    "reported",
    "weeks",
    "treatment",
    "mean",
]
