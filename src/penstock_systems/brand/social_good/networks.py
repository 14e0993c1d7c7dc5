"""Four social networks as channels: how each takes a post, recognises a repeated one, and finds one again.

A post is a `Notice`: its text ends with the address of the article, and `data` has that address with the title and the
description. The key is the same on every attempt.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import penstock as ps
from penstock.channels import Channel, Flight, Notice, Outcome, id_of, post
from penstock_systems.brand.rules.posts import facets

MASTODON_KEY_SECONDS = 3_600.0
LINKEDIN_VERSION = "202510"
LOOK_BACK = 40  # posts that a look-up goes through
ABSENT = Outcome("failed", "The network does not have this post.")
HIDDEN = Outcome(
    "unknown", f"The newest {LOOK_BACK} posts of the account are all later: older ones are not looked through."
)
_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
_RESERVED = re.compile(r"[|{}@\[\]()<>#\\*_~]")  # signs of mentions, hashtags and templates in a text of LinkedIn


class Seen(NamedTuple):
    """A post of the account, with the texts in which its address is."""

    id: str
    text: str
    at: float  # seconds since 1970


class Network(Channel):
    """A network at `base_url`, with its token in the environment variable `secret_env`."""

    def __init__(self, http: ps.Client, *, base_url: str, secret_env: str) -> None:
        self._http = http
        self._base = base_url.rstrip("/")
        self.secret_env = secret_env

    @property
    def secret(self) -> str:
        """The token. Fake servers take one that is no secret."""
        return super().secret or ("sk-stand-in" if "PENSTOCK_STANDINS" in os.environ else "")

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}

    async def find(self, notice: Notice, key: str, since: int) -> Outcome | None:
        """Look for a post about the same article among the newest posts of the account.

        None if the network cannot be asked now. Raises what more tries do not mend, such as a token that is refused."""
        try:
            newest = await self._newest()
        except (ps.Unavailable, ps.Throttled):
            return None
        for seen in newest:
            if _address(notice) in seen.text:
                return Outcome("sent", provider_id=seen.id)
        is_whole = len(newest) < LOOK_BACK or any(seen.at < since / 1_000_000 for seen in newest)
        return ABSENT if is_whole else HIDDEN

    async def _newest(self) -> Sequence[Seen]:
        """The newest posts of the account, at most `LOOK_BACK`."""
        raise NotImplementedError

    def _sent(self, id: str) -> Outcome:
        """Return the outcome of an answer. One without an id comes from something else than the network."""
        return Outcome("sent", provider_id=id) if id else Outcome("unknown", f"{self.name} answered without an id.")

    async def _get(self, path: str, **headers: str) -> Any:
        return (await self._http.get(f"{self._base}{path}", headers=self._headers | headers, follow=False)).json()


class Mastodon(Network):
    """It honours an `Idempotency-Key` for an hour."""

    name = "mastodon"
    key_seconds = MASTODON_KEY_SECONDS

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        status = {"status": notice.text, "visibility": "public"}
        headers = self._headers | {"Idempotency-Key": key}
        answer = await post(self, self._http, f"{self._base}/api/v1/statuses", flight, json=status, headers=headers)
        return answer if isinstance(answer, Outcome) else self._sent(id_of(answer, "id"))

    async def _newest(self) -> Sequence[Seen]:
        account = await self._get("/api/v1/accounts/verify_credentials")
        found = await self._get(f"/api/v1/accounts/{account['id']}/statuses?limit={LOOK_BACK}")
        return [Seen(str(each["id"]), str(each["content"]), _seconds(each["created_at"])) for each in found]


class Bluesky(Network):
    """A post has a record key of our choice, so a repeated post is refused by the network, for ever."""

    name = "bluesky"
    key_seconds = math.inf

    def __init__(self, http: ps.Client, *, base_url: str, secret_env: str, identifier: str) -> None:
        super().__init__(http, base_url=base_url, secret_env=secret_env)
        self._identifier = identifier
        self._session: Mapping[str, Any] = {}

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        record = {
            "$type": "app.bsky.feed.post",
            "text": notice.text,
            "createdAt": _moment(notice.at),
            "langs": ["en"],
            "facets": facets(notice.text, _address(notice)),
            "embed": {"$type": "app.bsky.embed.external", "external": _card(notice)},
        }
        outcome = await self._create(record_key(key), record, flight)
        if "ExpiredToken" in outcome.error:
            self._session = {}
            outcome = await self._create(record_key(key), record, flight)
        # A refusal may mean that an earlier attempt has made the record.
        found = await self.find(notice, key, notice.at) if outcome.is_permanent else None
        return found if found is not None and found.status == "sent" else outcome

    async def _create(self, rkey: str, record: Mapping[str, Any], flight: Flight) -> Outcome:
        session = self._session or await self._open()
        body = {"repo": session["did"], "collection": record["$type"], "rkey": rkey, "record": record}
        headers = {"Authorization": f"Bearer {session['accessJwt']}"}
        url = f"{self._base}/xrpc/com.atproto.repo.createRecord"
        answer = await post(self, self._http, url, flight, json=body, headers=headers)
        return answer if isinstance(answer, Outcome) else self._sent(id_of(answer, "uri"))

    async def find(self, notice: Notice, key: str, since: int) -> Outcome | None:
        """Read the record with this key."""
        try:
            session = self._session or await self._open()
            query = f"repo={session['did']}&collection=app.bsky.feed.post&rkey={record_key(key)}"
            headers = {"Authorization": f"Bearer {session['accessJwt']}"}
            url = f"{self._base}/xrpc/com.atproto.repo.getRecord?{query}"
            found: Any = (await self._http.get(url, headers=headers, follow=False)).json()
            return Outcome("sent", provider_id=str(found["uri"]))
        except (ps.Unavailable, ps.Throttled):
            return None
        except ps.PenstockError as error:
            excerpt = str(error.facts.get("excerpt"))
            if "RecordNotFound" in excerpt:
                return ABSENT
            if "ExpiredToken" not in excerpt:
                raise
            self._session = {}
            return None

    async def _open(self) -> Mapping[str, Any]:
        login = {"identifier": self._identifier, "password": self.secret}
        url = f"{self._base}/xrpc/com.atproto.server.createSession"
        session: Any = (await self._http.post(url, json=login, follow=False)).json()
        self._session = {"did": session["did"], "accessJwt": session["accessJwt"]}
        return self._session


class X(Network):
    """It refuses a post whose text it has already, and takes no key."""

    name = "x"

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        url, body = f"{self._base}/2/tweets", {"text": notice.text}
        answer = await post(self, self._http, url, flight, json=body, headers=self._headers)
        if not isinstance(answer, Outcome):
            return self._sent(id_of(answer, "data", "id"))
        found = await self.find(notice, key, notice.at) if "duplicate" in answer.error else None
        return found if found is not None and found.status == "sent" else answer

    async def _newest(self) -> Sequence[Seen]:
        me = await self._get("/2/users/me")
        asked = f"max_results={LOOK_BACK}&tweet.fields=created_at,entities"
        found = await self._get(f"/2/users/{me['data']['id']}/tweets?{asked}")
        # X replaces addresses in a text by short ones of its own; the entities have the real ones.
        return [
            Seen(str(each["id"]), f"{each['text']} {each.get('entities', '')}", _seconds(each["created_at"]))
            for each in found.get("data", ())
        ]


class LinkedIn(Network):
    """It takes no key, and a repeated post is another post: what became of a lost answer has to be looked up."""

    name = "linkedin"

    def __init__(self, http: ps.Client, *, base_url: str, secret_env: str, author: str) -> None:
        super().__init__(http, base_url=base_url, secret_env=secret_env)
        self._author = author

    @property
    def _headers(self) -> dict[str, str]:
        return super()._headers | {"LinkedIn-Version": LINKEDIN_VERSION, "X-Restli-Protocol-Version": "2.0.0"}

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        card = _card(notice)
        body = {
            "author": self._author,
            "commentary": plain_commentary(notice.text),
            "visibility": "PUBLIC",
            "distribution": {
                "feedDistribution": "MAIN_FEED",
                "targetEntities": [],
                "thirdPartyDistributionChannels": [],
            },
            "content": {"article": {"source": card["uri"], "title": card["title"], "description": card["description"]}},
            "lifecycleState": "PUBLISHED",
            "isReshareDisabledByAuthor": False,
        }
        answer = await post(self, self._http, f"{self._base}/rest/posts", flight, json=body, headers=self._headers)
        if isinstance(answer, Outcome):
            return answer
        return self._sent(answer.headers.get("x-restli-id", ""))

    async def _newest(self) -> Sequence[Seen]:
        found = await self._get(f"/rest/posts?q=author&author={quote(self._author, safe='')}&count={LOOK_BACK}")
        return [
            Seen(str(each["id"]), f"{each['commentary']} {each.get('content', '')}", each["createdAt"] / 1_000)
            for each in found["elements"]
        ]


def plain_commentary(text: str) -> str:
    """Return a text as LinkedIn takes it, in which nothing mentions a person, and no sign ends the text early."""
    return _RESERVED.sub(r"\\\g<0>", text)


def record_key(key: str) -> str:
    """Return a record key in the form of Bluesky's own (a TID): 13 digits, the same for the same key."""
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
    return "".join(_DIGITS[number >> shift & 31] for shift in range(60, -5, -5))


def _address(notice: Notice) -> str:
    return str(notice.data["url"])


def _card(notice: Notice) -> dict[str, str]:
    return {"uri": _address(notice), "title": notice.title, "description": str(notice.data.get("description", ""))}


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _moment(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
