"""Bindings: calls of one service by another that need the answer at once, declared by the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from penstock.model.errors import BadApp, Unavailable
from penstock.model.times import Span, in_seconds
from penstock.services.peers import call, peer

if TYPE_CHECKING:
    from penstock.services.service import Service

TIMEOUT_SECONDS = 10.0


class Bindings(Mapping[str, "Binding"]):
    """The bindings that a service declares with `uses=`."""

    def __init__(self, service: str, declared: Mapping[str, Binding]) -> None:
        self.service = service
        self._declared = declared

    def __getitem__(self, name: str) -> Binding:
        if name not in self._declared:
            raise BadApp(
                f"Service {self.service!r} calls {name!r}, and does not declare it. Add it: app.service({self.service!r}, "
                f"uses=[..., {name!r}]).",
                service=self.service,
                binding=name,
            )
        return self._declared[name]

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def __iter__(self) -> Any:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


class Binding:
    """The way from one service to another: `await media.bindings["gatherfeed"].get("/v1/research/7")`.

    The other service answers in this process, or over HTTP where it runs apart. Every status but 2xx is an error, as of
    `ps.Client`; an answer that takes longer than `timeout` is `Unavailable`.
    """

    def __init__(self, caller: Service, target: str) -> None:
        self._caller = caller
        self.target = target

    async def get(self, path: str, *, timeout: Span = TIMEOUT_SECONDS, **query: object) -> Any:
        """Return what a GET route of the other service answers."""
        asked = urlencode({name: str(value) for name, value in query.items() if value is not None}, doseq=True)
        return await self._call("GET", f"{path}?{asked}" if asked else path, None, timeout)

    async def post(self, path: str, json: object = None, *, timeout: Span = TIMEOUT_SECONDS) -> Any:
        """Return what a POST route answers: of infrastructure alone, such as a gateway. Other services get messages."""
        if not peer(self._caller.root, self.target).infrastructure:
            raise BadApp(
                f"Service {self._caller.name!r} may not POST to {self.target!r}, which is not infrastructure. Send a message "
                "to one of its queues.",
                service=self._caller.name,
                binding=self.target,
            )
        return await self._call("POST", path, json, timeout)

    async def _call(self, method: str, path: str, json: object, timeout: Span) -> Any:
        seconds = in_seconds(timeout)
        target = peer(self._caller.root, self.target)
        try:
            async with asyncio.timeout(seconds):
                answer = await call(self._caller, target, method, path, json=json)
        except TimeoutError as error:
            raise Unavailable(
                f"Service {self.target!r} did not answer {method} {path} within {seconds:g} s.", reason="timeout"
            ) from error
        value = answer.json() if answer.body else None
        return value["result"] if isinstance(value, dict) and "success" in value and "result" in value else value
