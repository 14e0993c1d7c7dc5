"""What goes out: one envelope for every answer, and for every failure its status, its words and no more than those."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.responses import Response

from penstock.model import errors
from penstock.model.errors import PenstockError, QueueFull, StoreError
from penstock.model.strict_json import BadJson
from penstock.objects.host import Elsewhere, Moved
from penstock.web.intake import BadField, BadKind, Disconnected, KeyReused
from penstock.web.tokens import MissingScope, Unauthorized

CODE_BASE = 10_000  # an error's code is this and its status; its name tells more
RETRY_SECONDS = 5  # after which a store that could not be reached is worth another try

_log = logging.getLogger("penstock.web")


class UnknownPath(PenstockError):
    """There is no such thing."""


class TooSlow(PenstockError):
    """The answer took longer than a request may take, and was cancelled."""


# The first that fits counts. What is not listed is a request that cannot be fulfilled as it is: 400.
_STATUSES: tuple[tuple[type[PenstockError], int, str], ...] = (
    (BadJson, 400, "bad_json"),
    (BadField, 422, "bad_field"),
    (KeyReused, 422, "key_reused"),
    (BadKind, 415, "bad_kind"),
    (Unauthorized, 401, "unauthorized"),
    (MissingScope, 403, "forbidden"),
    (Disconnected, 400, "disconnected"),
    (UnknownPath, 404, "not_found"),
    (TooSlow, 504, "too_slow"),
    (errors.NoSuchQueue, 404, "no_such_queue"),
    (errors.BadLease, 422, "bad_lease"),
    (errors.TooLarge, 413, "message_too_large"),
    (errors.UnitTooLarge, 413, "request_too_large"),
    (QueueFull, 429, "queue_full"),
    (errors.BadMessage, 422, "bad_message"),
    (errors.BadParameter, 422, "bad_parameter"),
    (errors.BadStatement, 400, "bad_statement"),
    (errors.StatementFailed, 400, "statement_failed"),
    (errors.TooManyRows, 400, "too_many_rows"),
    (errors.BadSignal, 422, "bad_signal"),
    (errors.LostUpdate, 409, "lost_update"),
    (errors.NoSuchRun, 404, "no_such_run"),
    (StoreError, 503, "store_unavailable"),
    (errors.Throttled, 503, "throttled"),
    (errors.Unavailable, 503, "unavailable"),
    (errors.BudgetSpent, 503, "budget_spent"),
    (Elsewhere, 503, "object_elsewhere"),
    (Moved, 503, "object_moved"),
)
# Mistakes in the app's own code: the client gets a 500, the log the traceback.
MISTAKES = (
    errors.HandlerExit,
    errors.NoUnit,
    errors.UnitClosed,
    errors.NotYetCommitted,
    errors.BetweenSteps,
    errors.Reentrant,
    errors.BadApp,
    errors.BadConfig,
)
# Facts that a client can use. Others may be about this machine.
_DETAILS = frozenset(
    "byte line column reason field bytes bytes_max queue retry_after most rows_max found allowed needed given table".split()
)


@dataclass(frozen=True, slots=True)
class Result:
    """A result; `messages` are remarks about it that a person should read."""

    result: Any
    messages: list[str] = field(default_factory=list)


def sent(reply: Result) -> Response:
    remarks = [{"code": CODE_BASE + 200, "message": remark} for remark in reply.messages]
    return enveloped(200, result=reply.result, messages=remarks)


def refused(error: PenstockError) -> Response:
    """The failure as an answer. What the store says may name files of this machine: it goes to the log alone."""
    status, name = _status(error)
    message = error.message
    headers: dict[str, str] = {}
    details: Mapping[str, Any] = error.facts
    if isinstance(error, StoreError):
        _log.error("the store could not be reached: %s", error)
        message, details = f"{(type(error).__doc__ or '').strip()} Try again later.", {}
    if status in (429, 503):
        usual = RETRY_SECONDS if status == 503 else 1
        headers["Retry-After"] = str(max(1, math.ceil(float(error.facts.get("retry_after") or usual))))
    elif status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return problem(status, name, message, details, headers)


def problem(
    status: int,
    name: str,
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    shown = {
        key: value
        for key, value in (details or {}).items()
        if key in _DETAILS and isinstance(value, int if key == "line" else int | float | str)
    }
    said = {"code": CODE_BASE + status, "message": f"{name}: {_writable(message)}", "name": name, "details": shown}
    return enveloped(status, errors=[said], headers=headers)


def enveloped(
    status: int,
    *,
    result: Any = None,
    errors: list[dict[str, Any]] | None = None,
    messages: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    envelope = {"success": status < 400, "errors": errors or [], "messages": messages or [], "result": result}
    return answered(status, envelope, headers)


def answered(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    content = msgspec.json.encode(value, enc_hook=str)
    return Response(content, status, headers={**(headers or {})}, media_type="application/json")


def _status(error: PenstockError) -> tuple[int, str]:
    if isinstance(error, errors.HttpError):
        return error.status, error.name
    for kind, status, name in _STATUSES:
        if isinstance(error, kind):
            return status, name
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()
    return 400, words


def _writable(text: str) -> str:
    """Half a character cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
