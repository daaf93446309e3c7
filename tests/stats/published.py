"""Published tables, as printed in their papers, and how to turn them into Ratings."""

import numpy as np

from judge.stats import Ratings

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 4 observers x 12 units, . = missing.
# The same table is `raw4raters` in Gwet's irrCAC.
KRIPPENDORFF = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")

# Fleiss 1971, Psychological Bulletin 76(5), table 1: 30 patients x 5 diagnoses, counts of 6 psychiatrists.
FLEISS = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""

# Cohen 1968, table 1: shares of 200 units, in percent.
COHEN = ((44, 7, 9), (5, 20, 5), (1, 3, 6))

# Dawid & Skene 1979, Applied Statistics 28(1), table 1: 45 patients, 5 anaesthetists, the first three times.
DAWID_SKENE = """
111 1 1 1 1|333 4 3 3 4|112 2 1 2 2|222 3 1 2 1|222 3 2 2 2|222 3 3 2 2|122 2 1 1 1|333 3 4 3 3|222 2 2 2 3
232 2 2 2 3|444 4 4 4 4|222 3 3 4 3|111 1 1 1 1|222 3 2 1 2|121 1 1 1 1|111 2 1 1 1|111 1 1 1 1|111 1 1 1 1
222 2 2 2 1|222 1 3 2 2|222 2 2 2 2|222 2 2 2 1|222 3 2 2 2|221 2 2 2 2|111 1 1 1 1|111 1 1 1 1|232 2 2 2 2
111 1 1 1 1|111 1 1 1 1|112 1 1 2 1|111 1 1 1 1|333 3 2 3 3|111 1 1 1 1|222 2 2 2 2|222 3 2 3 2|433 4 3 4 3
221 2 2 3 2|232 3 2 3 3|333 3 4 3 2|111 1 1 1 1|111 1 1 1 1|121 2 1 1 1|232 2 2 2 2|121 1 1 1 1|222 2 2 2 2
"""


def krippendorff_2011() -> Ratings:
    codes = [[-1 if mark == "." else int(mark) - 1 for mark in row] for row in KRIPPENDORFF]
    return Ratings.from_codes(np.array(codes).T, list("12345"), list("ABCD"))


def fleiss_1971() -> Ratings:
    """Which psychiatrist said what is not known; any filling of six columns has the same counts."""
    codes = [np.repeat(np.arange(5), [int(n) for n in row]) for row in FLEISS.split()]
    names = ["depression", "personality", "schizophrenia", "neurosis", "other"]
    return Ratings.from_codes(np.array(codes), names, list("abcdef"))


def two_annotators(cells: tuple[tuple[int, ...], ...], times: int = 1) -> Ratings:
    """A table of two annotators from its confusion matrix."""
    matrix = np.array(cells) * times
    first, second = np.divmod(np.repeat(np.arange(matrix.size), matrix.ravel()), len(matrix))
    return Ratings.from_codes(np.column_stack([first, second]), list("abcde")[: len(matrix)], ["x", "y"])


def dawid_skene_1979() -> np.ndarray:
    """Counts, patients x anaesthetists x classes."""
    counts = np.zeros((45, 5, 4))
    for i, patient in enumerate(DAWID_SKENE.strip().replace("\n", "|").split("|")):
        for a, marks in enumerate(patient.split()):
            for mark in marks:
                counts[i, a, int(mark) - 1] += 1
    return counts
