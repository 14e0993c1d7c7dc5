"""Servers that mean harm, on real sockets: each is cut off in bounds, with an error that says what it was."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import tracemalloc
import warnings
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import pytest

from penstock.model.errors import PenstockError, Unavailable, Unparsable
from penstock.outbound import network
from penstock.outbound.addresses import Rules
from penstock.outbound.answers import Forbidden
from penstock.outbound.bodies import Bounds
from penstock.outbound.client import Client
from tests import sockets
from tests.sockets import Talk

BOUNDS = Bounds(body_bytes=1_000_000, total_seconds=1.5, progress_seconds=0.5)
HEAD = b"HTTP/1.1 200 OK\r\n"
MEMORY_MAX = 50_000_000


@asynccontextmanager
async def server(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """What it does after it has read a request is up to `talk`."""

    async def answer_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            await talk(reader, writer)

    async with sockets.server(answer_each, tls) as port:
        yield port


async def outcome(talk: Talk, bounds: Bounds = BOUNDS) -> tuple[type[PenstockError], object]:
    """The error that one call to such a server ends in, and its reason."""
    async with server(talk) as port, Client(rules=Rules(allow=[f"127.0.0.1:{port}"]), bounds=bounds) as web:
        with pytest.raises(PenstockError) as caught:
            await web.get(f"http://127.0.0.1:{port}/")
    return type(caught.value), caught.value.facts.get("reason")


def sends(*pieces: bytes, then: bytes = b"", pause: float = 0.0, hang_up: bool = False) -> Talk:
    """Sends the pieces, and then one more over and over, or nothing any more."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(pieces)
        await writer.drain()
        while then:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(pause)
        if hang_up:
            raise ConnectionResetError
        await asyncio.sleep(3_600)

    return talk


def answer(body: bytes, *headers: bytes) -> bytes:
    return HEAD + b"".join(header + b"\r\n" for header in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def zeros(size: int, *, window: int) -> bytes:
    packer = zlib.compressobj(9, wbits=window)
    return b"".join(packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)) + packer.flush()


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = zeros(200_000_000, window=31)
BOMB_OF_BOMBS = gzip.compress(BOMB)

LARGE = (Unparsable, "too_large")
CODING = (Unparsable, "bad_coding")
HEADERS = (Unparsable, "too_many_headers")
NOT_HTTP = (Unparsable, "bad_http")
SLOW = (Unavailable, "timeout")
CUT = (Unavailable, "connection")


@pytest.mark.fault("F41")
@pytest.mark.parametrize(
    "talk, expected",
    [
        pytest.param(sends(HEAD + b"\r\n", then=b"x" * 65_536), LARGE, id="endless body"),
        pytest.param(sends(CHUNKED, then=b"3e8\r\n" + b"x" * 1_000 + b"\r\n"), LARGE, id="endless chunks"),
        pytest.param(sends(answer(b"x" * 1_000_001)), LARGE, id="honest and too large"),
        pytest.param(sends(HEAD + b"\r\n", then=b".", pause=0.1), SLOW, id="dripping body"),
        pytest.param(sends(HEAD + b"\r\nbegun"), SLOW, id="body that stops"),
        pytest.param(sends(), SLOW, id="no answer"),
        pytest.param(sends(HEAD, then=b"X-A: b\r\n", pause=0.1), SLOW, id="dripping headers"),
        pytest.param(sends(then=b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.001), SLOW, id="endless continue"),
        pytest.param(sends(CHUNKED + b"5;", then=b"x", pause=0.1), SLOW, id="dripping chunk header"),
        pytest.param(sends(answer(BOMB, b"Content-Encoding: gzip")), LARGE, id="gzip bomb"),
        pytest.param(
            sends(answer(zeros(100_000_000, window=15), b"Content-Encoding: deflate")), LARGE, id="deflate bomb"
        ),
        pytest.param(
            sends(answer(zeros(100_000_000, window=-15), b"Content-Encoding: deflate")), LARGE, id="raw deflate bomb"
        ),
        pytest.param(
            sends(answer(BOMB_OF_BOMBS, b"Content-Encoding: gzip, gzip")), CODING, id="gzip in gzip, declared once"
        ),
        pytest.param(
            sends(answer(BOMB_OF_BOMBS, b"Content-Encoding: gzip", b"Content-Encoding: gzip")),
            CODING,
            id="declared twice",
        ),
        pytest.param(sends(answer(b"\x1b\xff", b"Content-Encoding: br")), CODING, id="brotli, unasked"),
        pytest.param(sends(answer(b"\x28\xb5\x2f\xfd", b"Content-Encoding: zstd")), CODING, id="zstd, unasked"),
        pytest.param(
            sends(HEAD + b"Content-Encoding: gzip\r\n\r\n", then=gzip.compress(b"") * 40),
            CODING,
            id="endless empty members",
        ),
        pytest.param(
            sends(HEAD + b"Content-Encoding: deflate\r\n\r\n\x78\x9c", then=b"\0\0\0\xff\xff" * 10_000),
            LARGE,
            id="endless empty blocks",
        ),
        pytest.param(sends(HEAD, then=b"X-Flood: " + b"x" * 1_000 + b"\r\n"), HEADERS, id="header flood"),
        pytest.param(sends(HEAD + b"X-Flood: ", then=b"x" * 10_000), HEADERS, id="endless header"),
        pytest.param(sends(HEAD + b"X: y\r\n" * 300 + b"\r\n", hang_up=True), HEADERS, id="too many headers"),
        pytest.param(sends(HEAD + b"Content-Length: 100\r\n\r\nshort", hang_up=True), CUT, id="less than promised"),
        pytest.param(sends(HEAD + b"Content-Length: 100\r\n\r\nshort"), SLOW, id="less than promised, and waits"),
        pytest.param(sends(CHUNKED + b"5\r\nhel", hang_up=True), CUT, id="cut in a chunk"),
        pytest.param(sends(hang_up=True), CUT, id="hangs up"),
        pytest.param(
            sends(HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
            NOT_HTTP,
            id="two lengths that differ",
        ),
        pytest.param(sends(HEAD + b"Content-Length: -1\r\n\r\n"), NOT_HTTP, id="negative length"),
        pytest.param(
            sends(HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", hang_up=True), NOT_HTTP, id="vast length"
        ),
        pytest.param(sends(CHUNKED + b"zz\r\n"), NOT_HTTP, id="chunk of no size"),
        pytest.param(sends(CHUNKED + b"f" * 30 + b"\r\n"), NOT_HTTP, id="chunk of vast size"),
        pytest.param(sends(b"SSH-2.0-OpenSSH_9.6\r\n"), SLOW, id="another protocol"),
        pytest.param(sends(b"\0" * 1_000), NOT_HTTP, id="zeros"),
        pytest.param(sends(HEAD + b"no colon\r\n\r\n"), NOT_HTTP, id="bad header"),
        pytest.param(
            sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
            NOT_HTTP,
            id="upgrade, unasked",
        ),
    ],
)
def test_a_hostile_server_is_cut_off(talk: Talk, expected: tuple[type[PenstockError], str]) -> None:
    assert asyncio.run(outcome(talk)) == expected


@pytest.mark.fault("F41")
def test_a_bomb_takes_no_memory() -> None:
    assert len(BOMB) < 210_000
    tracemalloc.start()
    try:
        found = asyncio.run(outcome(sends(answer(BOMB, b"Content-Encoding: gzip")), Bounds()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == LARGE
    assert peak < MEMORY_MAX


@pytest.mark.fault("F41")
def test_a_client_that_was_stalled_a_hundred_times_still_works() -> None:
    async def work() -> None:
        stalled = True

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if stalled:
                await sends(HEAD + b"Content-Length: 9\r\n\r\nx")(reader, writer)
            writer.write(answer(b"well"))
            await writer.drain()

        bounds = Bounds(progress_seconds=0.05)
        async with server(talk) as port, Client(rules=Rules(allow=[f"127.0.0.1:{port}"]), bounds=bounds) as web:
            url = f"http://127.0.0.1:{port}/"
            # More than the pool holds, so that a connection that is not given back would be missed.
            for _ in range(3):
                results = await asyncio.gather(*(web.get(url) for _ in range(50)), return_exceptions=True)
                assert {type(result) for result in results} == {Unavailable}
            stalled = False
            for _ in range(3):
                assert (await web.get(url)).body == b"well"

    asyncio.run(work())


@pytest.mark.fault("F41")
def test_what_comes_behind_a_body_is_not_taken_for_the_next_answer() -> None:
    async def work() -> list[bytes]:
        answers = [answer(b"ok") + answer(b"poison"), answer(b"well"), answer(b"well")]

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answers.pop(0))
            await writer.drain()

        async with server(talk) as port, Client(rules=Rules(allow=[f"127.0.0.1:{port}"])) as web:
            return [(await web.get(f"http://127.0.0.1:{port}/")).body for _ in range(3)]

    assert asyncio.run(work()) == [b"ok", b"well", b"well"]


def test_a_caller_that_gives_up_leaves_nothing_behind() -> None:
    async def work() -> None:
        drip = sends(HEAD + b"\r\n", then=b".", pause=0.01)
        async with server(drip) as port, Client(rules=Rules(allow=[f"127.0.0.1:{port}"])) as web:
            before = len(asyncio.all_tasks())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await web.get(f"http://127.0.0.1:{port}/")
            assert len(asyncio.all_tasks()) <= before + 1  # the server's side of it

    asyncio.run(work())


# -- names and addresses --------------------------------------------------------------------------------------------


def resolver(*answers: Sequence[str] | OSError) -> tuple[Callable[[str, int], Awaitable[Sequence[str]]], list[str]]:
    """A name server that answers differently each time, and what it was asked."""
    asked: list[str] = []
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, OSError):
            raise found
        return found

    return resolve, asked


@pytest.mark.fault("F40")
@pytest.mark.parametrize("first", ["8.8.8.8", "2606:4700::1111"])
def test_the_address_that_was_checked_is_the_one_connected_to(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[tuple[str, int]] = []

    async def dial(host: str, port: int, **_: object) -> None:
        dialled.append((host, port))
        raise httpcore2.ConnectError("nobody there")

    monkeypatch.setattr(network, "connected", dial)
    resolve, asked = resolver([first], ["127.0.0.1"], ["169.254.169.254"], ["::1"])

    async def work() -> list[BaseException | object]:
        async with Client(resolver=resolve) as web:
            return [
                (await asyncio.gather(web.get("http://flips.example/"), return_exceptions=True))[0] for _ in range(4)
            ]

    results = asyncio.run(work())

    assert dialled == [(first, 80)]
    assert [type(result) for result in results] == [Unavailable, Forbidden, Forbidden, Forbidden]
    assert asked == ["flips.example"] * 4


@pytest.mark.fault("F40")
def test_a_redirect_to_a_name_of_this_machine_is_refused_before_it_is_called() -> None:
    async def work() -> None:
        calls: list[str] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            calls.append("called")
            writer.write(
                b"HTTP/1.1 302 Found\r\nLocation: http://near.example:%d/\r\nContent-Length: 0\r\n\r\n" % other
            )
            await writer.drain()

        async with server(talk) as port, server(talk) as other:
            resolve, _ = resolver(["127.0.0.1"])
            async with Client(rules=Rules(allow=[f"127.0.0.1:{port}"]), resolver=resolve) as web:
                with pytest.raises(Forbidden) as caught:
                    await web.get(f"http://far.example:{port}/")
        assert caught.value.reason == "blocked_address"
        assert calls == ["called"]

    asyncio.run(work())


def test_a_name_without_an_address_is_unavailable_and_a_dead_address_gives_way_to_the_next() -> None:
    async def work() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(b"well"))
            await writer.drain()

        async with server(talk) as port:
            allow = [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]
            url = f"http://shop.example:{port}/"
            nothing: list[Sequence[str] | OSError] = [socket.gaierror(-2, "Name or service not known"), []]
            for found in nothing:
                resolve, _ = resolver(found)
                async with Client(rules=Rules(allow=allow), resolver=resolve) as web:
                    with pytest.raises(Unavailable) as caught:
                        await web.get(url)
                    assert caught.value.facts["url"] == url
            resolve, _ = resolver(["127.0.0.2", "127.0.0.1"])
            async with Client(rules=Rules(allow=allow), resolver=resolve) as web:
                assert (await web.get(url)).body == b"well"

    asyncio.run(work())


# -- TLS ------------------------------------------------------------------------------------------------------------


class Papers:
    """Certificates made for one test run, and the authority that signed the good ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._openssl("req -x509 -newkey rsa:2048 -nodes -subj /CN=authority -days 2 -keyout ca.key -out ca.pem")
        self.trusted = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        self._openssl("req -x509 -newkey rsa:2048 -nodes -subj /CN=shop.example -days 2 -keyout self.key -out self.pem")

    def signed(self, name: str, *, days: int = 2) -> ssl.SSLContext:
        self._openssl(f"req -new -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr")
        (self.folder / "names").write_text(f"subjectAltName=DNS:{name}")
        self._openssl(
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile names -out {name}.pem"
        )
        return self.shown(name)

    def shown(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context

    def _openssl(self, command: str) -> None:
        subprocess.run(["openssl", *command.split()], cwd=self.folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make certificates")
    return Papers(tmp_path_factory.mktemp("papers"))


async def tls_outcome(shown: ssl.SSLContext, papers: Papers | None, *, unverified: bool = False) -> object:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"well"))
        await writer.drain()

    async with server(talk, shown) as port:
        resolve, _ = resolver(["127.0.0.1"])
        async with Client(
            rules=Rules(allow=[f"127.0.0.1:{port}"]),
            resolver=resolve,
            tls=papers.trusted if papers else None,
            unverified=[f"shop.example:{port}"] if unverified else [],
            bounds=Bounds(total_seconds=10, progress_seconds=5),
        ) as web:
            try:
                return (await web.get(f"https://shop.example:{port}/")).body
            except Forbidden as error:
                return error.reason


@pytest.mark.fault("F49", "F40")
def test_a_good_certificate_is_taken_under_the_name_and_not_the_address(papers: Papers) -> None:
    shown = papers.signed("shop.example")
    names: list[str] = []
    shown.sni_callback = lambda _socket, name, _context: names.append(name)

    assert asyncio.run(tls_outcome(shown, papers)) == b"well"
    assert names == ["shop.example"]


@pytest.mark.fault("F49")
def test_bad_certificates_are_refused(papers: Papers) -> None:
    assert asyncio.run(tls_outcome(papers.shown("self"), papers)) == "bad_certificate"
    assert asyncio.run(tls_outcome(papers.signed("other.example"), papers)) == "bad_certificate"
    assert asyncio.run(tls_outcome(papers.signed("shop.example", days=-1), papers)) == "bad_certificate"
    assert asyncio.run(tls_outcome(papers.signed("shop.example"), None)) == "bad_certificate"


@pytest.mark.fault("F49")
def test_a_certificate_goes_unchecked_only_where_the_operator_says_so_and_is_reported(
    papers: Papers, caplog: pytest.LogCaptureFixture
) -> None:
    assert asyncio.run(tls_outcome(papers.shown("self"), papers, unverified=True)) == b"well"
    assert "The certificate of shop.example:" in caplog.text


@pytest.mark.fault("F49")
@pytest.mark.parametrize("old", [True, False])
def test_old_tls_is_refused(papers: Papers, old: bool) -> None:
    shown, lax = papers.signed("shop.example"), ssl.create_default_context(cafile=str(papers.folder / "ca.pem"))
    shown.set_ciphers("ALL:@SECLEVEL=0")
    lax.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        lax.minimum_version = ssl.TLSVersion.TLSv1
        if old:
            shown.minimum_version = shown.maximum_version = ssl.TLSVersion.TLSv1

    def serve_one(listening: socket.socket) -> None:
        # Blocking, because asyncio hangs up without a word where OpenSSL tells the other side why.
        connection, _ = listening.accept()
        try:
            with shown.wrap_socket(connection, server_side=True) as secure:
                secure.recv(4_096)
                secure.sendall(answer(b"well"))
        except OSError:
            connection.close()

    async def work() -> object:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            resolve, _ = resolver(["127.0.0.1"])
            served = asyncio.create_task(asyncio.to_thread(serve_one, listening))
            async with Client(rules=Rules(allow=[f"127.0.0.1:{port}"]), resolver=resolve, tls=lax) as web:
                try:
                    return (await web.get(f"https://shop.example:{port}/")).body
                except Forbidden as error:
                    return error.reason
                finally:
                    await served

    assert asyncio.run(work()) == ("bad_tls" if old else b"well")


@pytest.mark.fault("F49")
def test_a_handshake_that_never_ends_is_given_up_and_the_connection_closed() -> None:
    async def work() -> None:
        closed = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            closed.set()

        listening = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening, Client(rules=Rules(allow=[f"127.0.0.1:{port}"]), bounds=BOUNDS) as web:
            with pytest.raises(Unavailable) as caught:
                await web.get(f"https://127.0.0.1:{port}/")
            assert caught.value.facts["reason"] == "timeout"
            await asyncio.wait_for(closed.wait(), timeout=30)

    asyncio.run(work())


@pytest.mark.fault("F49")
def test_a_server_that_speaks_no_tls_is_refused() -> None:
    async def work() -> None:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(b"plain"))
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        async with listening, Client(rules=Rules(allow=[f"127.0.0.1:{port}"]), bounds=BOUNDS) as web:
            with pytest.raises(Forbidden) as caught:
                await web.get(f"https://127.0.0.1:{port}/")
        assert caught.value.reason == "bad_tls"

    asyncio.run(work())
