"""A laboratory for workflows: steps that write down what they did."""

from __future__ import annotations

import penstock as ps
from tests.flow.shop import EFFECT


class Lab:
    """An app with a table of effects. `did` tells of every call of a step, also of those whose effects were dropped."""

    def __init__(self) -> None:
        self.app = ps.App("lab")
        self.did: list[str] = []

    async def write(self, what: str) -> str:
        """A step that writes one effect and gives it back."""
        self.did.append(what)
        self.app.db.write(EFFECT, what=what)
        return what

    async def effects(self) -> list[str]:
        return sorted(await self.app.db.column("select what from effects"))
