"""What the command line does, over HTTP: dead letters, cron tasks, sources of connectors, and the cost of a month."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request

from penstock.app import App
from penstock.model.errors import NoSuchLetter, NoSuchSchedule, NoSuchSource
from penstock.queues.letters import LISTED_MAX, REPLAY_LIMIT, DeadLetterFilter
from penstock.views import cost, crons, dead
from penstock.web.intake import BadField, read_json
from penstock.web.reply import Result, UnknownPath
from penstock.web.ui.reading import PageSource

OPERATE = "/v1/operate"
OPERATE_READ, OPERATE_WRITE = "operate:read", "operate:write"
REQUEST_BYTES_MAX = 200_000  # a payload that is edited, or the numbers of many letters
LISTED = 100
CRON_VERBS, SOURCE_VERBS = ("trigger", "pause", "resume"), ("enable", "disable", "run", "reset")
Answering = Callable[[Request], Awaitable[Result]]


class Chosen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which letters: by number, or by what they have in common. One of both has to be given."""

    ids: list[int] = []
    where: DeadLetterFilter | None = None

    def letters(self) -> DeadLetterFilter | list[int]:
        if bool(self.ids) == (self.where is not None):
            raise BadField("ids: give either `ids` or `where`. `where: {}` means all.", field="ids")
        return self.ids if self.where is None else self.where


class ReplayRequest(Chosen, frozen=True, kw_only=True):
    limit: int = REPLAY_LIMIT
    rate: float | None = None
    force: bool = False


class DiscardRequest(Chosen, frozen=True, kw_only=True):
    reason: str
    limit: int = LISTED_MAX


class EditRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    payload: Any


class Listing(DeadLetterFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = LISTED
    resolved: bool = False


class OperationRoutes:
    """The routes under `/v1/operate`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._source = PageSource(app)

    def paths(self) -> Iterator[tuple[str, str, str, Answering]]:
        """Yield method, path, scope and what answers it."""
        for path, read in (
            ("/dead", self.letters),
            ("/dead/groups", self.groups),
            ("/dead/{id}", self.letter),
            ("/crons", self.crons),
            ("/sources", self.sources),
            ("/cost", self.cost),
        ):
            yield "GET", OPERATE + path, OPERATE_READ, _found(read)
        changes: list[tuple[str, str, Answering]] = [
            ("POST", "/dead/replay", self.replay),
            ("POST", "/dead/discard", self.discard),
            ("PUT", "/dead/{id}", self.edit),
        ]
        changes += [("POST", f"/crons/{{name}}/{verb}", partial(self.cron, verb)) for verb in CRON_VERBS]
        changes += [("POST", f"/sources/{{name}}/{verb}", partial(self.switch, verb)) for verb in SOURCE_VERBS]
        for method, path, change in changes:
            yield method, OPERATE + path, OPERATE_WRITE, _found(change)

    # -- dead letters

    async def letters(self, request: Request) -> Result:
        asked = msgspec.convert(_query(request), Listing, strict=False)
        which = DeadLetterFilter(**{name: getattr(asked, name) for name in DeadLetterFilter.__struct_fields__})
        most = max(1, min(asked.limit, LISTED_MAX))
        found = await self._app.dead.list(which, limit=most, resolved=asked.resolved)
        return Result([dead.row_of(each) for each in found])

    async def groups(self, request: Request) -> Result:
        which = msgspec.convert(_query(request), DeadLetterFilter, strict=False)
        return Result([dead.row_of_group(each) for each in await self._app.dead.groups(which)])

    async def letter(self, request: Request) -> Result:
        return Result(dead.row_of(await self._app.dead.get(_number(request))))

    async def edit(self, request: Request) -> Result:
        wanted = await read_json(request, EditRequest, REQUEST_BYTES_MAX)
        await self._app.dead.edit(_number(request), wanted.payload)
        return Result(dead.row_of(await self._app.dead.get(_number(request))))

    async def replay(self, request: Request) -> Result:
        wanted = await read_json(request, ReplayRequest, REQUEST_BYTES_MAX)
        done = await self._app.dead.replay(wanted.letters(), limit=wanted.limit, rate=wanted.rate, force=wanted.force)
        return Result({"replayed": done})

    async def discard(self, request: Request) -> Result:
        wanted = await read_json(request, DiscardRequest, REQUEST_BYTES_MAX)
        return Result({"discarded": await self._app.dead.discard(wanted.letters(), wanted.reason, limit=wanted.limit)})

    # -- cron tasks, sources and cost

    async def crons(self, _: Request) -> Result:
        found, _spent = await self._source.read(crons.rows)
        return Result(found)

    async def cron(self, verb: str, request: Request) -> Result:
        name = str(request.path_params["name"])
        await getattr(self._app.crons, verb)(name)
        return Result({"cron": name, "done": verb})

    async def sources(self, _: Request) -> Result:
        return Result([row.asdict() for row in await self._app.sources.list()])

    async def switch(self, verb: str, request: Request) -> Result:
        name = str(request.path_params["name"])
        sources = self._app.sources
        if verb in ("enable", "disable"):
            await sources.switch(name, enabled=verb == "enable")
        else:
            await (sources.run_soon(name) if verb == "run" else sources.reset(name))
        return Result({"source": name, "done": verb})

    async def cost(self, request: Request) -> Result:
        month = request.query_params.get("month")
        found, _spent = await self._source.read(lambda reading: cost.cost(reading, month))
        return Result(found)


def _query(request: Request) -> dict[str, str]:
    return dict(request.query_params)


def _number(request: Request) -> int:
    text = str(request.path_params["id"])
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise UnknownPath(f"{text[:50]!r} is not the number of a dead letter.")
    return int(text)


def _found(answering: Answering) -> Answering:
    """Answer 404 where there is no such thing, and 422 where the query does not fit."""

    async def answer(request: Request) -> Result:
        try:
            return await answering(request)
        except (NoSuchLetter, NoSuchSchedule, NoSuchSource) as error:
            raise UnknownPath(str(error)) from error
        except msgspec.ValidationError as error:
            raise BadField(f"the query: {error}.", field="query") from error

    return answer
