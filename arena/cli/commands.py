"""All commands, for help and completion, which need every one of them."""

from __future__ import annotations

from importlib import import_module

from arena.cli.app import MODULES, app

__all__ = ["app"]

for _name in sorted(set(MODULES.values())):
    import_module(f"arena.cli.{_name}")
