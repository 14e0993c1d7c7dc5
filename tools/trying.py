"""`make try-docs`: follows pages as a stranger does, with the built wheel, in a new environment and an empty folder.

Files that a page shows are written, its commands are run in a shell, and its Python code as one program, with commands that
come later in between. Then a small demonstration runs. Nothing of this tree is within reach: what the wheel lacks, or what
only works here, fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.markdown import blocks_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("docs/start/first-pipeline.md", "docs/guide/queues.md")
DEMO = "penstock demo --apps 150 --days 0.5"
LISTS_NOTHING = "grep -q '\"opportunities\": 0$' penstock-demo/report.json"
QUIETLY = ("install", "--disable-pip-version-check", "--quiet")
COMMAND_SECONDS_MAX = 300  # the slowest is the installation, over a slow line


class Failed(Exception):
    """A command of a page that did not succeed, with what it said."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-stranger-") as made:
        try:
            wheel, programs = install(Path(made))
            for page in PAGES:
                folder = Path(made, Path(page).stem)
                folder.mkdir()
                print(f"\n{page}")
                follow((ROOT / page).read_text("utf-8"), folder, programs)
            print("\nThe demonstration, with the extra that it needs")
            run([str(programs / "pip"), *QUIETLY, f"{wheel}[demo]"], Path(made), stranger(programs))
            run(["sh", "-ec", f"{DEMO}; ! {LISTS_NOTHING}"], Path(made), stranger(programs))
        except Failed as failed:
            sys.exit(str(failed))
    print(f"\nBoth pages and the demonstration work with nothing but the wheel and Python {sys.version.split()[0]}.")


def install(folder: Path) -> tuple[Path, Path]:
    """Builds the wheel and installs it, with what it needs, into an environment of its own. Gives it and the folder of
    programs."""
    print("The wheel, in an environment of its own")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")], ROOT, os.environ)
    [wheel] = (folder / "dist").glob("*.whl")
    run([sys.executable, "-m", "venv", "venv"], folder, os.environ)
    programs = folder / "venv" / "bin"
    run([str(programs / "pip"), *QUIETLY, str(wheel)], folder, stranger(programs))
    return wheel, programs


def follow(page: str, folder: Path, programs: Path) -> None:
    """Does in the folder what the page says."""
    code: list[str] = []
    for language, meant, text in blocks_of(page):
        match language, meant.split():
            case _, ["file", name]:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, "utf-8")
                print(f"  wrote {name}")
            case "console", ["run"]:
                for line in text.splitlines():
                    if line.startswith("$ ") and code:
                        code.append(
                            f"__import__('subprocess').run(['sh', '-ec', {line.removeprefix('$ ')!r}], check=True)"
                        )
                    elif line.startswith("$ "):
                        run(["sh", "-ec", line.removeprefix("$ ")], folder, stranger(programs))
            case "python", []:
                code.append(text)
    if code:
        (folder / "page.py").write_text("\n\n".join(code), "utf-8")
        run(["python", "page.py"], folder, stranger(programs))


def stranger(programs: Path) -> dict[str, str]:
    """An environment in which nothing of ours is set, and the programs are the new ones."""
    ours = ("PENSTOCK_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(programs.parent)}


def run(command: list[str], folder: Path, environment: os._Environ[str] | dict[str, str]) -> None:
    shown = command[-1] if command[0] == "sh" else " ".join([Path(command[0]).name, *command[1:]])
    print(f"  $ {shown}", flush=True)
    program = [*command]
    if "/" not in command[0]:
        program = ["env", *command]  # looked up in the environment that is given, not in ours
    done = subprocess.run(
        program,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(f"`{shown}` ended with {done.returncode}:\n{done.stdout}")


if __name__ == "__main__":
    main()
