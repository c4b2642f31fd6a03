"""The filter of system calls, executed as the kernel would; real bots meet it in tests/hostile."""

from __future__ import annotations

import struct

import pytest

from arena.sandbox import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
EPERM, ENOSYS, EAFNOSUPPORT = (0x00050000 | number for number in (1, 38, 97))


def run(
    machine: str,
    number: int,
    *arguments: int,
    architecture: int | None = None,
    counted: bool = True,
    alone: bool = True,
    builds: bool = False,
) -> int:
    """Execute the program on a system call; return what it says of it."""
    code = list(struct.iter_unpack("=HBBI", seccomp.program(machine, counted=counted, alone=alone, builds=builds)))
    given = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack("=IIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *given)
    at = accumulator = 0
    while True:
        operation, yes, no, k = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, k)
            case 0x15:
                at += yes if accumulator == k else no
            case 0x35:
                at += yes if accumulator >= k else no
            case 0x45:
                at += yes if accumulator & k else no
            case 0x06:
                return int(k)
            case _:
                raise AssertionError(f"operation {operation:#x}")


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_every_denied_call_is_denied_and_no_other(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    denied = {numbers[column] for numbers in seccomp._DENIED.values()}
    absent = {numbers[column] for numbers in seccomp._ABSENT.values()}
    checks = (*seccomp._CHECKED, seccomp._OWN_NETWORK)
    checked = {check.numbers[column] for check in checks}
    assert len(denied | absent | checked) == len(seccomp._DENIED) + len(seccomp._ABSENT) + len(checks)
    for number in range(600):
        if number not in checked:
            expected = EPERM if number in denied else ENOSYS if number in absent else ALLOW
            assert run(machine, number) == expected, number


@pytest.mark.parametrize(
    ("number", "arguments", "expected"),
    [
        (56, (0x11,), ALLOW),  # clone, as fork does
        (56, (0x10000011,), EPERM),  # with CLONE_NEWUSER
        (56, (0x00020011,), EPERM),  # with CLONE_NEWNS
        (41, (1,), ALLOW),  # socket: unix
        (41, (10,), ALLOW),
        (41, (16,), EAFNOSUPPORT),  # netlink
        (41, (40,), EAFNOSUPPORT),  # vsock
        (221, (0, 0, 0, 2), ALLOW),  # fadvise64: sequential
        (221, (0, 0, 0, 4), EPERM),
        (28, (0, 0, 4), ALLOW),  # madvise: MADV_DONTNEED
        (28, (0, 0, 20), EPERM),
        (28, (0, 0, 21), EPERM),
        (327, (0, 0, 0, 0, 0, 0), ALLOW),  # preadv2
        (327, (0, 0, 0, 0, 0, 8), EPERM),
        (327, (0, 0, 0, 0, 0, 9), EPERM),
        (72, (0, 1), ALLOW),  # fcntl: F_GETFD
        (72, (0, 6), EPERM),
        (72, (0, 38), EPERM),
        (72, (0, 1024), EPERM),
        (72, (0, 1030), ALLOW),  # F_DUPFD_CLOEXEC
        (0x40000000, (), ENOSYS),  # x32
    ],
)
def test_calls_are_denied_by_their_arguments(number: int, arguments: tuple[int, ...], expected: int) -> None:
    assert run("x86_64", number, *arguments) == expected


def test_what_no_control_group_counts_and_sockets_that_are_not_its_own_are_denied() -> None:
    assert (run("x86_64", 319), run("x86_64", 319, counted=False)) == (ALLOW, ENOSYS)  # memfd_create
    assert {run("x86_64", 41, family, alone=False) for family in (1, 2, 10, 16)} == {EAFNOSUPPORT}


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_what_changes_files_and_processes_of_others_is_denied_where_they_are_in_reach(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    calls = (*seccomp._OF_OTHERS.values(), *seccomp._ATTRIBUTES.values())
    for number in filter(None, (numbers[column] for numbers in calls)):
        is_of_files = number in {numbers[column] for numbers in seccomp._ATTRIBUTES.values()}
        assert run(machine, number) == ALLOW
        assert run(machine, number, alone=False) == EPERM
        assert run(machine, number, alone=False, builds=True) == (ALLOW if is_of_files else EPERM)
    limits, control = seccomp._OWN_LIMITS.numbers[column], seccomp._NO_FLAGS.numbers[column]
    assert [run(machine, limits, pid, alone=False) for pid in (0, 7)] == [ALLOW, EPERM]
    assert run(machine, limits, 7) == ALLOW
    flags = 0x40086602
    assert [run(machine, control, 3, request, alone=False) for request in (0x5413, flags)] == [ALLOW, EPERM]
    assert run(machine, control, 3, flags, alone=False, builds=True) == run(machine, control, 3, flags) == ALLOW


def test_a_call_of_another_architecture_is_fatal() -> None:
    assert run("x86_64", 0, architecture=ARCHITECTURES["aarch64"]) == KILL


def test_machines_without_a_filter_are_known() -> None:
    assert seccomp.is_known("aarch64")
    assert not seccomp.is_known("riscv64")
