"""Logs: one line an event, whatever is in it; no secret in any of them; and no log can hurt the engine."""

from __future__ import annotations

import io
import json
import logging
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config import LogConfig
from penstock.logs import attach
from penstock.model.outcome import DONE, Again, Failure
from penstock.model.redaction import HIDDEN, is_secret, redacted, without_secrets
from penstock.runtime.events import (
    Events,
    MessageFailed,
    MessageSettled,
    StoreFailed,
    WorkerStarted,
    WorkerStopped,
)

CANARY = "hunter2-canary"
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class Log(io.StringIO):
    """A stream that may claim to be a terminal."""

    def __init__(self, *, tty: bool = False) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture(autouse=True)
def clean_root() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level


def failed(error: str) -> MessageFailed:
    return MessageFailed("orders", "id-1", "order.placed", 2, error, True, "corr-1")


def test_an_event_is_one_object_with_its_facts_as_fields(log: Log) -> None:
    events = Events()
    attach(events, LogConfig(), log)

    events.emit(failed("ValueError: no"))

    (line,) = log.objects()
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "event": "message.failed",
        "action": "failed",
        "success": False,
        "source": "",
        "queue_timestamp": "",
        "processing_delay_ms": 0.0,
        "queue": "orders",
        "event_id": "id-1",
        "type": "order.placed",
        "attempt": 2,
        "error": "ValueError: no",
        "will_retry": True,
        "correlation_id": "corr-1",
        "handler": "",
        "place": None,
        "traceback": None,
        "wait_seconds": None,
    }


def test_lines_of_the_program_itself_look_the_same(log: Log) -> None:
    attach(Events(), LogConfig(), log)

    logging.getLogger("shop").warning("sold %s", "a lamp")
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("shop").exception("it failed")

    sold, trouble = log.objects()
    assert (sold["event"], sold["logger"], sold["level"]) == ("sold a lamp", "shop", "warning")
    assert trouble["traceback"].endswith("ValueError: no")


@pytest.mark.parametrize(
    "level, told",
    [("debug", 3), ("info", 2), ("warning", 1), ("error", 1)],
)
def test_only_what_is_as_grave_as_asked_for_is_reported(log: Log, level: Any, told: int) -> None:
    events = Events()
    attach(events, LogConfig(level=level), log)

    events.emit(MessageSettled("orders", "id", "type", 1, DONE, "corr"))
    events.emit(WorkerStopped(1, 0))
    events.emit(StoreFailed("shop.db", "the disk failed"))

    assert len(log.lines()) == told


def test_what_happens_per_message_is_not_put_into_words_unless_asked_for(log: Log) -> None:
    quiet, loud = Events(), Events()

    attach(quiet, LogConfig(level="info"), log)
    attach(loud, LogConfig(level="debug"), log)

    assert not quiet.wanted(MessageSettled)
    assert quiet.wanted(WorkerStarted)
    assert loud.wanted(MessageSettled)


def test_a_value_of_the_engine_is_shown_with_its_kind(log: Log) -> None:
    events = Events()
    attach(events, LogConfig(level="debug"), log)

    events.emit(MessageSettled("orders", "id", "type", 1, Again(30.0, failure=Failure("ValueError", "no")), "corr"))

    assert log.objects()[0]["settlement"] == {
        "kind": "again",
        "seconds": 30.0,
        "charged": True,
        "failure": {"kind": "failure", "error_class": "ValueError", "message": "no", "traceback": None},
    }


def test_a_terminal_gets_text_and_anything_else_gets_json() -> None:
    terminal, pipe = Log(tty=True), Log()
    for stream in (terminal, pipe):
        events = Events()
        stop = attach(events, LogConfig(), stream)
        events.emit(WorkerStopped(7, 2))
        stop()

    assert terminal.lines()[0].endswith("worker.stopped worker=7 released=2")
    assert pipe.objects()[0]["released"] == 2


def test_colours_are_for_terminals_whose_owner_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, codes in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", wanted)
        terminal, events = Log(tty=True), Events()
        stop = attach(events, LogConfig(), terminal)
        events.emit(WorkerStopped(7, 2))
        stop()
        assert ("\x1b[32m" in terminal.getvalue()) is codes


def test_after_it_is_taken_off_nothing_is_logged(log: Log) -> None:
    events = Events()
    stop = attach(events, LogConfig(), log)

    stop()
    events.emit(WorkerStopped(7, 2))

    assert log.getvalue() == ""


# -- hostile text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "text"])
@given(text=st.text() | st.text(alphabet='\n\r\x0b\x0c\x1b\x85\u2028\u2029\u202e\x00\ud800ab"'))
def test_a_line_is_one_line_and_moves_no_cursor_whatever_was_crawled(form: Any, text: str) -> None:
    log, events = Log(), Events()
    stop = attach(events, LogConfig(format=form), log)

    events.emit(failed(text))
    logging.getLogger("shop").error("%s", text)
    stop()

    assert len(log.lines()) == 2
    written = log.getvalue().replace("\n", "")
    assert not any(unicodedata.category(character) == "Cc" or character in BIDI for character in written)
    log.getvalue().encode()


def test_a_long_text_is_cut(log: Log) -> None:
    events = Events()
    attach(events, LogConfig(), log)

    events.emit(failed("x" * 1_000_000))

    assert len(log.getvalue()) < 5_000
    assert "(996000 more)" in log.getvalue()


def test_a_forged_event_stays_in_its_field(log: Log) -> None:
    events = Events()
    attach(events, LogConfig(), log)

    events.emit(failed('x"}\n{"level":"error","event":"storage.filled"}'))

    assert [line["event"] for line in log.objects()] == ["message.failed"]


# -- secrets ------------------------------------------------------------------------------------------------


@pytest.mark.fault("F48")
@pytest.mark.spec("A12-06")
@pytest.mark.parametrize(
    "text",
    [
        f"GET https://ada:{CANARY}@shop.example/orders failed",
        f"postgresql://penstock:{CANARY}@db.example:5432/shop",
        f"https://shop.example/?page=2&api_key={CANARY}&sort=asc",
        f"https://shop.example/?access_token={CANARY}",
        f"Authorization: Bearer {CANARY}",
        f"authorization: Basic {CANARY}==",
        f"Cookie: a=1; session={CANARY}; b=2",
        f"Set-Cookie: sid={CANARY}; Path=/",
        f"token={CANARY}",
        f'{{"password": "{CANARY}", "user": "ada"}}',
        f"{{'client_secret': '{CANARY}'}}",
        f"X-Api-Key: {CANARY}",
        f"bearer {CANARY}",
        f"PENSTOCK_TOKEN={CANARY} penstock serve",
        f"smtp_password = {CANARY}",
        *(f"{word}={CANARY}" for word in ("PWD", "Passphrase", "signature", "my_credential", "private-key", "cookie")),
        f"für https://ada:{CANARY}@shop.example",
    ],
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_a_secret_in_a_text_is_not_logged(log: Log, text: str, form: Any) -> None:
    events = Events()
    attach(events, LogConfig(format=form, level="debug"), log)

    events.emit(failed(f"HTTPError: {text}"))
    logging.getLogger("shop").error("called %s", text)
    try:
        raise ConnectionError(text)
    except ConnectionError:
        logging.getLogger("shop").exception("failed")
    events.emit(MessageSettled("orders", "id", "type", 1, Again(30.0, failure=Failure("HTTPError", text)), "corr"))

    assert CANARY not in log.getvalue()
    assert HIDDEN in log.getvalue()


@pytest.mark.spec("A12-06")
@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "apiKey",
        "api-key",
        "X-Api-Key",
        "Authorization",
        "Set-Cookie",
        "clientSecret",
        "refresh_token",
        "PENSTOCK_TOKEN",
        "private_key",
        "credentials",
        "webhook.signature",
    ],
)
def test_a_field_with_the_name_of_a_secret_is_not_logged(log: Log, name: str) -> None:
    attach(Events(), LogConfig(), log)

    logging.getLogger("shop").error("called", extra={"facts": {"headers": {name: CANARY}, name: [CANARY]}})

    assert is_secret(name)
    assert CANARY not in log.getvalue()


@pytest.mark.parametrize("name", ["secretary", "tokenizer", "passenger", "keyboard", "author", "queue", "attempt"])
def test_a_field_that_only_looks_like_one_is_shown(name: str) -> None:
    assert without_secrets({name: "value"}) == {name: "value"}


def test_numbers_are_no_secrets() -> None:
    assert without_secrets({"prompt_tokens": 1_200, "token": None}) == {"prompt_tokens": 1_200, "token": None}


@pytest.mark.parametrize(
    "text",
    [
        "select id from apps where seen_at < :stale",
        "https://shop.example/a:b/c?page=2",
        "Unexpected token: '}' at 3",
        "12:30:00 worker 3 stopped",
        "ada@shop.example wrote to bob@shop.example",
    ],
)
def test_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


@given(text=st.text(alphabet="tokenpassword=:/@. bearer\"'", max_size=2_000))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


# -- subscribers --------------------------------------------------------------------------------------------


def test_a_subscriber_that_raises_is_dropped_reported_once_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    seen: list[object] = []
    calls: list[object] = []

    def broken(event: object) -> None:
        calls.append(event)
        raise ValueError("no")

    events.subscribe(broken)
    events.subscribe(seen.append)

    for _ in range(3):
        events.emit(WorkerStopped(1, 0))

    assert len(seen) == 3
    assert len(calls) == 1
    (record,) = caplog.records
    assert record.name == "penstock.events"
    assert "worker.stopped" in record.getMessage()


def test_a_subscriber_may_leave_while_it_is_called() -> None:
    events = Events()
    seen: list[object] = []

    def once(event: object) -> None:
        seen.append(event)
        leave()

    leave = events.subscribe(once)
    events.subscribe(seen.append)

    events.emit(WorkerStopped(1, 0))
    events.emit(WorkerStopped(1, 0))

    assert len(seen) == 3
    leave()


def test_an_interrupt_passes_through_a_subscriber() -> None:
    events = Events()

    def interrupted(event: object) -> None:
        raise KeyboardInterrupt

    events.subscribe(interrupted)

    with pytest.raises(KeyboardInterrupt):
        events.emit(WorkerStopped(1, 0))


def test_what_lies_more_than_six_levels_deep_is_left_out_of_a_log() -> None:
    def nested(levels: int) -> object:
        return "seen" if levels == 0 else {"a": nested(levels - 1)}

    assert "seen" in str(without_secrets(nested(6)))
    assert "seen" not in str(without_secrets(nested(7)))
    assert without_secrets([[[[[["seen"]]]]]]) == [[[[[["seen"]]]]]]
    assert without_secrets([[[[[[["hidden"]]]]]]]) == [[[[[["..."]]]]]]
