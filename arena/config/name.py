"""Names of bots and tournaments."""

from __future__ import annotations

import re

RESERVED_NAMES = frozenset({"all", "last", "overall", "human"})
"""Words that commands and files give a meaning of their own."""

NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}$"
"""What `is_name` asks for besides, as documents and pages show it."""

ALLOWED = "1 to 32 of a-z, 0-9 and -, not beginning with -, and none of " + ", ".join(sorted(RESERVED_NAMES))


def is_name(text: str) -> bool:
    """Tell whether a bot or a tournament may have this name; look-alikes of other alphabets are no names."""
    return re.fullmatch(NAME_PATTERN, text) is not None and text not in RESERVED_NAMES
