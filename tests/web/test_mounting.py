"""The app inside other programs: mounted into FastAPI and Starlette, or served alone by any ASGI server."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

import penstock as ps
from penstock.config import Config

TOKEN = {"authorization": "Bearer secret"}
SECONDS_MAX = 30.0


class Job(ps.Command, type="job"):
    number: int


@pytest.fixture
def handled() -> threading.Event:
    return threading.Event()


@pytest.fixture
def app(tmp_path: Path, handled: threading.Event, monkeypatch: pytest.MonkeyPatch) -> ps.App:
    monkeypatch.setenv("PENSTOCK_TOKEN", "secret")
    app = ps.App("shop", database=tmp_path / "shop.db", migrations=tmp_path, config=Config(synchronous="off"))
    jobs = app.queue("jobs", Job, batch_wait=0)

    @jobs.handler
    async def work(job: Job) -> None:
        handled.set()

    @app.post("/jobs/{number}", status=202)
    async def start(number: int, request: ps.Request) -> str:
        jobs.send(Job(number=number))
        return request.path

    return app


@contextmanager
def served(asgi: Any) -> Iterator[str]:
    """A real server on a port of this machine, with its lifespan."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(asgi, log_config=None, lifespan="on", ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    try:
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join(SECONDS_MAX)
        listening.close()
    assert not thread.is_alive()


def test_fastapi_serves_the_app_beside_its_own_routes_and_runs_its_handlers(
    app: ps.App, handled: threading.Event
) -> None:
    api = FastAPI(lifespan=partial(app.lifespan, run=True))

    @api.get("/own")
    async def own() -> dict[str, int]:
        async with app.unit():
            app.queues["jobs"].send(Job(number=1))
        return {"answer": 42}

    api.mount("/pipeline", app.asgi())

    with served(api) as url:
        own_answer = httpx2.get(f"{url}/own").json()
        assert handled.wait(SECONDS_MAX)
        handled.clear()
        posted = httpx2.post(f"{url}/pipeline/jobs/7", headers=TOKEN)
        assert handled.wait(SECONDS_MAX)
        refused = httpx2.post(f"{url}/pipeline/jobs/x", headers=TOKEN)
        stranger = httpx2.post(f"{url}/pipeline/jobs/7")
        described = httpx2.get(f"{url}/pipeline/openapi.json", headers=TOKEN).json()

    assert own_answer == {"answer": 42}
    assert (posted.status_code, posted.json()["result"]) == (202, "/pipeline/jobs/7")
    assert (refused.status_code, stranger.status_code) == (422, 401)
    assert "/jobs/{number}" in described["paths"]
    assert app._life.engine is None, "the lifespan has closed the database"


def test_starlette_serves_the_app_without_running_it(app: ps.App, handled: threading.Event) -> None:
    outer = Starlette(routes=[Mount("/", app.asgi())], lifespan=app.lifespan)

    with served(outer) as url:
        posted = httpx2.post(f"{url}/jobs/7", headers=TOKEN)
        health = httpx2.get(f"{url}/health/deep").json()

    assert posted.status_code == 202
    assert health["checks"]["queues"]["waiting"] == 1
    assert not handled.is_set()


def test_an_asgi_server_runs_the_app_alone(app: ps.App, handled: threading.Event) -> None:
    with served(app.asgi(run=True)) as url:
        posted = httpx2.post(f"{url}/jobs/7", headers={**TOKEN, "idempotency-key": "1"})
        again = httpx2.post(f"{url}/jobs/7", headers={**TOKEN, "idempotency-key": "1"})
        assert handled.wait(SECONDS_MAX)

    assert (posted.status_code, posted.content) == (202, again.content)
    assert app._life.engine is None
