"""Chat completions as OpenAI-compatible services speak them: what is asked, what an answer says, and what it costs."""

from __future__ import annotations

import json as json_text
import math
import re
from dataclasses import dataclass
from typing import Any

from penstock.model.errors import PenstockError, Refused, Throttled, Unavailable, Unparsable
from penstock.outbound.answers import excerpt_of

MESSAGE_TOKENS = 64  # what a service may add around each message; those known add fewer than ten
QUOTA_SPENT = ("insufficient_quota", "billing_hard_limit_reached")  # 429s that waiting does not end
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said. `usd` is what it cost, or the most it can have cost where the service does not say. `value` is
    the JSON in it, if that was asked for; `is_cut` says that it ends where the tokens ended."""

    text: str
    model: str
    usd: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    value: Any = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class TokenUsage:
    prompt_tokens: int
    completion_tokens: int


def messages(system: str, prompt: str) -> list[dict[str, str]]:
    asked = [{"role": "user", "content": prompt}]
    return [{"role": "system", "content": system}, *asked] if system else asked


def prompt_tokens_most(asked: list[dict[str, str]]) -> int:
    """Never too low: a token stands for at least one byte of text."""
    return sum(len(each["content"].encode("utf-8", "replace")) + MESSAGE_TOKENS for each in asked)


def usage_of(reply: Any) -> TokenUsage | None:
    """None where the service does not say, or says what cannot be."""
    used = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(used, dict):
        return None
    prompt, completion = (_count(used.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return None if prompt is None or completion is None else TokenUsage(prompt, completion)


def answer_of(reply: Any, *, where: str, model: str, usd: float, usage: TokenUsage | None, json: bool) -> Answer:
    """What a reply with status 200 says, or what is wrong with it."""
    if not isinstance(reply, dict):
        raise _unreadable(where, "no_answer", "is not an object")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _error_in(reply, where)
    message = choices[0].get("message")
    message = message if isinstance(message, dict) else {}
    finish = choices[0].get("finish_reason")
    if finish == "content_filter" or message.get("refusal"):
        said = excerpt_of(str(message.get("refusal") or "content_filter"))
        raise Refused(f"{where} refuses to answer this: {said}", reason="content_filter", url=where)
    text = _text(message.get("content"))
    if text is None:
        raise _unreadable(where, "no_content", f"has no text in it (it ended with {finish!r})")
    named = reply.get("model")
    used = usage or TokenUsage(0, 0)
    is_cut = finish == "length"
    value = _value(text, where, is_cut) if json else None
    called = named if isinstance(named, str) and named.isprintable() and 0 < len(named) <= 200 else model
    return Answer(text, called, usd, used.prompt_tokens, used.completion_tokens, value, is_cut)


def explained(error: PenstockError, key: str) -> PenstockError:
    """The same failure with what the service said about it, and without the key."""
    said = str(error.facts.get("excerpt") or "")
    said = said.replace(key, "[redacted]") if key else said
    if "excerpt" in error.facts:
        error.facts["excerpt"] = said
        error.__dict__["excerpt"] = said
    if isinstance(error, Throttled) and any(word in said for word in QUOTA_SPENT):
        refused = Refused(f"{error} The account has no money left: {said}", **error.facts | {"retry_after": None})
        return refused.with_traceback(error.__traceback__)
    if said:
        error.add_note(f"It said: {said}")
    return error


# -- the parts of a reply ---------------------------------------------------------------------------------


def _text(content: Any) -> str | None:
    """Text, or the text among the parts of which some services make an answer."""
    if isinstance(content, list):
        parts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        content = "".join(parts) if parts else None
    if not isinstance(content, str) or not content.strip():
        return None
    # Half characters and zero bytes cannot be stored.
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")


def _value(text: str, where: str, is_cut: bool) -> Any:
    if is_cut:
        raise _unreadable(where, "cut", "was cut off at the token limit, so its JSON is incomplete; allow more tokens")
    fenced = _FENCE.fullmatch(text)
    try:
        return json_text.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(where, "bad_json", f"is not JSON: {str(error)[:200]}", text) from error


def _error_in(reply: dict[str, Any], where: str) -> PenstockError:
    """Some services tell an error under status 200."""
    error = reply.get("error")
    if not isinstance(error, dict):
        return _unreadable(where, "no_answer", "has no choices")
    said = excerpt_of(str(error.get("message") or error.get("code") or error.get("type") or "an error"))
    words = {error.get("code"), error.get("type")} - {None} if _plain(error) else set()
    status = next((word for word in words if isinstance(word, int) and not isinstance(word, bool)), 0)
    if words & set(QUOTA_SPENT):
        return Refused(f"{where}: the account has no money left: {said}", url=where, excerpt=said)
    if status == 429 or "rate_limit_exceeded" in words:
        return Throttled(f"{where} throttles: {said}", url=where, excerpt=said)
    if status >= 500 or words & {"overloaded_error", "server_error", "api_error"}:
        return Unavailable(f"{where} cannot answer now: {said}", url=where, excerpt=said)
    return Refused(f"{where} refuses this: {said}", url=where, excerpt=said)


def _plain(error: dict[str, Any]) -> bool:
    return all(isinstance(error.get(name), str | int | float | None) for name in ("code", "type"))


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value.is_integer())
    return int(value) if whole and not isinstance(value, bool) and 0 <= value <= 10**12 else None


def _unreadable(where: str, reason: str, what: str, text: str = "") -> Unparsable:
    return Unparsable(f"The answer of {where} {what}.", reason=reason, url=where, excerpt=excerpt_of(text))
