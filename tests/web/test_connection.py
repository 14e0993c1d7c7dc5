"""A connection survives whatever is sent over it, or is closed and the next one works."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from penstock.web import connection
from penstock.web.connection import AddressLimit
from tests.extent import patient
from tests.web.outside import ACCOUNT, shop_app
from tests.web.server import TOKEN, served

PUSH = f"{ACCOUNT}/queues/jobs/messages"
HEADERS = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    app = shop_app("cloudflare")
    app.database = str(tmp_path / "shop.db")
    with served(app) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[httpx2.Client]:
    """Keeps one connection and uses it for everything."""
    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
    with httpx2.Client(base_url=url, headers=HEADERS, limits=limits, trust_env=False, timeout=patient(30)) as client:
        yield client


def works(client: httpx2.Client) -> bool:
    return client.post(PUSH, json={"body": 1}).status_code == 200


def waiting(client: httpx2.Client) -> int:
    told = client.post(f"{PUSH}/peek", json={"batch_size": 100}).json()
    return len(told["result"]["messages"])


@pytest.mark.fault("F36", "F37")
@pytest.mark.parametrize(
    "content, status",
    [
        (b'{"body": "' + b"x" * 127_999 + b'"}', 413),
        (b"x" * 10_000_000, 413),
        (b"[" * 100_000, 400),
        (b"\xff\xfe", 400),
        (b'{"body": 1, "body": 2}', 400),
    ],
    ids=["one byte over", "ten megabytes", "deep", "not utf-8", "twice"],
)
def test_the_same_connection_works_after_a_refusal(client: httpx2.Client, content: bytes, status: int) -> None:
    assert works(client)

    refused = client.post(PUSH, content=content)

    assert refused.status_code == status
    assert refused.json()["success"] is False
    assert works(client)
    assert waiting(client) == 2


@pytest.mark.fault("F36")
def test_a_body_in_endless_chunks_is_cut_off(client: httpx2.Client) -> None:
    refused = client.post(PUSH, content=(b"x" * 64_000 for _ in range(100)))

    assert refused.status_code == 413
    assert works(client)


@pytest.mark.fault("F36")
def test_a_header_of_a_megabyte_is_refused_and_the_next_connection_works(client: httpx2.Client) -> None:
    try:
        refused = client.post(PUSH, json={"body": 1}, headers={"x-large": "x" * 1_000_000})
        assert refused.status_code in (400, 431)
    except httpx2.HTTPError:
        pass  # it may be closed before all of it was sent

    assert works(client)
    assert waiting(client) == 1


@pytest.mark.fault("F53")
def test_garbage_and_half_a_request_disturb_no_other_client(url: str, client: httpx2.Client) -> None:
    host, port = url.removeprefix("http://").split(":")
    head = f"POST {PUSH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 100\r\n\r\n".encode()
    for sent in (b"\0\xff garbage\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", head + b'{"body": 1'):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(sent)

    assert works(client)
    assert waiting(client) == 1


@pytest.mark.fault("F53")
def test_idle_connections_and_contradictions_about_a_body_disturb_no_other_client(
    url: str, client: httpx2.Client
) -> None:
    host, port = url.removeprefix("http://").split(":")
    head = f"POST {PUSH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n"
    body = '{"body": 1}'
    many = "".join(f"x-{number}: 1\r\n" for number in range(40_000))
    contradictions = {
        "two lengths": f"{head}content-length: 5\r\ncontent-length: 11\r\n\r\n{body}",
        "a length that is none": f"{head}content-length: -1\r\n\r\n{body}",
        "no length at all, and chunks that are none": f"{head}transfer-encoding: chunked\r\n\r\nzz\r\n{body}\r\n",
        "forty thousand headers": f"{head}{many}content-length: 11\r\n\r\n{body}",
    }
    idle = [socket.create_connection((host, int(port)), timeout=10) for _ in range(100)]
    try:
        for what, sent in contradictions.items():
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                assert is_refused(connection, sent.encode()), what
        assert works(client)
        assert waiting(client) == 1
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.fault("F53")
def test_a_request_that_is_never_complete_is_hung_up_on_and_a_slow_one_is_not(
    url: str, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.5)
    head = f"POST {PUSH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n"
    rest = 'content-length: 11\r\n\r\n{"body": 1}'

    for begun in ("", head[:30], f"{head}content-length: 100\r\n\r\n"):
        with connected(url) as slow:
            slow.sendall(begun.encode())
            assert said_by(slow).startswith("HTTP/1.1 408"), begun
    with connected(url) as steady:
        for part in (head, rest[:30], rest[30:]):
            steady.sendall(part.encode())
            time.sleep(0.1)
        assert steady.recv(4_096).startswith(b"HTTP/1.1 200")
        steady.sendall(head[:30].encode())
        assert "HTTP/1.1 408" in said_by(steady), "the second request of a connection"
    assert works(client)
    assert waiting(client) == 2


def test_small_answers_are_not_held_back_on_a_connection_that_is_kept(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_on: list[int] = []
    made = connection.Connection.connection_made

    def noticed(self: connection.Connection, transport: Any) -> None:
        made(self, transport)
        set_on.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(connection.Connection, "connection_made", noticed)

    assert httpx2.get(f"{url}/health", trust_env=False).status_code == 200

    assert set_on == [1]


def test_a_request_with_two_lengths_ends_its_connection(url: str) -> None:
    head = f"POST {PUSH} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    with connected(url) as client:
        client.sendall(f"{head}0\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        said = said_by(client)

    assert said.startswith("HTTP/1.1 400")
    assert said.count("HTTP/1.1") == 1, "the request behind it was answered"


def test_a_path_with_a_slash_at_its_end_is_no_path_and_repeats_no_header(url: str) -> None:
    answer = httpx2.get(f"{url}/health/", headers={"host": "evil.example"}, trust_env=False, follow_redirects=False)

    assert answer.status_code == 404
    assert answer.json()["success"] is False
    assert "evil.example" not in str(answer.headers) + answer.text


def test_one_address_holds_at_most_its_share_of_the_connections(tmp_path: Path) -> None:
    app = shop_app("cloudflare")
    app.database = str(tmp_path / "shop.db")
    with served(app, AddressLimit(most=5, counts_loopback=True)) as url:
        held = [connected(url) for _ in range(5)]
        with connected(url) as one_more:
            assert said_by(one_more).startswith("HTTP/1.1 429")
        assert answers(held[0])
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10, source_address=("127.0.0.2", 0)) as neighbour:
            assert answers(neighbour)
        for each in held:
            each.close()


def test_this_machine_holds_as_many_connections_as_it_likes(tmp_path: Path) -> None:
    app = shop_app("cloudflare")
    app.database = str(tmp_path / "shop.db")
    with served(app, AddressLimit(most=2)) as url:
        held = [connected(url) for _ in range(5)]
        assert all(answers(each) for each in held)
        for each in held:
            each.close()


def answers(client: socket.socket) -> bool:
    client.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    return client.recv(4_096).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "address, others, allowed",
    [
        ("198.51.100.7", ["198.51.100.7"], True),
        ("198.51.100.7", ["198.51.100.7"] * 2, False),
        ("198.51.100.7", ["::ffff:198.51.100.7"] * 2, False),
        ("198.51.100.7", ["198.51.100.8"] * 9, True),
        ("2001:db8::1", ["2001:db8::2", "2001:db8::3"], False),
        ("2001:db8:0:1::1", ["2001:db8::2"] * 9, True),
        ("127.0.0.1", ["127.0.0.1"] * 9, True),
        ("::1", ["::1"] * 9, True),
        ("::ffff:127.0.0.1", ["127.0.0.1"] * 9, True),
        ("fe80::1%eth0", ["fe80::1%eth0"] * 2, False),
        ("192.0.2.1", ["192.0.2.1"] * 9, True),
    ],
)
def test_connections_are_counted_by_client_but_not_those_of_a_proxy(
    address: str, others: list[str], allowed: bool
) -> None:
    assert AddressLimit(most=2, proxies=["192.0.2.1"]).allows(address, others) is allowed


def test_a_quarter_of_the_connections_is_the_share_and_five_seconds_the_time() -> None:
    assert 4 * AddressLimit().most == connection.CONNECTIONS_MAX
    assert connection.REQUEST_SECONDS == 5.0


def connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def said_by(server: socket.socket) -> str:
    """All that comes before it hangs up."""
    said = b""
    while part := server.recv(4_096):
        said += part
    return said.decode()


def is_refused(connection: socket.socket, sent: bytes) -> bool:
    """Told so, or hung up on."""
    try:
        connection.sendall(sent)
        answer = connection.recv(200)
    except ConnectionError:
        return True
    return answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
