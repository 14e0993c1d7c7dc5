"""`penstock gateway keys`: what an operator changes while the gateway runs."""

from __future__ import annotations

import json

from tests.unit.cli import Terminal


def test_keys_are_changed_on_the_command_line(terminal: Terminal) -> None:
    assert terminal("migrate", "gateway").code == 0
    terminal("gateway", "keys", "add", "writer", "--day", "2", "--models", "a,b")
    changed = terminal("gateway", "keys", "set", "writer", "--day", "5", "--month", "20")
    assert changed.out == "Changed key writer: day 5, month 20, models a, b.\n"
    assert terminal("gateway", "keys", "set", "writer", "--day", "all", "--models", "all").code == 0
    [row] = json.loads(terminal("gateway", "keys", "list", "--json").out)["keys"]
    assert (row["day"], row["month"], row["models"]) == (None, 20.0, None)
    for arguments in (["--day", "much"], ["--day=-1"], []):
        assert terminal("gateway", "keys", "set", "writer", *arguments).code == 2
    assert "no key 'nobody'" in terminal("gateway", "keys", "set", "nobody", "--day", "1").err
