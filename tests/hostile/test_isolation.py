"""What a bot can reach at each level that contains it: each line of a probe that runs as a bot, seen from inside."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.lane import LaneConfig
from arena.records import Clock
from arena.sandbox import Level
from arena.sandbox.environment import make_runtime
from tests.fakes import spec_of
from tests.scripts import HONEST, LEVELS, LaneProcess, living, script, token

PROBE = """
hello()
ask()
found = {}

def tried(name, do):
    try:
        found[name] = do() or "done"
    except Exception as error:
        found[name] = f"{type(error).__name__} {getattr(error, 'errno', '')}"

def fill(path):
    written = 0
    for number in range(20):
        try:
            with open(f"{path}/{abstract}-{number}", "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(b"x" * (1 << 20))
        except OSError:
            pass
    return written, os.stat(path).st_dev

def libc_ptrace(pid):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")

def connect(family, address):
    with socket.socket(family) as sock:
        sock.connect(address)

port, abstract, secret, runner, victim = sys.argv[2:7]
tried("tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", int(port))))
tried("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"!", ("127.0.0.1", int(port))) and 0)
tried("abstract", lambda: connect(socket.AF_UNIX, "\\0" + abstract))
tried("secret", lambda: open(secret).read())
tried("passwd", lambda: open("/etc/passwd").read())
tried("environ", lambda: open(f"/proc/{runner}/environ").read())
others = []
tried("processes", lambda: others.extend(name for name in os.listdir("/proc") if name.isdigit()) or len(others))

def leak():
    for name in {*others, *map(str, range(1, 400)), runner, str(os.getppid())}:
        for file in ("environ", "cmdline", "maps", "stat"):
            try:
                data = open(f"/proc/{name}/{file}", "rb").read()
            except OSError:
                continue
            if b"SECRET" in data or b"arena.lane" in data:
                return f"{file} of {name}"

tried("leak", leak)
for name in ("stat", "loadavg", "interrupts", "vmstat", "meminfo", "uptime", "locks", "diskstats", "timer_list"):
    tried("host " + name, lambda: len(open("/proc/" + name).read()))
tried("host pressure", lambda: len(os.listdir("/proc/pressure")))
tried("host sys", lambda: len(os.listdir("/proc/sys")))
tried("user", lambda: open("/proc/self/status").read().partition("CapEff:")[2].split()[0])
for folder in ("/", "/usr", "/etc", "/bot", "/runtime", "/dev", "/proc", "/home", "/var/tmp", "/tmp", "/dev/shm"):
    tried("write " + folder, lambda: open(folder + "/planted", "w").close())
for number in (signal.SIGSTOP, signal.SIGTERM):
    tried(f"signal {number} to parent", lambda: os.kill(os.getppid(), number))
tried("kill runner", lambda: os.kill(int(runner), 9))
tried("kill init", lambda: os.kill(1, 9))
tried("kill victim", lambda: os.kill(int(victim), 9))
tried("trace victim", lambda: libc_ptrace(int(victim)))
tried("hostname", socket.gethostname)
tried("nice", lambda: os.nice(-5))
tried("chmod secret", lambda: os.chmod(secret, 0))
tried("times of its own file", lambda: os.utime("bot.py", (5, 5)))
tried("limits of victim", lambda: __import__("resource").prlimit(int(victim), 7, (3, 3)) and 0)
tried("priority of victim", lambda: os.setpriority(os.PRIO_PROCESS, int(victim), 19))
if sys.argv[8] != "strict":
    tried("memory", lambda: len(bytearray(3 << 30)))
import ctypes, errno, fcntl, platform
libc = ctypes.CDLL(None, use_errno=True)

def called(name, number, *arguments):
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(number, *arguments)
    found["call " + name] = errno.errorcode[ctypes.get_errno()] if result < 0 else "done"

machine = platform.machine() == "aarch64"
bot = os.open("bot.py", os.O_RDONLY)
iov = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(ctypes.create_string_buffer(8)), 8))
called("fadvise64 dontneed", (221, 223)[machine], bot, 0, 0, 4)
called("fadvise64 random", (221, 223)[machine], bot, 0, 0, 1)
called("readahead", (187, 213)[machine], bot, 0, 4096)
called("mincore", (27, 232)[machine], 0, 0, 0)
called("preadv2 nowait", (327, 286)[machine], bot, iov, 1, 0, 0, 8)
called("madvise pageout", (28, 233)[machine], 0, 0, 21)
called("madvise normal", (28, 233)[machine], 0, 0, 0)
called("memfd_create", (319, 279)[machine], b"x", 0)
called("unshare", (272, 97)[machine], 0x10000000)
called("clone3", 435, 0, 0)
called("io_uring_setup", 425, 1, 0)
called("keyctl", (250, 219)[machine], 0, 0)
called("bpf", (321, 280)[machine], 0, 0, 0)
key = int(runner)
called("clock_settime", (227, 112)[machine], 0, 0)
called("shmget", (29, 194)[machine], key, 4096, 0o1600)
called("msgget", (68, 186)[machine], key, 0o1600)
called("semget", (64, 190)[machine], key, 1, 0o1600)
called("clone newuser", (56, 220)[machine], 0x10000011, 0, 0, 0, 0)
tried("flock", lambda: fcntl.flock(bot, fcntl.LOCK_SH))
tried("posix lock", lambda: fcntl.lockf(bot, fcntl.LOCK_SH))
tried("lease", lambda: fcntl.fcntl(bot, fcntl.F_SETLEASE, fcntl.F_RDLCK))
tried("get flags", lambda: fcntl.fcntl(bot, fcntl.F_GETFL) and 0)
tried("affinity", lambda: os.sched_setaffinity(0, range(os.cpu_count())))
tried("scheduler", lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)))
tried("setsid", lambda: os.setsid())
tried("setpgid", lambda: os.setpgid(0, 0))
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close())
tried("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close())
tried("inet", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())
tried("thread", lambda: __import__("threading").Thread(target=str).start())
tried("child", lambda: __import__("subprocess").run(["true"], check=True).returncode)
for folder in ("/tmp", "/dev/shm"):
    found["filled " + folder] = fill(folder)

def fork():
    pids = []
    try:
        while len(pids) < 200:
            pid = os.fork()
            if pid == 0:
                time.sleep(1000)
            pids.append(pid)
    except OSError:
        pass
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return len(pids)

if sys.argv[7] == "counted":
    tried("fork", fork)
os.write(2, json.dumps(found).encode())
sys.exit(0)
"""


def keys(kind: str) -> list[str]:
    """Return the keys of the machine's SysV objects of a kind."""
    return [line.split()[0] for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]]


CONTAINED = [level for level in LEVELS if level is not Level.NONE]


@pytest.fixture(scope="module", params=CONTAINED)
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    return chosen


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, level: Level) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "secret").write_text("results")
    name = f"arena-test-{os.getpid()}-{level}"
    victim = subprocess.Popen(["sleep", "1000"])
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(tcp.getsockname())
        unix.bind("\0" + name)
        unix.listen()
        for listener in (tcp, udp, unix):
            listener.setblocking(False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SECRET", "of the runner")
            lane = LaneProcess(LaneConfig(level, str(make_runtime(folder / "runtime"))))
        # Root has no limit on its processes, and landlock no user of its own.
        counted = "counted" if level is not Level.LANDLOCK else "uncounted"
        given = (
            str(tcp.getsockname()[1]),
            name,
            str(folder / "secret"),
            str(lane.popen.pid),
            str(victim.pid),
            counted,
            level,
        )
        bots = [script(folder / "probe", PROBE, *given), script(folder / "good", HONEST)]
        record = lane.play(spec_of(*bots, clock=Clock(decision_ms=30_000, bank_ms=30_000, startup_ms=30_000)))
        assert lane.close() == 0
        for listener in (tcp, unix):
            with pytest.raises(BlockingIOError):
                listener.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)
    assert victim.poll() is None, "killed by a bot"
    victim.kill()
    victim.wait()
    assert living(token(folder / "probe")) == []
    assert not [kind for kind in ("shm", "msg", "sem") if str(lane.popen.pid) in keys(kind)], "it left objects of SysV"
    (fault,) = record.faults
    assert fault.stderr.startswith(b"{"), fault.stderr.decode()
    probed: dict[str, Any] = msgspec.json.decode(fault.stderr)
    return probed


NAMESPACES = {
    "tcp": "ConnectionRefusedError 111",
    "udp": "done",
    "abstract": "ConnectionRefusedError 111",
    "secret": "FileNotFoundError 2",
    "passwd": "FileNotFoundError 2",
    "environ": "FileNotFoundError 2",
    "processes": 2,
    "leak": "done",
    "write /": "OSError 30",
    "write /usr": "OSError 30",
    "write /etc": "OSError 30",
    "write /bot": "OSError 30",
    "write /runtime": "OSError 30",
    "write /dev": "OSError 30",
    "write /tmp": "done",
    "write /dev/shm": "done",
    "kill runner": "ProcessLookupError 3",
    "kill victim": "ProcessLookupError 3",
    "trace victim": "PermissionError 1",
    "limits of victim": "ProcessLookupError 3",
    "priority of victim": "ProcessLookupError 3",
    "chmod secret": "FileNotFoundError 2",
    "times of its own file": "OSError 30",
    "hostname": "bot",
    "host stat": "done",
    "host loadavg": "done",
    "host interrupts": "done",
    "host vmstat": "done",
    "host meminfo": "done",
    "host uptime": "done",
    "host locks": "done",
    "host diskstats": "done",
    "host timer_list": "PermissionError 13",
    "host pressure": "done",
    "host sys": "done",
    "user": "0000000000000000",
    "inet": "done",
}
"""`done` of a file of the host: it is there, and empty; of a packet: it was sent to nobody."""
CLOSED = "PermissionError 13"
LANDLOCK = {
    "tcp": "OSError 97",
    "udp": "OSError 97",
    "abstract": "OSError 97",
    "secret": CLOSED,
    "passwd": CLOSED,
    "environ": CLOSED,
    "processes": CLOSED,
    "leak": "done",
    **{f"write {folder}": CLOSED for folder in ("/", "/usr", "/etc", "/dev", "/tmp", "/dev/shm")},
    "kill runner": "PermissionError 1",
    "kill victim": "PermissionError 1",
    "trace victim": "PermissionError 1",
    **dict.fromkeys(("limits of victim", "priority of victim"), "PermissionError 1"),
    **dict.fromkeys(("chmod secret", "times of its own file"), "PermissionError 1"),
    **{f"host {name}": CLOSED for name in ("stat", "loadavg", "interrupts", "vmstat", "meminfo", "pressure", "sys")},
    "user": "0000000000000000",
    "inet": "OSError 97",
}


def test_what_it_reaches(found: dict[str, Any], level: Level) -> None:
    expected = LANDLOCK if level is Level.LANDLOCK else NAMESPACES
    assert {attempt: found[attempt] for attempt in expected} == expected


def test_its_parent_is_not_to_be_stopped_or_ended(found: dict[str, Any], level: Level) -> None:
    """The first process of a namespace is of another user, or ignores it; else the probe would not have gone on."""
    allowed = {"PermissionError 1"} if level is Level.LANDLOCK else {"PermissionError 1", "done"}
    assert {found[attempt] for attempt in ("signal 19 to parent", "signal 15 to parent", "kill init")} <= allowed


def test_other_folders_are_not_there_or_not_to_be_written(found: dict[str, Any]) -> None:
    for folder in ("/home", "/var/tmp", "/proc"):
        assert found[f"write {folder}"] != "done"


@pytest.mark.parametrize(("folder", "cap"), [("/tmp", 32 << 20), ("/dev/shm", 4 << 20)])
def test_what_it_can_write_is_capped_and_no_disk_of_the_host(
    found: dict[str, Any], level: Level, folder: str, cap: int
) -> None:
    written, device = found[f"filled {folder}"]
    assert not list(Path(folder).glob(f"arena-test-{os.getpid()}-*"))
    if level is Level.LANDLOCK:
        assert written == 0
    else:
        assert cap // 2 < written <= cap
        assert device != os.stat(folder).st_dev


def test_its_memory_is_limited(found: dict[str, Any], level: Level) -> None:
    if level is not Level.STRICT:  # there it would be killed, which is another test
        assert found["memory"] == "MemoryError "


def test_its_processes_are_counted(found: dict[str, Any], level: Level) -> None:
    if level is not Level.LANDLOCK:
        assert found["fork"] in (61, 62, 63)


def test_it_has_no_privilege_to_be_more_than_nice(found: dict[str, Any]) -> None:
    assert found["nice"] in ("PermissionError 13", "PermissionError 1")


CALLS = {
    "fadvise64 dontneed": "EPERM",
    "fadvise64 random": "done",
    "readahead": "EPERM",
    "mincore": "EPERM",
    "preadv2 nowait": "EPERM",
    "madvise pageout": "EPERM",
    "madvise normal": "done",
    "unshare": "EPERM",
    "clone newuser": "EPERM",
    "keyctl": "EPERM",
    "bpf": "EPERM",
    "clone3": "ENOSYS",
    "io_uring_setup": "ENOSYS",
    "clock_settime": "EPERM",
    "shmget": "ENOSYS",
    "msgget": "ENOSYS",
    "semget": "ENOSYS",
}


def test_what_it_may_call(found: dict[str, Any], level: Level) -> None:
    expected = CALLS | {"memfd_create": "done" if level is Level.STRICT else "ENOSYS"}
    assert {call: found[f"call {call}"] for call in expected} == expected


DENIED = {
    "flock": "PermissionError 1",
    "posix lock": "PermissionError 1",
    "lease": "PermissionError 1",
    "get flags": "done",
    "affinity": "PermissionError 1",
    "scheduler": "PermissionError 1",
    "setsid": "PermissionError 1",
    "setpgid": "PermissionError 1",
    "netlink": "OSError 97",
    "vsock": "OSError 97",
    "thread": "done",
    "child": "done",
}


def test_what_would_undo_a_limit_or_carry_a_message(found: dict[str, Any]) -> None:
    assert {attempt: found[attempt] for attempt in DENIED} == DENIED
