"""Labels in the study to measures with their n, coverage and interval. One file per question asked."""
