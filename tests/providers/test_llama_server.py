"""A real llama.cpp server: its label probabilities are those of the same weights in this process."""

import pytest

from judge.providers import base
from judge.providers.tokens import label_distribution
from judge.types import LabelDistribution, Message, Request
from tests.loopback.calls import LABELS
from tests.loopback.process import ServerProcess
from tests.real import require

pytestmark = pytest.mark.real


PAIRS = [
    ("Tea cures colds.", "A trial of 200 people found no effect of tea on colds."),
    ("Water boils at 100 °C at sea level.", "At sea level, water boils at 100 degrees Celsius."),
    ("Cats are bigger than dogs.", "The museum opens at nine on weekdays."),
]


async def test_probabilities_over_http_are_those_of_the_weights_in_this_process() -> None:
    """With the prompt cache off on both sides; the server's are from before its mask, ours from after a bias."""
    require("embedded-model")
    with ServerProcess("llama") as server:
        away = base.get(
            "openai/smollm2", base.Settings(base_url=server.url, options={"body.cache_prompt": "false"})
        )
        here = base.get("llamacpp/smollm2", base.Settings(options={"n_ctx": "1024", "cache_prompt": "false"}))
        await away.open()
        # It answers 200 to guided_choice and structured_outputs, and ignores them.
        assert away.describe()["mask"] == "grammar"
        await here.open()
        for claim, passage in PAIRS:
            # Short, because without the cache each call reads the whole prompt.
            text = f"Claim: {claim}\nPassage: {passage}\nA = supports it, B = refutes it, C = neither.\nAnswer (A, B, C):"
            request = Request("m", (Message("user", text),), 0, codes="ABC")
            distributions: list[LabelDistribution] = []
            for provider in (here, away, away):
                reply = await provider.complete(request)
                distribution, reason = label_distribution(reply.tokens or [], "ABC", LABELS, reply.masked)
                assert distribution is not None, reason
                distributions.append(distribution)
            mine, theirs, again = distributions
            assert theirs.probabilities == pytest.approx(mine.probabilities, abs=1e-4)
            assert again == theirs, "without the cache a repeat is exact"
            assert theirs.outside is not None and 0.05 < theirs.outside < 1.0, (
                "unmasked, it would have no distribution"
            )
        await here.close()
        await away.close()
