"""Those that attacks are aimed at; the doctor starts them without a sandbox."""

from __future__ import annotations

import ctypes
import fcntl
import select
import sys
import threading
import time
from pathlib import Path

from .telling import LIFE_S, libc, tell


def victim(token: str) -> dict[str, str]:
    """Be attacked: hold a secret in memory that everyone with the right to trace may read."""
    buffer = ctypes.create_string_buffer(token[::-1].encode())
    libc.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER: the Yama module need not protect it
    tell(address=ctypes.addressof(buffer), ready=True)
    sys.stdin.read()
    return {"victim": buffer.raw.decode()}


def work(folder: str) -> dict[str, str]:
    """Be a busy neighbour: processes, threads, files, locks and memory come and go until stdin ends."""
    until = time.monotonic() + LIFE_S
    tell(ready=True)
    while time.monotonic() < until and not select.select([0], [], [], 0)[0]:
        stop = threading.Event()
        threads = [threading.Thread(target=stop.wait) for _ in range(16)]
        for thread in threads:
            thread.start()
        with open(Path(folder, "work"), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(b"x" * (4 << 20))
            made = [open(Path(folder, f"work-{number}"), "wb") for number in range(64)]  # noqa: SIM115
            time.sleep(0.02)
        for one in made:
            one.close()
            Path(one.name).unlink()
        Path(folder, "work").unlink()
        stop.set()
        for thread in threads:
            thread.join()
        time.sleep(0.01)
    return {}
