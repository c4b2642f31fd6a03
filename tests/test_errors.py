from __future__ import annotations

import errno

import pytest

from arena.errors import (
    FAULT_ADVICE,
    FAULT_DETAILS,
    ArenaError,
    BotError,
    BusyError,
    ConfigError,
    FaultKind,
    IllegalAction,
    InfraError,
    way_out,
)


def test_each_kind_of_fault_has_details() -> None:
    assert FAULT_DETAILS.keys() == set(FaultKind)
    assert all(FAULT_DETAILS.values())


def test_there_is_advice_for_each_detail_and_no_other() -> None:
    assert list(FAULT_ADVICE) == [(kind, detail) for kind in FaultKind for detail in FAULT_DETAILS[kind]]
    assert all(FAULT_ADVICE.values())


def test_a_detail_belongs_to_its_kind() -> None:
    error = BotError(FaultKind.TIMEOUT, "late", "too late", b"x" * 5000)
    assert (error.kind, error.detail, str(error), len(error.evidence)) == (FaultKind.TIMEOUT, "late", "too late", 4096)
    with pytest.raises(ValueError, match="'exit' is no detail of fault kind timeout"):
        BotError(FaultKind.TIMEOUT, "exit", "")


def test_all_that_is_raised_on_purpose_is_of_one_tree() -> None:
    for kind in (BotError, BusyError, ConfigError, IllegalAction, InfraError):
        assert issubclass(kind, ArenaError)


def test_what_a_machine_lacks_has_a_way_out() -> None:
    assert "ulimit -n" in way_out(OSError(errno.EMFILE, "Too many open files"))
    assert "too little memory" in way_out(OSError(errno.ENOMEM, "Cannot allocate memory"))
    assert "too little memory" in way_out(MemoryError())
    assert way_out(OSError(errno.EIO, "I/O error")) == way_out(None) == ""
