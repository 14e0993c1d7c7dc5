"""A service: a part of an app with its own queues, tables and routes, in the app's database or in one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from penstock.app import App
from penstock.config import ServiceConfig
from penstock.control.permits import Permits
from penstock.data.database import Database
from penstock.model.errors import BadApp
from penstock.model.limits import near
from penstock.runtime.engine import Engine
from penstock.runtime.surroundings import Surroundings
from penstock.services.binding import Binding, Bindings
from penstock.services.outbox import receive_at

QUEUES, CRONS, WORKFLOWS, OBJECTS, CONTROLLERS, ROUTES = (
    "queues",
    "crons",
    "workflows",
    "objects",
    "controllers",
    "routes",
)
VERBS = {
    "queue": QUEUES,
    "cron": CRONS,
    "workflow": WORKFLOWS,
    "object": OBJECTS,
    "controller": CONTROLLERS,
    **dict.fromkeys(("get", "post", "put", "patch", "delete"), ROUTES),
}


class Service(App):
    """A part of an app, with every method of an app: `app.service("gatherfeed")` makes it.

    In one database it shares everything with the app. Apart it is an app of its own, with a database and a port.
    """

    def __init__(
        self,
        root: App,
        name: str,
        *,
        uses: Iterable[str] = (),
        tables: str = "",
        infrastructure: bool = False,
        migrations: str | Path | None = None,
        port: int | None = None,
    ) -> None:
        deployed = root.config.services.get(name, ServiceConfig())
        folder = Path(root.migrations if migrations is None else migrations)
        if root.is_apart:
            database = deployed.database or f"{name}.db"
            super().__init__(name, config=root.config, database=database, migrations=folder, serve=True)
            self.group, self.standins = root.group, root.standins
            receive_at(self)
        else:
            self.__dict__ |= vars(root) | {"name": name, "migrations": folder, "services": {}}
            self.db = Database(self)
            self.db.counts_kept, self.db.hot_queries = root.db.counts_kept, root.db.hot_queries
            root.folders[name] = folder
        self.root = root  # `keeps_order` and other facts of the whole app are there
        self.uses = tuple(uses)
        self.tables = tables
        self.infrastructure = infrastructure
        self.port = port or deployed.port or root.config.port + len(root.services)
        self.url = deployed.url or f"http://127.0.0.1:{self.port}"
        self.bindings = Bindings(name, {each: Binding(self, each) for each in self.uses})
        self.is_elsewhere = False  # another process runs it
        self.declared: dict[str, list[str]] = {kind: [] for kind in dict.fromkeys(VERBS.values())}

    def pace(self, name: str, **options: Any) -> Permits:
        """Return the pace of an outside service, which all services of one database share; as `App.pace`."""
        return super().pace(name, **options) if self.keeper is self else self.keeper.pace(name, **options)

    async def _open(self, surroundings: Surroundings | None = None, *, migrate: bool = True) -> Engine:
        if self.is_elsewhere:
            raise BadApp(
                f"The database of service {self.name!r} belongs to another process. Send to its queues, or call it through a "
                "declared binding.",
                service=self.name,
            )
        return await super()._open(surroundings, migrate=migrate)

    def parts(self, kind: str) -> Iterable[str]:
        """Return the names of what the service's database has of a kind."""
        match kind:
            case "queues":
                return list(self.queues)
            case "crons":
                return list(self.crons.tasks)
            case "workflows":
                return self.workflows.names()
            case "objects":
                return list(self._objects)
            case "controllers":
                return self.controllers.names()
        return [f"{each.method} {each.path}" for each in self.routes.ordered()]


def _recording(verb: str, kind: str) -> Callable[..., Any]:
    """Return the verb of an app that also remembers what it declared as the service's own."""
    declare = getattr(App, verb)

    def recorded(service: Service, work: Callable[[], Any]) -> Any:
        before = set(service.parts(kind))
        made = work()
        service.declared[kind] += [name for name in service.parts(kind) if name not in before]
        return made

    @wraps(declare)
    def method(self: Service, *given: Any, **named: Any) -> Any:
        made = recorded(self, lambda: declare(self, *given, **named))
        if kind in (QUEUES, OBJECTS) or (kind == WORKFLOWS and given):
            return made
        return lambda function: recorded(self, lambda: made(function))

    return method


for _verb, _kind in VERBS.items():
    setattr(Service, _verb, _recording(_verb, _kind))


def make_service(root: App, name: str, **options: Any) -> Service:
    """Declare a service of an app, as `App.service` describes it."""
    if isinstance(root, Service):
        raise BadApp(f"{root.name!r} is a service, and a service has no services. Declare {name!r} on the app.")
    if name in root.services or name == root.name:
        raise BadApp(f"App {root.name!r} has two services called {name!r}. Give one of them another name.", name=name)
    service = root.services[name] = Service(root, name, **options)
    return service


def members(app: App) -> Mapping[str, App]:
    """Return the apps with a database of their own, by name: the services that run apart, else the app alone."""
    if not app.is_apart or not app.services:
        return {app.name: app}
    has_parts = app.queues or app.routes.known or app.crons.tasks
    return ({app.name: app} if has_parts else {}) | dict(app.services)


def member(app: App, name: str) -> App:
    """Return one of the members to be run in this process; the others run elsewhere."""
    found = members(app)
    if name not in found:
        raise BadApp(f"App {app.name!r} has no service {name!r}. {near(name, found)}", service=name)
    for each in found.values():
        if isinstance(each, Service):
            each.is_elsewhere = each.name != name
    return found[name]
