"""What the services ask of the gateway, which holds the keys and the budgets: searches, and answers of a model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import penstock as ps
from penstock_systems.brand.app import settings, web

SPENT = "insufficient_quota"
RESULTS = 10
DAY_SECONDS = 86_400
TEMPERATURE = 0  # the gateway answers an equal request from its cache


class NoModel(ps.Permanent):
    """The settings name no model. Articles and summaries are composed from their sources instead."""


async def search(query: str, *, tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the results of a web search: each with its `url` and `title`."""
    path = f"/v1/brave/web_search?q={quote(query)}&count={RESULTS}"
    found = await _asked("GET", path, tags=tags)
    try:
        results = list(found.get("web", {}).get("results", []))
    except (AttributeError, TypeError) as error:
        raise ps.Unparsable("The answer of the search has no list of results.") from error
    return [each for each in results if isinstance(each, dict) and isinstance(each.get("url"), str)]


async def chat(system: str, prompt: str, *, tags: Mapping[str, str], problem: str = "") -> Any:
    """Return the JSON object in a model's answer. Raises Unparsable where it is cut off or has none.

    `problem` is what was wrong with the answer before: the model is asked to mend it.
    """
    if not settings.model:
        raise NoModel("No model is set. Name one of the gateway's as `model` in [systems.brand].")
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
    if problem:
        again = f"Your last answer could not be used. {problem} Answer again, with the JSON object only."
        messages.append({"role": "user", "content": again})
    asked = {
        "model": settings.model,
        "temperature": TEMPERATURE,
        "max_tokens": settings.model_tokens,
        "messages": messages,
    }
    if settings.json_mode:
        asked["response_format"] = {"type": "json_object"}
    answer = await _asked("POST", "/v1/chat/completions", tags=tags, json=asked)
    try:
        choice = answer["choices"][0]
        text, ended = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError) as error:
        raise ps.Unparsable("The model's answer has no text.") from error
    if ended == "length":
        raise ps.Unparsable(f"The model's answer was cut off after {settings.model_tokens} tokens (model_tokens).")
    try:
        return json.loads(text[text.index("{") : text.rindex("}") + 1])  # some models put words or a fence around it
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ps.Unparsable("The model's answer has no JSON object.") from error


async def _asked(method: str, path: str, *, tags: Mapping[str, str], **sent: Any) -> dict[str, Any]:
    key = os.environ.get(settings.gateway_key_env, "").strip()
    headers = {"X-Service-Key": key, "x-tags": ",".join(f"{name}={value}" for name, value in tags.items())}
    try:
        answer = await web.request(method, settings.gateway.rstrip("/") + path, headers=headers, follow=False, **sent)
    except ps.Throttled as error:
        if SPENT in str(error.facts.get("excerpt")) and error.retry_after is None:
            raise ps.Throttled("The budget of this day is spent.", retry_after=_until_tomorrow()) from error
        raise
    except (ps.Unavailable, ps.Permanent) as error:
        error.message = f"{error.message} {_reason_of(error)}".strip()
        raise
    found = answer.json()
    if not isinstance(found, dict):
        raise ps.Unparsable("The gateway's answer is not an object.")
    return found


def _reason_of(error: ps.PenstockError) -> str:
    """Return what the gateway said in the body of its failure."""
    said = str(error.facts.get("excerpt") or "")
    try:
        return str(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return said


def _until_tomorrow() -> float:
    return DAY_SECONDS - web.clock.now() / 1_000_000 % DAY_SECONDS + 1
