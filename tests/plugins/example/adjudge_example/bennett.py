"""`bennett_s`: S of Bennett, Alpert and Goldstein (1954): (q p_o - 1) / (q - 1) for two annotators and q labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from judge.stats.coefficients import Pabak


@dataclass(frozen=True)
class BennettS(Pabak):
    """Chance is an even draw among the labels; for any number of labels that is what PABAK became."""

    TITLES: ClassVar[Mapping[str, str]] = {"bennett_s": "Bennett's S"}
    measure: str = "bennett_s"


S = BennettS()
