"""`echo/LABEL`: a provider that answers every unit with LABEL."""

import json

from judge.providers import base
from judge.types import Reply, Request

NEEDS = base.Needs(examples="echo/support", key="ECHO_KEY")


class Provider(base.BaseProvider):
    """One label, said to everything."""

    async def complete(self, request: Request) -> Reply:
        """The label as the task's JSON asks for it."""
        return Reply(json.dumps({"stance": self.name}))
