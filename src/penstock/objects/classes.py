"""Classes of objects: introduced in the order of their tags, and what is done when an alarm is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.model.errors import BadApp
from penstock.objects.object import Object
from penstock.runtime.events import AlarmWasLost

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

_TAG = re.compile(r"v([1-9][0-9]{0,5})")


class ObjectClass(NamedTuple):
    cls: type[Object]
    tag: str | None


class Home(Protocol):
    async def opened(self) -> Engine: ...
    @property
    def dead(self) -> Any: ...


async def introduce(engine: Engine, classes: Iterable[ObjectClass]) -> None:
    """Notes each class under its tag. A tag that comes after one that was never there is refused, as is a class that was
    introduced under another."""
    tagged = sorted((_number(each), each) for each in classes if each.tag is not None)
    expected = {number for number, _ in tagged}
    missing = [number for number in range(1, max(expected, default=0) + 1) if number not in expected]
    if missing:
        raise BadApp(f"Objects are tagged up to v{max(expected)}, and v{missing[0]} is missing. Tags leave no gap.")
    now = engine.clock.now()
    for _, each in tagged:
        assert each.tag is not None
        before = await engine.in_writer(partial(engine.writer.objects.introduce, each.cls.__name__, each.tag, now=now))
        if before is not None and before != each.tag:
            raise BadApp(f"{each.cls.__name__} was introduced as {before} and is tagged {each.tag} now. Keep its tag.")


def _number(each: ObjectClass) -> int:
    found = _TAG.fullmatch(each.tag or "")
    if found is None:
        raise BadApp(f"{each.cls.__name__} has the tag {each.tag!r}; tags are v1, v2 and so on.")
    return int(found[1])


async def parked(home: Home, letter: Any) -> None:
    """An event of an object has failed for the last time: a lost alarm is flagged on its object."""
    payload = home.dead.payload(letter)
    if letter.type != "object.alarm":
        return
    engine = await home.opened()
    class_name, _, name = payload.name.partition("/")
    await engine.in_writer(partial(engine.writer.objects.lost_alarm, class_name, name, lost=True))
    engine.events.emit(AlarmWasLost(payload.name, letter.error_message))
