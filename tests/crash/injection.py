"""A proxy that knows PostgreSQL's messages well enough to let the n-th statement of a process fail, or its connection end.

A statement is a simple query, or one execution of the extended protocol; what comes before a `Sync` is one batch, and a
batch with the n-th statement in it reaches the server whole or not at all.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from tests.crash.proxy import Link, Proxy

QUERY, EXECUTE, SYNC, TERMINATE = b"Q", b"E", b"S", b"X"
READY = b"Z"
IDLE, IN_TRANSACTION, FAILED = b"I", b"T", b"E"


class Talk:
    """What is known of one connection: what has not been passed on yet, and whether it is inside a transaction."""

    def __init__(self) -> None:
        self.from_client = b""
        self.from_server = b""
        self.batch = b""
        self.statements = 0  # in the batch
        self.is_greeted = False
        self.status = IDLE
        self.swallow = b""  # goes to the client instead of what the server says next


class Injector:
    """`url` leads to the server. From `arm` on statements are counted, and at the n-th the fault happens, once."""

    def __init__(self, address: str) -> None:
        self._talks: WeakKeyDictionary[Link, Talk] = WeakKeyDictionary()
        self._proxy = Proxy(address, to_server=self._to_server, to_client=self._to_client)
        self.url = f"{self._proxy.url}?sslmode=disable&gssencmode=disable"
        self.close = self._proxy.close
        self.arm(0, "")

    def arm(self, nth: int, fault: str) -> None:
        """A fault is an SQLSTATE, or "lost before" or "lost after" the server has got the statement."""
        self.seen = 0
        self.struck = ""
        self._nth, self._fault = nth, fault

    def _talk(self, link: Link) -> Talk:
        return self._talks.setdefault(link, Talk())

    # -- from the client ----------------------------------------------------------------------------------

    def _to_server(self, link: Link, data: bytes) -> bytes:
        talk = self._talk(link)
        talk.from_client += data
        passed = b""
        while message := self._next(talk):
            kind = message[:1] if talk.is_greeted else b""
            talk.is_greeted = True
            talk.batch += message
            talk.statements += kind in (QUERY, EXECUTE)
            if kind in (b"", QUERY, SYNC, TERMINATE) or kind in b"pdcf":
                batch, count = talk.batch, talk.statements
                talk.batch, talk.statements = b"", 0
                self.seen += count
                if count and self.seen - count < self._nth <= self.seen and not self.struck:
                    passed += self._strike(link, talk, batch)
                else:
                    passed += batch
        return passed

    def _next(self, talk: Talk) -> bytes:
        """The first whole message, taken off; the very first has no kind, only a length."""
        start = int(talk.is_greeted)
        if len(talk.from_client) < start + 4:
            return b""
        size = start + int.from_bytes(talk.from_client[start : start + 4], "big")
        if len(talk.from_client) < size:
            return b""
        message, talk.from_client = talk.from_client[:size], talk.from_client[size:]
        return message

    def _strike(self, link: Link, talk: Talk, batch: bytes) -> bytes:
        self.struck = batch[5:200].decode(errors="replace")
        if self._fault == "lost after":
            link.server.sendall(batch)
        if self._fault.startswith("lost"):
            raise ConnectionResetError
        error = _error(self._fault)
        if talk.status == IN_TRANSACTION and batch[5:11].lower() == b"commit":
            talk.swallow = error + _ready(IDLE)
            return _query(b"rollback")  # what the server itself does if it cannot commit
        talk.status = FAILED if talk.status == IN_TRANSACTION else talk.status
        link.client.sendall(error + _ready(talk.status))
        return b""

    # -- from the server ----------------------------------------------------------------------------------

    def _to_client(self, link: Link, data: bytes) -> bytes:
        talk = self._talk(link)
        talk.from_server += data
        passed = b""
        while len(talk.from_server) >= 5:
            size = 1 + int.from_bytes(talk.from_server[1:5], "big")
            if len(talk.from_server) < size:
                break
            message, talk.from_server = talk.from_server[:size], talk.from_server[size:]
            if message[:1] == READY:
                talk.status = message[5:6]
                message, talk.swallow = talk.swallow or message, b""
                passed += message
            elif not talk.swallow:
                passed += message
        return passed


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _query(text: bytes) -> bytes:
    return _message(QUERY, text + b"\0")


def _ready(status: bytes) -> bytes:
    return _message(READY, status)


def _error(code: str) -> bytes:
    fields = {b"S": b"ERROR", b"V": b"ERROR", b"C": code.encode(), b"M": b"injected by a test"}
    return _message(b"E", b"".join(name + value + b"\0" for name, value in fields.items()) + b"\0")
