"""Real processes on one database: started from a warm parent, killed by signal, and always reaped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from tests.crash.databases import CrashDatabase, crash_database
from tests.crash.fork_server import Answer, Request
from tests.crash.journal import JOURNAL_VARIABLE, JournalReader, wait_until
from tests.crash.lookout import RunningList

KILLS = int(os.environ.get("PENSTOCK_KILLS", "30"))  # on each store
ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 25.0
SOCKETS_VARIABLE = "XDG_RUNTIME_DIR"  # a short path: the wake-up sockets go there


class ForkServer:
    """The warm parent. Its children share its process group, so that one signal ends them all."""

    def __init__(self) -> None:
        self.sockets = tempfile.mkdtemp(prefix="victims-")
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment({SOCKETS_VARIABLE: self.sockets}),
            start_new_session=True,
        )

    def ask(self, request: Request) -> Answer:
        asking, answering = _pipes(self._parent)
        asking.write(msgspec.json.encode(request) + b"\n")
        asking.flush()
        line = answering.readline()
        assert line, "the fork_server died"
        return msgspec.json.decode(line, type=Answer)

    def close(self) -> None:
        os.killpg(self._parent.pid, signal.SIGKILL)
        for pipe in _pipes(self._parent):
            pipe.close()
        self._parent.wait()
        shutil.rmtree(self.sockets, ignore_errors=True)


class Victim:
    """A process under test. It is alive until `ended` says otherwise."""

    def __init__(self, role: str, pid: int, fork_server: ForkServer, site: Site) -> None:
        self._fork_server = fork_server
        self._site = site
        self._cells: RunningList | None = None
        self.role = role
        self.pid = pid
        self.code: int | None = None

    @property
    def running(self) -> RunningList | None:
        """Its list of running handlers, once there is one. It can still be read when the process is dead."""
        if self._cells is None:
            self._cells = self._site.database.running_list_of(self.pid)
        return self._cells

    @property
    def is_up(self) -> bool:
        """Whether it is ready for work, and for a signal."""
        return bool(self._site.journal.all("worker.started" if self.role == "worker" else "ready", pid=self.pid))

    def ended(self) -> bool:
        if self.code is None:
            self.code = self._fork_server.ask(Request(poll=self.pid)).code
        return self.code is not None

    def signal(self, number: int) -> None:
        assert not self.ended(), f"process {self.pid} had already ended with {self.code}"
        os.kill(self.pid, number)

    def wait(self, seconds: float = 20.0) -> int:
        wait_until(self.ended, f"end of process {self.pid}", seconds)
        assert self.code is not None
        return self.code

    def stop(self) -> None:
        """SIGSTOP. Returns when no thread of it runs any more."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: self._fork_server.ask(Request(poll=self.pid)).stopped, f"stop of process {self.pid}")

    def kill(self) -> float:
        """SIGKILL, and the moment of it. Returns when the process is gone."""
        at = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL, (
            f"the {self.role} had already ended with {self.code}: {self._site.said()}"
        )
        return at


class SupervisedVictim(Victim):
    """A worker that belongs to a supervisor: its end is told by the supervisor's journal."""

    def __init__(self, pid: int, fork_server: ForkServer, site: Site) -> None:
        super().__init__("worker", pid, fork_server, site)

    def ended(self) -> bool:
        for death in self._site.journal.all("worker.died", pid=self.pid):
            self.code = death.exit_code
        return self.code is not None


class Site:
    """One database in a folder, the journal beside it, and the processes at work on it."""

    def __init__(self, folder: Path, fork_server: ForkServer, database: CrashDatabase) -> None:
        self.folder = folder
        self.database = database
        self.journal = JournalReader(folder / "journal.jsonl")
        self.ids = folder / "sent.log"
        self._fork_server = fork_server
        self._victims: list[Victim] = []
        self._groups: list[subprocess.Popen[bytes]] = []

    # -- starting ---------------------------------------------------------------------------------------

    def start(
        self,
        role: str,
        *,
        environment: dict[str, str] | None = None,
        module: str = "tests.crash.roles",
        **arguments: Any,
    ) -> Victim:
        named = {
            "PENSTOCK_DATABASE": self.database.address,
            JOURNAL_VARIABLE: str(self.folder / "journal.jsonl"),
            **(environment or {}),
        }
        request = Request(
            start=f"{module}:{role}",
            arguments=arguments,
            environment=named,
            output=str(self.folder / "output.log"),
        )
        victim = Victim(role, self._fork_server.ask(request).pid, self._fork_server, self)
        self._victims.append(victim)
        return victim

    def worker(self, *, grace: float = GRACE_SECONDS, environment: dict[str, str] | None = None) -> Victim:
        return self.start("worker", grace=grace, environment=environment)

    def send(self, queue: str, *tasks: dict[str, Any]) -> None:
        """Returns when the messages are committed."""
        assert self.start("send", queue=queue, tasks=list(tasks)).wait() == 0, self.said()

    def supervisor(
        self, *, workers: int = 1, grace: float = GRACE_SECONDS, waits: dict[str, float] | None = None
    ) -> subprocess.Popen[bytes]:
        """A supervisor that writes to the journal. Its own waits may be made shorter, by name."""
        options = {"workers": workers, "grace": grace, **(waits or {})}
        named = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        return self.command("tests.crash.supervise", *named)

    def command(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A program in a process group of its own, which ends with the test."""
        named = {
            "PENSTOCK_DATABASE": self.database.address,
            JOURNAL_VARIABLE: str(self.folder / "journal.jsonl"),
            SOCKETS_VARIABLE: self._fork_server.sockets,
        }
        with (self.folder / "output.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env=environment(named),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._groups.append(process)
        return process

    def supervised(self) -> list[SupervisedVictim]:
        """The workers that supervisors keep running here, those that have said hello and not died."""
        started = [entry.pid for entry in self.journal.all("worker.started")]
        workers = [SupervisedVictim(pid, self._fork_server, self) for pid in started]
        return [worker for worker in workers if not worker.ended()]

    # -- ending -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Whatever happened, nothing that was started here is left running."""
        for process in self._groups:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for victim in self._victims:
            if not victim.ended():
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait()
        self.database.close()

    def up(self, *victims: Victim) -> None:
        """Returns when all of them are ready for work, and for a signal."""
        for victim in victims:
            wait_until(lambda: victim.is_up or victim.ended(), f"first sign of process {victim.pid}")  # noqa: B023
            assert victim.is_up, f"the {victim.role} ended with {victim.code}: {self.said()}"

    def stop(self, *victims: Victim) -> None:
        """SIGTERM to all, and each has to end well."""
        self.up(*victims)
        for victim in victims:
            victim.signal(signal.SIGTERM)
        for victim in victims:
            assert victim.wait() == 0, self.said()

    def said(self, characters: int = 3_000) -> str:
        """The last that the processes wrote to their standard output and error."""
        return self._output()[-characters:]

    def tracebacks(self) -> list[str]:
        """What nobody caught, in any process that was ever started here."""
        _, *found = self._output().split("Traceback (most recent call last)")
        return [trace[:3_000] for trace in found]

    def _output(self) -> str:
        path = self.folder / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def lock_files(self) -> list[str]:
        """The lock files of workers that came far enough to lock them, whether or not these are still alive."""
        return sorted(path.name for path in self.database.lists() if path.stat().st_size)


@contextmanager
def site_in(folder: Path, fork_server: ForkServer, store: str) -> Iterator[Site]:
    site = Site(folder, fork_server, crash_database(store, folder, Path(fork_server.sockets)))
    try:
        yield site
    finally:
        site.close()


def gone(pid: int) -> bool:
    """Whether a process that is not our child has ended, or is only waiting for its parent to notice."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return Path("/proc/self").exists()  # it went just now; elsewhere than on Linux nobody says, and it is alive
    return state == "Z"


def environment(named: dict[str, str]) -> dict[str, str]:
    """Ours, with the tests importable and nothing of a run around us leaking in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")]))
    return {**kept, "PYTHONPATH": path, **named}


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout
