"""Failures as answers, in the shape that OpenAI's clients read."""

from __future__ import annotations

import json
import math
from typing import Any

import penstock as ps
from penstock_systems.gateway.app import Offline

RETRY_SECONDS = 5.0


def refused(
    status: int, code: str, message: str, *, retry_after: float | None = None, param: str | None = None
) -> ps.Reply:
    """Return an error. Without `retry_after` it also says that repeating the request cannot help."""
    headers = {"x-should-retry": "false"} if retry_after is None else {"Retry-After": str(math.ceil(retry_after))}
    return ps.Reply(body(code, message, param), "application/json", status, headers)


def body(code: str, message: str, param: str | None = None) -> dict[str, Any]:
    kind = "insufficient_quota" if code == "insufficient_quota" else f"{code}_error".replace("_error_error", "_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer_to(error: ps.PenstockError, *, host: str, key: str = "") -> ps.Reply:
    """Return what a caller is answered when its call failed. The provider's key is in no answer."""
    status: Any = error.facts.get("status")
    said = said_by(error, key)
    match error:
        case ps.BudgetSpent():
            until = error.facts.get("until")
            # A budget that only running calls fill up has room again when they end; one that is spent is not retried.
            soon = error.retry_after if until is not None and (error.retry_after or 60.0) <= 10.0 else None
            return refused(429, "insufficient_quota", error.message, retry_after=soon)
        case Offline():
            return refused(503, "provider_offline", error.message)
        case ps.Throttled():
            wait = error.retry_after or RETRY_SECONDS
            if "insufficient_quota" in said:
                return refused(502, "provider_quota", f"The account of {host} has no money left: {said}")
            return refused(
                429, "rate_limit_exceeded", f"{host} takes no more calls now. {said}".strip(), retry_after=wait
            )
        case ps.Unavailable():
            late = error.facts.get("reason") == "timeout"
            wait = error.retry_after or RETRY_SECONDS
            told = f"{host} did not answer in time." if late else f"{host} failed. {said}".strip()
            return refused(504 if late else 503, "provider_unavailable", told, retry_after=wait)
        case ps.Refused() | ps.Gone() if status in (401, 403):
            return refused(502, "provider_refused_key", f"{host} did not accept the key of the gateway.")
        case ps.Refused() | ps.Gone() if isinstance(status, int) and 400 <= status < 500:
            return refused(status, "invalid_request", f"{host}: {said or error.message}")
    return refused(502, "bad_answer", f"{host} gave an answer that cannot be used. {said}".strip())


def said_by(error: ps.PenstockError, key: str) -> str:
    """Return what the provider said in the body of its failure, without the key, even where it repeats it."""
    text = str(error.facts.get("excerpt") or "")
    try:
        told = json.loads(text)["error"]
        text = str(told.get("message") or told.get("detail") or text)
        text += f" ({told['code']})" if told.get("code") else ""
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return text.replace(key, "[redacted]") if key else text
