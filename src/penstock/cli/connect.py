"""`penstock connect`: tries a connector on its source, and checks what every connector promises."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from penstock.cli.command import Noun, refuse
from penstock.cli.output import BAD_ANSWER, FINE, Answer, fill, table
from penstock.cli.reference import load_module
from penstock.connect import contract
from penstock.connect.connector import Connector, shares
from penstock.connect.declared import DeclaredConnector
from penstock.connect.page import Page, Record
from penstock.connect.web import Http
from penstock.model.errors import BadConfig
from penstock.outbound.answers import Forbidden

SHOWN = 10  # records
VALUE_CHARACTERS = 28
FIXTURES = "fixtures"  # the folder beside the connector
file_argument = click.argument("file", metavar="FILE")
allow_option = click.option(
    "--allow", multiple=True, metavar="HOST:PORT", help="Also ask this private address, such as 127.0.0.1:8000."
)


@click.group(cls=Noun)
def connect() -> None:
    """Try a connector, and check its contract.

    FILE is a TOML file, or a Python class such as portal.py:Portal.

    Example:
      penstock connect try connectors/offers.toml --save
      penstock connect check connectors/offers.toml
    """


@connect.command("try")
@file_argument
@click.option("--save", is_flag=True, help="Save the answer as a fixture beside the file.")
@click.option("--cursor", help="Read from this cursor on.")
@allow_option
def try_connector(file: str, save: bool, cursor: str | None, allow: tuple[str, ...]) -> Answer:
    """Fetch one page from the source, and show the records in it.

    Nothing is written into a database.

    Example:
      penstock connect try connectors/offers.toml --save
    """
    return read_once(find_connector(file), cursor=cursor, allow=allow, save_for=file if save else "")


def read_once(
    connector: Connector, *, cursor: str | None = None, allow: Sequence[str] = (), save_for: str = ""
) -> Answer:
    """Read the first page of a connector, and save the answer as the fixture of a file if one is given."""
    http = contract.recording(connector, allow)
    try:
        pages = asyncio.run(contract.read_pages(connector, cursor, http, most=1))
    except Forbidden as error:
        host = urlsplit(connector.base).netloc
        raise BadConfig(str(error), hint=f"If {host} is a host of yours, add: --allow {host}") from error
    records = [record for page in pages for record in page.records]
    saved = ""
    if save_for and http.answers:
        path = fixture_of(save_for)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(http.answers), indent=1))
        saved = str(path)
    found = {"connector": connector.name, "records": [shown(each) for each in records], "fixture": saved or None}
    parts = report(connector, pages, records, saved, save_for)
    if not records and http.answers:
        parts.append(
            f"Asked for {http.answers[0].url}. Look at `records` and `id`, and at the parameters of the request."
        )
    return Answer(found | {"cursor": pages[-1].cursor if pages else None}, *parts)


@connect.command("check")
@file_argument
@allow_option
def check(file: str, allow: tuple[str, ...]) -> Answer:
    """Check what a connector promises, on its saved fixture or on the source.

    A second read from the saved cursor yields nothing old, no field is lost, and the state survives.

    Example:
      penstock connect check connectors/offers.toml
    """
    connector = find_connector(file)
    path = fixture_of(file)
    answers = _answers(path)

    def make_http() -> Http:
        return contract.replaying(connector, answers) if answers else contract.recording(connector, allow)

    checks = asyncio.run(contract.check_connector(connector, make_http))
    lines = [
        f"{'pass' if each.passed else 'FAIL'}  {each.name}{f': {each.message}' * bool(each.message)}" for each in checks
    ]
    place = f"the fixture {path}" if answers else "its source"
    passed = all(each.passed for each in checks)
    lines.append(f"{connector.name} {'keeps' if passed else 'breaks'} its contract, checked on {place}.")
    found = {"connector": connector.name, "passed": passed, "checks": [msgspec.to_builtins(each) for each in checks]}
    return Answer(found, *lines, code=FINE if passed else BAD_ANSWER)


def find_connector(file: str) -> Connector:
    """Return the connector of a TOML file, or of a class in a Python file or module."""
    if file.endswith(".toml"):
        return DeclaredConnector(file)
    place, _, name = file.partition(":")
    module = load_module(place)
    classes = {
        each.__name__: each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, Connector) and each not in (Connector, DeclaredConnector)
    }
    if name and name not in classes:
        raise BadConfig(f"{place} has no connector {name}. It has: {', '.join(classes) or 'none'}.")
    if not name and len(classes) != 1:
        raise refuse(f"{place} has {len(classes)} connectors. Name one, such as {place}:Portal.")
    return (classes[name] if name else next(iter(classes.values())))()


def fixture_of(file: str) -> Path:
    place = Path(file.partition(":")[0])
    return place.parent / FIXTURES / f"{place.stem}.json"


def _answers(path: Path) -> Sequence[contract.Answer]:
    if not path.is_file():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[contract.Answer])
    except msgspec.MsgspecError as error:
        raise BadConfig(
            f"The fixture {path} cannot be read: {error}. Save it anew with: penstock connect try"
        ) from error


def shown(record: Record) -> dict[str, object]:
    return {"id": record.id, "url": record.url, **record.data}


def report(
    connector: Connector, pages: Sequence[Page], records: Sequence[Record], saved: str, file: str
) -> list[object]:
    """Return the first records as a table, and what was found as lines."""
    if not records:
        return [f"{connector.name} has no records on its first page."]
    names = ["id", *list(records[0].data)[:7]]
    rows = [[_short(shown(each).get(name)) for name in names] for each in records[:SHOWN]]
    unreadable = sum(page.unreadable for page in pages)
    lines = [f"{len(records)} records on the first page, {unreadable} that cannot be read."]
    if more := list(records[0].data)[len(names) - 1 :]:
        lines.append(f"Also read: {', '.join(more)}. --json shows them.")
    if never := [name for name, share in shares(Page(records)).items() if not share]:
        lines.append(f"No record has a value in: {', '.join(never)}. Look at their paths.")
    if (complaint := connector.complaint(pages[0], is_first=True)) is not None:
        lines.append(f"A run would refuse this page: {complaint}.")
    if pages[-1].cursor is not None:
        lines.append(f"The cursor after it: {pages[-1].cursor}")
    if saved:
        lines.append(f"Saved {saved}. Check it with: penstock connect check {file}")
    return [fill(table(*((name, "left") for name in names)), rows), "", *lines]


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 1]}…"
