"""The one source of randomness: SHAKE-256 streams named by a key, a purpose and ids.

A stream is the SHAKE-256 output of the parts `arena-luck-1`, key, purpose and each id, where a part is its length as
u32 big-endian followed by its bytes, and an id is its decimal or plain text in UTF-8. The output is read as
consecutive u64 big-endian words. Anybody can compute the same stream in any language; protocol.md has the vectors.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_DOMAIN = b"arena-luck-1"
_WORDS_AT_ONCE = 128
_TWO64 = 1 << 64


def _part(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


class Stream:
    """A deterministic stream of unbiased integers; two streams with the same name are equal."""

    def __init__(self, key: bytes, purpose: str, *ids: int | str) -> None:
        parts = [_DOMAIN, key, purpose.encode(), *(str(i).encode() for i in ids)]
        self._shake = hashlib.shake_256(b"".join(map(_part, parts)))
        self._words: tuple[int, ...] = ()
        self._next = 0

    def word(self) -> int:
        """Return the next u64 of the stream."""
        if self._next == len(self._words):
            count = len(self._words) * 2 or _WORDS_AT_ONCE
            self._words = struct.unpack(f">{count}Q", self._shake.digest(8 * count))
        value = self._words[self._next]
        self._next += 1
        return value

    def below(self, n: int) -> int:
        """Return an unbiased integer in [0, n), by rejection: words >= the largest multiple of n are skipped."""
        if not 0 < n <= _TWO64:
            raise ValueError(f"n must be in 1 ... 2**64, not {n!r}")
        limit = _TWO64 - _TWO64 % n
        while (value := self.word()) >= limit:
            pass
        return value % n

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order: Fisher-Yates from the last position down, j = below(i + 1)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result


def derive(key: bytes, purpose: str, *ids: int | str) -> bytes:
    """Return the 32-byte key that `key` gives for a purpose: the first 32 bytes of the stream of that name."""
    stream = Stream(key, purpose, *ids)
    return struct.pack(">4Q", *(stream.word() for _ in range(4)))


def commitment(master: bytes, salt: bytes) -> bytes:
    """Return SHA-256(master || salt), 32 bytes, published before the first deal."""
    return hashlib.sha256(master + salt).digest()
