"""How far a bot's processes are contained, and what they may use and see."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What a bot's process tree may use.

    Attributes:
        cpu_s: CPU seconds of each process; derived from the clocks so that honest search never meets it.
        memory_mib: of all its processes together.
        processes: threads count as processes do.
    """

    cpu_s: int
    memory_mib: int = 512
    processes: int = 64
    file_bytes: int = 32 << 20
    open_files: int = 256


class Room(msgspec.Struct, frozen=True):
    """The folders a bot's process sees, as paths of this machine.

    Attributes:
        bot: its unpacked bundle, read-only.
        runtime: the interpreter's folder made by `arena.sandbox.environment`, read-only.
        out: the folder of its build, or None.
        out_writable: True while it builds.
    """

    bot: Path
    runtime: Path
    out: Path | None = None
    out_writable: bool = False
