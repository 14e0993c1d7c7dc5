"""Refused requests: the answer for the visitor, and the audit row with the caller, the request and the reason."""

from __future__ import annotations

import logging

from starlette.requests import Request

from penstock.app import App
from penstock.model.errors import BadParameter, HttpError, PenstockError, StoreError
from penstock.runtime.audit import audit, operated_by, record
from penstock.runtime.unit import open_unit
from penstock.web.intake import BadField
from penstock.web.ui.access import Forged, Misdirected, TooManyAttempts, Visitor
from penstock.web.ui.page import NoSuchThing, PageFailed

STRANGERS_MAX = 10  # rows a minute of requests without a session: more would let a stranger fill the disk
KNOWN_MAX = 60
MINUTE = 60_000_000

_log = logging.getLogger("penstock.web.ui")


def explained(error: PenstockError) -> tuple[int, str, str]:
    """Return the status, the title and the text of the page that an error becomes."""
    match error:
        case NoSuchThing():
            return 404, "There is nothing here", str(error)
        case Misdirected():
            return 421, "Unknown host", str(error)
        case Forged():
            return 403, "Refused", str(error)
        case TooManyAttempts():
            return 429, "Too many attempts", str(error)
        case PageFailed():
            return 500, "This page failed", str(error)
        case StoreError():
            text = "The database cannot be read now. The page tries again by itself."
            return 503, "The database cannot be read", text
        case BadParameter() | BadField():
            return 400, "This cannot be shown", str(error)
        case HttpError():
            return error.status, "This cannot be shown", str(error)
    return 409, "Not done", str(error)


class Refusals:
    def __init__(self, app: App) -> None:
        self._app = app
        self._noted: dict[bool, list[int]] = {True: [], False: []}

    async def note(self, visitor: Visitor | None, client: str, request: Request, reason: str, now: int) -> None:
        """Record a request that was refused. A page is not lost where that fails."""
        is_known = visitor is not None
        recent = [at for at in self._noted[is_known] if at > now - MINUTE]
        self._noted[is_known] = recent
        _log.warning("refused %s %s from %s: %s", request.method, request.url.path, client, reason)
        if len(recent) >= (KNOWN_MAX if is_known else STRANGERS_MAX):
            return
        recent.append(now)
        engine = await self._app._opened()
        try:
            with operated_by("-" if visitor is None else visitor.name, f"dashboard {client}"):
                async with open_unit(engine, None) as unit:
                    name = request.url.path[:200]
                    record(unit, audit(engine, "ui refused", "ui", name, reason=reason))
        except PenstockError:
            _log.exception("a refusal could not be recorded")
