"""The environment of a bot, built from nothing, and the interpreter it finds in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgpack


def environment(runtime: str, home: str) -> dict[str, str]:
    """Return all variables a bot has; nothing is taken from ours.

    Args:
        runtime: the interpreter's folder as the bot sees it.
        home: its private writable folder as it sees it.
    """
    return {
        "PATH": f"{runtime}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }


def make_runtime(parent: Path) -> Path:
    """Return a folder below `parent` in which `bin/python3` is this interpreter with msgpack and nothing else.

    It is a virtual environment written by hand, made once for each interpreter and msgpack version: bots get the
    library that the SDK needs without seeing the arena's own environment.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    tag = ".".join(map(str, msgpack.version))
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    which = hashlib.sha256(os.fsencode(base)).hexdigest()[:8]
    final = parent / f"python-{sys.version.split()[0]}-{which}-msgpack-{tag}"
    if final.is_dir():
        return final
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        made = Path(scratch, "python")
        (made / "bin").mkdir(parents=True)
        for name in ("python", "python3"):
            (made / "bin" / name).symlink_to(base)
        (made / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
        library = made / "lib" / f"python{version}" / "site-packages"
        shutil.copytree(Path(msgpack.__file__).parent, library / "msgpack")
        for folder, _, files in os.walk(made):  # bots may be started as another user
            os.chmod(folder, 0o755)
            for name in files:
                if not os.path.islink(path := os.path.join(folder, name)):
                    os.chmod(path, 0o644)
        try:
            os.rename(made, final)
        except OSError:  # another process made it meanwhile; a folder is only ever renamed into place whole
            if not final.is_dir():
                raise
    return final
