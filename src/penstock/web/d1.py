"""The database over HTTP: SQL with values for `?`, one statement or a batch that is one transaction, as D1 answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request

from penstock.app import App
from penstock.data.query import QueryAnswer, Question, answers, question, script
from penstock.model.redaction import address_shown
from penstock.runtime.lanes import in_thread
from penstock.web.intake import BadField, read_json, request_bytes_max
from penstock.web.reply import Result, UnknownPath
from penstock.web.tokens import D1_READ, D1_WRITE, require

REGION = "local"
IN_PLACE_CHARACTERS_MAX = 10_000  # checking longer SQL, which takes 3 us a character, would delay other requests


class D1Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sql: str
    params: list[Any] = []


class D1Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sql: str | None = None
    params: list[Any] | None = None
    batch: list[D1Statement] | None = None


class D1:
    """The routes under `/d1/database/{database}`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def query(self, request: Request) -> Result:
        return await self._ask(request, _objects)

    async def raw(self, request: Request) -> Result:
        return await self._ask(request, _lists)

    async def _ask(self, request: Request, shaped: Callable[[QueryAnswer], object]) -> Result:
        scopes: Collection[str] = request.state.scopes
        if D1_WRITE not in scopes:
            require(scopes, [D1_READ])  # else there is nothing that the token could ask for
        self._check_name(request.path_params["database"])
        asked = await read_json(request, D1Request, request_bytes_max(self._app.limits.row_bytes_max))
        is_long = sum(len(each.sql) for each in asked.batch or ()) + len(asked.sql or "") > IN_PLACE_CHARACTERS_MAX
        questions = await in_thread(self._questions, asked) if is_long else self._questions(asked)
        require(scopes, sorted({D1_WRITE if each.writes else D1_READ for each in questions}))
        engine = await self._app._opened()
        found = await answers(engine, questions)
        size = await engine.in_writer(engine.writer.upkeep.size_bytes)
        return Result([{"success": True, "results": shaped(each), "meta": _meta(each, size)} for each in found])

    def _check_name(self, name: str) -> None:
        known = dict.fromkeys((self._app.name, Path(address_shown(self._app.database).partition("?")[0]).stem))
        if name not in known:
            raise UnknownPath(f"There is no database {name[:100]!r}. There is: {', '.join(known)}.")

    def _questions(self, asked: D1Request) -> list[Question]:
        limits = self._app.limits
        if (asked.sql is None) == (asked.batch is None):
            raise BadField("sql: give either `sql` with `params`, or `batch`.", field="sql")
        if asked.batch is not None:
            if asked.params is not None:
                raise BadField("params: each statement of a batch has its own.", field="params")
            if not 1 <= len(asked.batch) <= limits.batch_statements_max:
                raise BadField(
                    f"batch: it has {len(asked.batch):,} statements; give 1 to {limits.batch_statements_max:,}.",
                    field="batch",
                )
            return [question(each.sql, each.params, limits) for each in asked.batch]
        assert asked.sql is not None
        return [question(asked.sql, asked.params, limits)] if asked.params else script(asked.sql, limits)


def _objects(answer: QueryAnswer) -> list[dict[str, Any]]:
    return [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]


def _lists(answer: QueryAnswer) -> dict[str, Sequence[Any]]:
    return {"columns": answer.columns, "rows": [[_plain(value) for value in row] for row in answer.rows]}


def _plain(value: Any) -> Any:
    """A blob is a list of numbers, as D1 gives it."""
    return list(value) if isinstance(value, bytes) else value


def _meta(answer: QueryAnswer, size_bytes: int) -> dict[str, Any]:
    milliseconds = round(answer.seconds * 1_000, 4)
    return {
        "served_by_region": REGION,
        "served_by_primary": True,
        "timings": {"sql_duration_ms": milliseconds},
        "duration": milliseconds,
        "changes": answer.changes,
        "last_row_id": answer.last_row_id,
        "changed_db": answer.changed,
        "size_after": size_bytes,
        "rows_read": answer.rows_read,
        "rows_written": answer.rows_written,
    }
