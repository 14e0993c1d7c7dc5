"""Questions that an app answers over HTTP: `@app.get("/v1/crawl/status")` above an async function that gives plain values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from penstock.contracts.clock import Clock
from penstock.model.arguments import FromZero, checked
from penstock.model.errors import BadApp
from penstock.model.stack import function_place

VERBS = ("status", "start", "stop", "reset", "tune")  # of a controller
PATH = re.compile(r"/v1(/[a-z0-9][a-z0-9_-]*)+")
Question = Callable[[], Awaitable[Any]]
AnyQuestion = TypeVar("AnyQuestion", bound=Question)


class Route(NamedTuple):
    path: str
    answer: Question


class Routes:
    def __init__(self, clock: Clock) -> None:
        self.known: dict[str, Route] = {}
        self.aliases: dict[str, str] = {}  # further paths of controllers: `/v1/prices/status` and its controller's name
        self._clock = clock
        self._kept: dict[str, tuple[float, Any]] = {}  # cached answers by path, with the time of each

    @checked
    def add(self, path: str, *, cache: FromZero = 0.0) -> Callable[[AnyQuestion], AnyQuestion]:
        """Answers GET requests whose token has the scope app:read. With `cache` an answer is given again for so many seconds,
        so that whoever asks often makes nobody count anew."""
        self._check(path, path)

        def register(question: AnyQuestion) -> AnyQuestion:
            given: object = question
            if not inspect.iscoroutinefunction(given):
                raise BadApp(
                    f"The route {path} is answered by {function_place(question)}, which is not async. Write `async def`.",
                    path=path,
                )
            asked: Question = question
            self.known[path] = Route(path, self._cached(path, asked, cache) if cache else asked)
            return question

        return register

    @checked
    def alias(self, path: str, controller: str) -> None:
        """Lets `{path}/status` and the other verbs reach a controller as `/v1/controllers/{controller}/status` does."""
        verbs = [f"{path}/{verb}" for verb in VERBS]
        self._check(path, *verbs)
        self.aliases |= dict.fromkeys(verbs, controller)

    def _check(self, given: str, *paths: str) -> None:
        if any(PATH.fullmatch(path) is None or path in self.known or path in self.aliases for path in paths):
            raise BadApp(
                f"{given!r} cannot be a route: write /v1/ and small letters, digits and -; each path has one function.",
                path=given,
            )

    def forget(self) -> None:
        """Drop cached answers: they are of the database that was open before, by its clock."""
        self._kept.clear()

    def _cached(self, path: str, question: Question, seconds: float) -> Question:
        async def answer() -> Any:
            now = self._clock.monotonic()
            if path not in self._kept or now - self._kept[path][0] > seconds:
                self._kept[path] = (now, await question())
            return self._kept[path][1]

        return answer
