"""Names of bots and tournaments."""

from __future__ import annotations

import re

RESERVED = frozenset({"all", "last", "overall", "human"})
"""Words that commands and files give a meaning of their own."""

ALLOWED = "1 to 32 of a-z, 0-9 and -, not beginning with -, and none of " + ", ".join(sorted(RESERVED))

_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def is_name(text: str) -> bool:
    """Tell whether a bot or a tournament may have this name; look-alikes of other alphabets are no names."""
    return _PATTERN.fullmatch(text) is not None and text not in RESERVED
