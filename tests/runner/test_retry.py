"""Back-off: doubling, capped, jittered in its upper half, and never shorter than what was told."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import KeyProblem, ProviderError, RateLimited, Rejected, ServerFault, Unreachable
from judge.runner.retry import Patience


@given(st.integers(1, 11), st.integers(0, 2**32))
def test_bounds_of_the_wait(tries: int, seed: int) -> None:
    # The n-th wait is drawn from [0.5, 1] * min(30, 0.5 * 2^(n-1)): 0.25 to 0.5 after the first try, and 15 to 30 from
    # the seventh on, because 0.5 * 2^6 = 32 > 30.
    longest = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 5][tries - 1]
    wait = Patience(draw=random.Random(seed)).wait(RateLimited("429"), tries)
    assert wait is not None
    assert longest / 2 <= wait <= longest


def test_waits_differ() -> None:
    patience = Patience(draw=random.Random(1))
    assert len({patience.wait(Unreachable("gone"), 1) for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("error", "most"), [(Unreachable("x"), 6), (ServerFault("x"), 6), (RateLimited("x"), 12)]
)
def test_tries_are_capped(error: ProviderError, most: int) -> None:
    patience = Patience()
    assert patience.wait(error, most - 1) is not None
    assert patience.wait(error, most) is None


@pytest.mark.parametrize("error", [Rejected("x", 400), KeyProblem("x"), ProviderError("x")])
def test_what_cannot_pass_is_not_tried_again(error: ProviderError) -> None:
    assert Patience().wait(error, 1) is None


@pytest.mark.parametrize("kind", [RateLimited, ServerFault])
def test_what_the_server_asked_for_is_kept(kind: type[RateLimited] | type[ServerFault]) -> None:
    assert Patience().wait(kind("x", 12.5), 1) == 12.5
    short = Patience().wait(kind("x", 0.01), 1)
    assert short is not None
    assert short >= 0.25, "a shorter one does not shorten the back-off"


def test_nobody_waits_for_hours() -> None:
    patience = Patience(longest_retry_after=900)
    assert patience.wait(RateLimited("x", 900.0), 1) == 900.0
    assert patience.wait(RateLimited("x", 901.0), 1) is None
