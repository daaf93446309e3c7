"""What all papers share: read a study, restrict to shared rows, compare, correct with human labels, write boards."""
