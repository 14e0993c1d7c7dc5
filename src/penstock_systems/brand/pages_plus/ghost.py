"""Publishing through Ghost's Admin API. Its slug is ours alone, so an article is looked up before it is posted."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from typing import Any

import penstock as ps
from penstock_systems.brand.app import web
from penstock_systems.brand.bindings import Content

TOKEN_SECONDS = 240  # of the five minutes that Ghost accepts
API = "/ghost/api/admin/posts/"


async def add_to_ghost(content: Content, now_seconds: int) -> tuple[str, str]:
    """Add an article, and return its id and its address as they were really stored."""
    base, headers = _access(content, now_seconds)
    post = {
        "title": content.title,
        "html": content.html,
        "slug": content.slug,
        "status": "published",
        "custom_excerpt": content.description,
    }
    url = f"{base}{API}?source=html"
    await web.post(url, json={"posts": [post]}, headers=headers, follow=False)
    found = await find_on_ghost(content, now_seconds)
    if found is None:
        raise ps.Unavailable(f"{base} accepted the article {content.slug!r} and does not show it yet.")
    return found


async def find_on_ghost(content: Content, now_seconds: int) -> tuple[str, str] | None:
    """Return the id and the address of an article that is there: an answer that was lost is found by its slug."""
    base, headers = _access(content, now_seconds)
    try:
        answer: Any = (await web.get(f"{base}{API}slug/{content.slug}/", headers=headers, follow=False)).json()
    except ps.Gone:
        return None
    try:
        post = answer["posts"][0]
        return str(post["id"]), str(post["url"])
    except (KeyError, IndexError, TypeError) as error:
        raise ps.Unavailable(f"{base} answered without a post.") from error


def _access(content: Content, now_seconds: int) -> tuple[str, dict[str, str]]:
    ghost = content.brand.ghost
    if ghost is None:
        raise ps.Refused(f"The brand {content.brand_slug} has no Ghost site: set `ghost.base_url`.")
    return ghost.base_url.rstrip("/"), _headers(ghost.key_env, now_seconds)


def _headers(key_env: str, now_seconds: int) -> dict[str, str]:
    id, _, secret = os.environ.get(key_env, "").partition(":")
    try:
        key = bytes.fromhex(secret)
    except ValueError:
        key = b""
    if not id or not key:
        raise ps.Refused(
            f"The environment variable {key_env} is not an Admin API key of Ghost, such as 65a...:0f1e...."
        )
    head = {"alg": "HS256", "typ": "JWT", "kid": id}
    claims = {"iat": now_seconds, "exp": now_seconds + TOKEN_SECONDS, "aud": "/admin/"}
    signed = f"{_encoded(json.dumps(head).encode())}.{_encoded(json.dumps(claims).encode())}"
    signature = hmac.new(key, signed.encode(), hashlib.sha256).digest()
    return {"Authorization": f"Ghost {signed}.{_encoded(signature)}", "Accept-Version": "v5.0"}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
