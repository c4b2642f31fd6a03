"""Makes the attack that the command line names."""

from __future__ import annotations

import sys

from . import kernel, others, reach, share, use
from .telling import tell

_PARTS = (reach, use, kernel, share, others)


def main() -> None:
    """Find the attack by its name, make it, tell what came of it."""
    name, *arguments = sys.argv[1:]
    tell(begun=name)
    attack = next(vars(part)[name] for part in _PARTS if name in vars(part))
    tell(found=attack(*arguments))
    sys.stdin.read()


main()
