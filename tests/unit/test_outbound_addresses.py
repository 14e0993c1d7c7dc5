"""Where the client may go: every disguise of an address that is not public is refused, and exceptions are exact."""

from __future__ import annotations

import ipaddress
import re

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import BadConfig
from penstock.outbound.addresses import Rules, is_public, origin_of
from penstock.outbound.answers import Forbidden, redacted_url

ADDRESSES = """
    127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.254
    169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.254 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1
    198.19.255.254 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16
    [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1] [::ffff:8.8.8.8] [::127.0.0.1]
    [::ffff:0:127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b::169.254.169.254] [64:ff9b:1::7f00:1]
    [2002:7f00:1::] [2002:a9fe:a9fe::1] [2002:c0a8:1::1] [2001::1] [2001:0:7f00:1::] [2001:10::1] [2001:20::1]
    [2001:db8::1] [3fff::1] [fc00::1] [fd00::1] [fd00:ec2::254] [fe80::1] [fe80::1%25eth0] [fec0::1] [ff02::1] [ff0e::1]
    [100::1] [5f00::1] [2600:1f18::5efe:7f00:1] [2600:1f18::200:5efe:10.0.0.1]
""".split()

SPELLINGS = """
    2130706433 0x7f000001 017700000001 0x7f.1 127.1 127.0.1 0177.0.0.1 0x7f.0.0.1 127.0.0.0x1 00000177.0.0.1 127.0.0.01
    127.00.0.1 0 0x0 0x 1 3232235521 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.43518 1.2.3.4.5 256.1.1.1
    127.0.0.1. 127.0.0.1.. 2130706433. 0x7f.1. 99999999999 shop.example.127 ①②⑦.⓪.⓪.① 127。0。0。1 １２７.０.０.１
    ⑯⑨。②⑤④。⑯⑨。②⑤④ 127%2e0%2e0%2e1 %31%32%37.0.0.1 127.0.0.1%00.shop.example 127.0.0.1%23.shop.example
""".split()

NAMES = """
    localhost LOCALHOST localhost. localhost.. a.localhost localhost.localdomain router intranet db metadata
    metadata.google.internal METADATA.google.internal. instance-data.ec2.internal printer.local nas.lan gw.home.arpa
    x.onion ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ loc\u00adalhost a..example .example -a.example a-.example a_b{}.example sh*p.example
    shop.example%0d%0a [not:an:address] [127.0.0.1] [::1 ::1 shop,example
""".split()

URLS = [
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "ftp://shop.example/",
    "dict://shop.example:11211/",
    "ldap://shop.example/",
    "jar:http://shop.example!/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "ws://shop.example/",
    "//127.0.0.1/",
    "/etc/passwd",
    "shop.example",
    "",
    "http:",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http:127.0.0.1",
    "http://",
    "http://?x",
    "http://a@127.0.0.1/",
    "http://user:secret@shop.example/",
    "http://shop.example@127.0.0.1/",
    "http://127.0.0.1@shop.example/",
    "http://shop.example:80@127.0.0.1/",
    "http://shop.example\\@127.0.0.1/",
    "http://127.0.0.1\\@shop.example/",
    "http://127.0.0.1\\.shop.example/",
    "http://shop.example:0/",
    "http://shop.example:65536/",
    "http://shop.example:-1/",
    "http://shop.example:80:80/",
    "http://shop.example:http/",
    "http://shop.example\r\nHost: 127.0.0.1/",
    "http://shop.example\t/",
    " http://127.0.0.1/",
    "http:// 127.0.0.1/",
    "http://shop .example/",
    "http://127.0.0.1\x00.shop.example/",
    "http://shop.example/" + "a" * 8_000,
    "http://" + "a." * 130 + "example/",
    "http://" + "a" * 64 + ".example/",
]
CORPUS = [*(f"http://{host}/" for host in [*ADDRESSES, *SPELLINGS, *NAMES]), *URLS]


@pytest.mark.fault("F40")
@pytest.mark.parametrize("url", CORPUS)
def test_every_disguise_is_refused_before_anything_is_looked_up(url: str) -> None:
    with pytest.raises(Forbidden) as caught:
        Rules().target(url)

    assert caught.value.reason in {"blocked_address", "bad_url", "bad_scheme"}


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(set(CORPUS)) >= 140


@pytest.mark.parametrize(
    "url, called",
    [
        ("https://itunes.apple.com/lookup?id=1,2", "https://itunes.apple.com/lookup?id=1,2"),
        ("HTTPS://Shop.Example:443/A#part", "https://shop.example/A"),
        ("http://shop.example./", "http://shop.example/"),
        ("http://shop.example:8080/a b", "http://shop.example:8080/a%20b"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/"),
        ("http://0x7f.example/", "http://0x7f.example/"),
        ("http://my_shop.example/", "http://my_shop.example/"),
        ("http://shop.example/?at=a@b", "http://shop.example/?at=a@b"),
    ],
)
def test_public_addresses_are_called_in_one_spelling(url: str, called: str) -> None:
    assert str(Rules().target(url)) == called


@pytest.mark.fault("F40")
@pytest.mark.parametrize("address", [host.strip("[]") for host in ADDRESSES if "%" not in host])
def test_a_name_that_stands_for_such_an_address_is_refused(address: str) -> None:
    rules = Rules()

    with pytest.raises(Forbidden, match=re.escape("shop.example:443")) as caught:
        rules.usable("shop.example", 443, [address])

    assert caught.value.reason == "blocked_address"
    assert rules.usable("shop.example", 443, [address, "8.8.8.8"]) == ["8.8.8.8"]


@given(st.ip_addresses())
def test_what_the_standard_library_calls_private_is_never_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_reserved


def test_an_exception_holds_for_its_address_and_port_only() -> None:
    rules = Rules(allow=["127.0.0.1:8787", "[::1]:9", "Backend:9000"])

    assert str(rules.target("http://127.0.0.1:8787/a")) == "http://127.0.0.1:8787/a"
    assert str(rules.target("http://[0:0::1]:9/")) == "http://[0:0::1]:9/"
    assert str(rules.target("http://backend:9000/")) == "http://backend:9000/"
    assert rules.usable("backend", 9000, ["10.0.0.3"]) == ["10.0.0.3"]
    assert rules.usable("shop.example", 8787, ["127.0.0.1", "127.0.0.2"]) == ["127.0.0.1"]
    for url in [
        "http://127.0.0.1/",
        "http://127.0.0.2:8787/",
        "http://0x7f.1:8787/",
        "http://backend/",
        "http://[::1]/",
    ]:
        with pytest.raises(Forbidden):
            rules.target(url)


def test_a_network_can_be_closed() -> None:
    rules = Rules(deny=["8.8.0.0/16"])

    with pytest.raises(Forbidden):
        rules.target("http://8.8.8.8/")
    with pytest.raises(Forbidden):
        rules.usable("shop.example", 80, ["8.8.4.4"])
    assert str(rules.target("http://8.9.8.8/")) == "http://8.9.8.8/"


@pytest.mark.parametrize("entry", ["127.0.0.1", "", ":80", "backend:http"])
def test_an_exception_without_a_port_is_a_mistake(entry: str) -> None:
    with pytest.raises(BadConfig, match="host and port"):
        Rules(allow=[entry])
    with pytest.raises(BadConfig, match="networks"):
        Rules(deny=["8.8.8.8/33"])


def test_two_urls_of_one_owner_have_one_origin() -> None:
    assert origin_of(httpx2.URL("https://a.example")) == origin_of(httpx2.URL("https://a.example:443/b"))
    assert origin_of(httpx2.URL("https://a.example")) != origin_of(httpx2.URL("http://a.example:443/"))


@pytest.mark.parametrize(
    "url, shown",
    [
        ("https://user:pass@a.example/x@y", "https://a.example/x@y"),
        ("https://a.example/?api_key=1&page=2&sig=abc", "https://a.example/?api_key=[redacted]&page=2&sig=[redacted]"),
        ("https://a.example/?X-Amz-Signature=s3&id=7", "https://a.example/?X-Amz-Signature=[redacted]&id=7"),
        ("https://a.example/bot12:AbC-d/sendMessage", "https://a.example/bot[redacted]/sendMessage"),
        ("https://a.example/?term=keyboard&keyword=a", "https://a.example/?term=keyboard&keyword=a"),
        ("https://a.example/" + "a" * 900, "https://a.example/" + "a" * 482),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert redacted_url(url) == shown
