"""Control groups of both versions: found, made, read and removed; version 2 on a folder that looks like one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import trio

from arena.errors import InfraError
from arena.sandbox import Limits, cgroup
from arena.sandbox.cgroup import Group, Home
from arena.sandbox.tree import Usage

LIMITS = Limits(cpu_s=1, memory_mib=100, processes=7)
SPLIT = """\
9:name=systemd:/
8:pids:/user
4:memory:/box/one
0::/
"""
UNIFIED = "0::/user.slice/arena.scope\n"


def mount(kind: str, point: Path, options: str, root: str = "/") -> str:
    return f"31 23 0:28 {root} {point} rw,relatime - {kind} {kind} rw,{options}"


def proc(tmp_path: Path, own: str, *mounts: str) -> Path:
    folder = tmp_path / "proc"
    folder.mkdir()
    (folder / "cgroup").write_text(own)
    (folder / "mountinfo").write_text("\n".join(mounts) + "\n")
    return folder


def made(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True)


class Kernel:
    """Lets new folders of groups have the files that the kernel gives them, and go though they have them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
        mkdir, rmdir = Path.mkdir, Path.rmdir
        self.busy = 0

        def make(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            mkdir(path, mode, parents, exist_ok)
            for name in files:
                (path / name).write_text("")

        def remove(path: Path) -> None:
            if self.busy:
                self.busy -= 1
                raise OSError(errno.EBUSY, "busy")
            for file in path.iterdir():
                file.unlink()
            rmdir(path)

        monkeypatch.setattr(Path, "mkdir", make)
        monkeypatch.setattr(Path, "rmdir", remove)


def content(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.read_text()}


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    memory, pids = tmp_path / "memory", tmp_path / "pids"
    made(memory / "box" / "one", pids / "user")
    found = cgroup._locate(proc(tmp_path, SPLIT, mount("cgroup", memory, "memory"), mount("cgroup", pids, "pids")))
    assert found == Home(memory / "box" / "one", pids / "user")
    assert not found.is_unified


def test_cpu_time_is_counted_in_version_1_where_we_may_make_groups_for_it(tmp_path: Path) -> None:
    memory, cpu = tmp_path / "memory", tmp_path / "cpu"
    made(memory, cpu)
    own = "5:cpu,cpuacct:/\n4:memory,pids:/\n"
    mounts = mount("cgroup", memory, "memory,pids"), mount("cgroup", cpu, "cpu,cpuacct")
    assert cgroup._locate(proc(tmp_path, own, *mounts)) == Home(memory, memory, cpu)


def test_version_1_has_a_group_of_cpu_time_with_the_weight_of_nice_10(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, pids, cpu = (tmp_path / name for name in ("memory", "pids", "cpu"))
    made(memory, pids, cpu)
    Kernel(monkeypatch, "memory.limit_in_bytes", "pids.max", "cpu.shares", "cpuacct.usage", "cgroup.procs")
    group = Group(Home(memory, pids, cpu), LIMITS)
    folder = group.folders[-1]
    assert content(folder) == {"cpu.shares": "110"}
    (folder / "cpuacct.usage").write_text("4100000999\n")
    (group._memory / "memory.usage_in_bytes").write_text("70000\n")
    assert group.usage() == Usage(0, 70_000, 4_100_000)
    group.add(4711)
    assert content(folder)["cgroup.procs"] == "4711"
    (group._pids / "cgroup.procs").write_text("")
    trio.run(group.close)
    assert not [*memory.iterdir(), *pids.iterdir(), *cpu.iterdir()]


def test_a_group_above_what_is_mounted_is_the_mount(tmp_path: Path) -> None:
    both = tmp_path / "both"
    made(both)
    own = "4:memory,pids:/docker/abc\n"
    found = cgroup._locate(proc(tmp_path, own, mount("cgroup", both, "memory,pids", "/docker/abc")))
    assert found == Home(both, both)


def test_a_controller_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="no control group for pids here"):
        cgroup._locate(proc(tmp_path, SPLIT, mount("cgroup", tmp_path, "memory")))


@pytest.mark.parametrize("below", ["", "/arena-main"])
def test_version_2_has_one_folder_and_we_move_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    scope = tmp_path / "user.slice" / "arena.scope"
    made(scope)
    Kernel(monkeypatch, "cgroup.procs")
    (scope / "cgroup.controllers").write_text("cpu memory pids\n")
    (scope / "cgroup.subtree_control").write_text("")
    (scope / "cgroup.procs").write_text(f"{os.getpid()}\n")
    if below:
        made(scope / "arena-main")
    own = UNIFIED.strip() + below + "\n"
    home = cgroup._locate(proc(tmp_path, own, mount("cgroup2", tmp_path, "nsdelegate")))
    assert home == Home(scope, scope, scope)
    assert home.is_unified
    if not below:
        cgroup._delegate(home.memory)
        assert (scope / "arena-main" / "cgroup.procs").read_text() == str(os.getpid())
        assert (scope / "cgroup.subtree_control").read_text() == "+memory +pids"
        cgroup._delegate(home.memory)


def test_version_2_limits_everything_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(monkeypatch, "cgroup.procs", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max")
    group = Group(Home(tmp_path, tmp_path), LIMITS)
    (folder,) = group.folders
    limit = str(100 << 20)
    assert content(folder) == {"memory.max": limit, "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "9"}
    assert (group.count(), group.oom_kills()) == (0, 0)
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n")
    (folder / "cgroup.procs").write_text("1\n2\n")
    assert (group.count(), group.oom_kills()) == (2, 2)
    assert group.usage() is None
    assert group.remove()
    assert list(tmp_path.iterdir()) == []


def test_version_2_counts_what_its_processes_use_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(monkeypatch, "cgroup.procs", "memory.max", "pids.max", "memory.current", "memory.reclaim", "cpu.stat")
    group = Group(Home(tmp_path, tmp_path, tmp_path), LIMITS)
    (folder,) = group.folders
    (folder / "cpu.stat").write_text("usage_usec 812345\nuser_usec 5\nsystem_usec 7\n")
    (folder / "memory.current").write_text("4096\n")
    (folder / "cgroup.procs").write_text("1\n2\n")
    assert group.usage() == Usage(2, 4096, 812_345)


def test_what_a_version_2_group_holds_is_dropped_before_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kernel(monkeypatch, "cgroup.procs", "memory.max", "pids.max", "memory.current", "memory.reclaim")
    group = Group(Home(tmp_path, tmp_path), LIMITS)
    (folder,) = group.folders
    (folder / "memory.current").write_text("8192\n")
    group.forget()
    assert content(folder)["memory.reclaim"] == "8192"
    trio.run(group.close)
    assert list(tmp_path.iterdir()) == []


def test_a_group_is_removed_once_it_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, "memory.max", "pids.max")
    group = Group(Home(tmp_path, tmp_path), LIMITS)
    kernel.busy = 3
    trio.run(group.close)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(cgroup, "_REMOVE_AFTER_S", (0.0,))
    group = Group(Home(tmp_path, tmp_path), LIMITS)
    kernel.busy = 9
    trio.run(group.close)
    assert len(list(tmp_path.iterdir())) == 1, "left to the next run"


def test_a_group_that_cannot_be_limited_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(monkeypatch, "memory.max")
    with pytest.raises(FileNotFoundError):
        Group(Home(tmp_path, tmp_path), LIMITS)
    assert list(tmp_path.iterdir()) == []


def test_groups_of_dead_runs_are_removed(tmp_path: Path) -> None:
    for name in ("arena-4194999-1", f"arena-{os.getpid()}-1", "arena-main", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "arena-4194998-1" / "busy").mkdir(parents=True)
    cgroup._sweep(Home(tmp_path, tmp_path))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted(["arena-4194998-1", f"arena-{os.getpid()}-1", "arena-main", "other"])


@pytest.mark.parametrize("unified", [True, False])
def test_a_folder_that_cannot_be_written_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unified: bool
) -> None:
    other = tmp_path if unified else tmp_path / "pids"
    monkeypatch.setattr(cgroup, "_locate", lambda _: Home(tmp_path, other))
    (tmp_path / "cgroup.subtree_control").write_text("memory pids")
    cgroup.find_home.cache_clear()
    with pytest.raises(InfraError, match=f"no control group can be made in {tmp_path}: No such file") as caught:
        cgroup.find_home()
    assert ("systemd-run --user --scope -p Delegate=yes" in str(caught.value)) is unified
    cgroup.find_home.cache_clear()
