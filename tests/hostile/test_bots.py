"""Bots that do what they should not, as real processes at each isolation level: the exact fault, and nothing left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from arena.lane import LaneConfig, Voided
from arena.records import BotRef, Clock, Fault, MatchRecord
from arena.sandbox.environment import make_runtime
from tests.fakes import bot_ref, spec_of
from tests.scripts import HONEST, LEVELS, LaneProcess, living, script, token

QUICK = Clock(decision_ms=250)
PATIENT = Clock(decision_ms=20_000, bank_ms=60_000, startup_ms=20_000)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="module", params=LEVELS)
def lane(request: pytest.FixtureRequest, runtime: Path) -> Iterator[LaneProcess]:
    lane = LaneProcess(LaneConfig(request.param, str(runtime)))
    yield lane
    assert lane.close() == 0


def played(lane: LaneProcess, bad: BotRef, tmp_path: Path, clock: Clock = PATIENT) -> MatchRecord:
    """Play a deal of a bad bot, which moves first, and an honest one; nothing of either may be left."""
    good = script(tmp_path / "good", HONEST)
    record = lane.play(spec_of(bad, good, clock=clock))
    assert living(token(tmp_path / "bad")) == []
    assert living(token(tmp_path / "good")) == []
    return record


def fault_of(lane: LaneProcess, bad: BotRef, tmp_path: Path, clock: Clock = PATIENT) -> Fault:
    record = played(lane, bad, tmp_path, clock)
    (fault,) = record.faults
    assert (fault.seat, record.deals[0].places) == (0, (2, 1))
    assert record.deals[0].duration_us < 10_000_000, "nobody waited for the end of a pipe or a daemon"
    return fault


STARTS = [
    ("startup", "missing", ("/no/such/program",)),
    ("startup", "missing", ("no-such-program",)),
    ("startup", "missing", ("./gone.py",)),
    ("startup", "exec", ("./notes.txt",)),
    ("startup", "exec", ("/usr",)),
    ("startup", "exit", ("true",)),
    ("startup", "exit", ("false",)),
    ("startup", "exit", ("sh", "-c", "exit 200")),
    ("crash", "signal", ("sh", "-c", "kill -SEGV $$")),
    ("garbage", "text", ("echo", "hello, world")),
]


@pytest.mark.parametrize(("kind", "detail", "command"), STARTS)
def test_a_command_that_is_no_bot(
    lane: LaneProcess, tmp_path: Path, kind: str, detail: str, command: tuple[str, ...]
) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "notes.txt").write_text("not a program")
    fault = fault_of(lane, bot_ref("bad", folder, command), tmp_path)
    assert (fault.kind.value, fault.detail, fault.step) == (kind, detail, 0)


def test_two_that_never_greet(lane: LaneProcess, tmp_path: Path) -> None:
    bots = [script(tmp_path / name, "hang()") for name in ("bad", "worse")]
    record = lane.play(spec_of(*bots, clock=Clock(startup_ms=300)))
    assert [(fault.kind.value, fault.detail) for fault in record.faults] == [("startup", "silent")] * 2
    assert living(token(tmp_path / "bad")) == living(token(tmp_path / "worse")) == []


DAEMON = """
if os.fork() == 0:
    try:
        os.setsid()
    except PermissionError:
        pass
    if os.fork() == 0:
        os.write(2, b"daemon\\n")
        hang()
    os._exit(0)
os.wait()
"""
FAULTS = {
    "answers nothing": ("timeout", "silent", "ask()\nhang()"),
    "answers late": ("timeout", "silent", "q = ask()\ntime.sleep(0.4)\nanswer(q)\nplay_on()"),
    "answers a byte at a time": (
        "timeout",
        "partial",
        "for byte in act(ask()):\n    write(bytes([byte]))\n    time.sleep(0.05)\nhang()",
    ),
    "answers in part": ("timeout", "partial", "ask()\nwrite(frame({'type': 'act'})[:-1])\nhang()"),
    "stops itself": ("timeout", "silent", "ask()\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "stops its group": ("timeout", "silent", "ask()\nos.kill(0, signal.SIGSTOP)"),
    "never reads": ("timeout", "silent", "hang()"),
    "computes for ever": ("timeout", "silent", "ask()\nwhile True: pass"),
    "ignores SIGTERM": (
        "timeout",
        "silent",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nask()\nos.kill(0, signal.SIGTERM)\nhang()",
    ),
    "plays an illegal action": ("illegal", "action", "answer(ask(), 'castle')\nhang()"),
    "answers another ask": ("garbage", "id", "q = ask()\nq['id'] += 1\nanswer(q)\nhang()"),
    "answers before it is asked": (
        "garbage",
        "id",
        "q = ask()\nwrite(act(q) + act(q | {'id': q['id'] + 1}))\nplay_on()",
    ),
    "prints": ("garbage", "text", "ask()\nos.write(1, b'thinking...\\n')\nhang()"),
    "announces a giant frame": ("garbage", "oversize", "ask()\nwrite(b'\\xff' * 4)\nhang()"),
    "writes without end": ("garbage", "oversize", "ask()\nwhile True: write(b'\\xc0' * 65536)"),
    "nests deeply": ("garbage", "malformed", "ask()\nwrite(struct.pack('>I', 60000) + b'\\x91' * 60000)\nhang()"),
    "nests deeply in a key": (
        "garbage",
        "malformed",
        "deep = b'\\x82\\xa1x' + b'\\x91' * 60000 + act(ask())[5:]\nwrite(struct.pack('>I', len(deep)) + deep)\nhang()",
    ),
    "announces a giant list": (
        "garbage",
        "malformed",
        "ask()\nwrite(struct.pack('>I', 5) + b'\\xdd' + b'\\xff' * 4)\nhang()",
    ),
    "sends no map": ("garbage", "malformed", "ask()\nwrite(frame(7))\nhang()"),
    "sends an unknown type": ("garbage", "type", "ask()\nwrite(frame({'type': 'resign'}))\nhang()"),
    "exits": ("crash", "exit", "ask()\nsys.exit(0)"),
    "raises": ("crash", "exit", "ask()\nraise ValueError('out of ideas')"),
    "exits with 127": ("crash", "exit", "ask()\nsys.exit(127)"),
    "dies of a signal": ("crash", "signal", "ask()\nos.kill(os.getpid(), signal.SIGSEGV)"),
    "kills its group": ("crash", "signal", "ask()\nos.kill(0, signal.SIGKILL)"),
    "terminates its group": ("crash", "signal", "ask()\nos.kill(0, signal.SIGTERM)\nhang()"),
    "leaves a daemon and exits": ("crash", "exit", f"ask()\n{DAEMON}sys.exit(0)"),
    "leaves a child and exits": ("crash", "exit", "ask()\nif os.fork() == 0: hang()\nsys.exit(3)"),
    "floods stderr": ("flood", "stderr", "ask()\nwhile True: os.write(2, b'!' * 65536)"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_bot_that_fails_in_play(lane: LaneProcess, tmp_path: Path, what: str) -> None:
    kind, detail, body = FAULTS[what]
    clock = QUICK if kind == "timeout" else PATIENT
    fault = fault_of(lane, script(tmp_path / "bad", "hello()\n" + body), tmp_path, clock)
    late = 2 if what == "answers before it is asked" else 0
    assert (fault.kind.value, fault.detail, fault.step) == (kind, detail, late), fault


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_a_bot_that_closes_its_stdout(lane: LaneProcess, tmp_path: Path, closed: tuple[int, ...]) -> None:
    body = f"hello()\nask()\nfor fd in {closed}: os.close(fd)\nhang()"
    fault = fault_of(lane, script(tmp_path / "bad", body), tmp_path, QUICK)
    # In bwrap the first process of the namespace holds a copy of the pipe, so that its end is not seen.
    has_init = lane.level in ("strict", "namespaced")
    assert (fault.kind.value, fault.detail) == (("timeout", "silent") if has_init else ("crash", "closed"))


def test_an_old_answer_in_play_is_dropped(lane: LaneProcess, tmp_path: Path) -> None:
    body = "hello()\nold = ask()\nanswer(old)\nq = ask()\nanswer(old)\nanswer(q)\nplay_on()"
    record = played(lane, script(tmp_path / "bad", body), tmp_path)
    assert record.faults == ()
    assert record.deals[0].stale == (1, 0)


def test_a_fault_keeps_what_the_bot_said_last(lane: LaneProcess, tmp_path: Path) -> None:
    body = "hello()\nask()\nos.write(2, b'a' * 60000)\nraise ValueError('out of ideas')"
    fault = fault_of(lane, script(tmp_path / "bad", body), tmp_path)
    assert fault.stderr.startswith(b"a" * 8192 + b"\n... ")
    assert fault.stderr.endswith(b"ValueError: out of ideas\n")
    body = "hello()\nq = ask()\nos.write(2, b'here I go')\nanswer(q, 'castle')\nhang()"
    assert fault_of(lane, script(tmp_path / "bad", body), tmp_path).stderr == b"here I go"


def test_much_stderr_is_no_fault(lane: LaneProcess, tmp_path: Path) -> None:
    body = "hello()\nq = ask()\nfor _ in range(1000): os.write(2, b'!' * 10000)\nanswer(q)\nplay_on()"
    assert played(lane, script(tmp_path / "bad", body), tmp_path).faults == ()


def test_a_last_action_and_an_exit_is_a_result(lane: LaneProcess, tmp_path: Path) -> None:
    whole = played(lane, script(tmp_path / "bad", HONEST), tmp_path).deals[0]
    final = whole.steps[-1].seat
    asks = sum(step.seat == final for step in whole.steps)
    body = f"hello()\nfor _ in range({asks}): answer(ask())\nsys.exit(0)"
    bots = [script(tmp_path / "bad", body), script(tmp_path / "good", HONEST)]
    record = lane.play(spec_of(*(bots if final == 0 else reversed(bots)), clock=PATIENT))
    assert record.faults == ()
    assert record.deals[0].places == whole.places


def test_a_daemon_of_an_honest_bot_is_gone_after_the_match(lane: LaneProcess, tmp_path: Path) -> None:
    assert played(lane, script(tmp_path / "bad", f"hello()\n{DAEMON}play_on()"), tmp_path).faults == ()


def test_the_environment_is_what_is_promised(lane: LaneProcess, tmp_path: Path) -> None:
    told = "os.write(2, json.dumps([dict(os.environ), os.getcwd(), sys.argv[1:]]).encode())"
    body = f"hello()\nask()\n{told}\nsys.exit(0)"
    fault = fault_of(lane, script(tmp_path / "bad", body), tmp_path)
    environment, folder, arguments = msgspec.json.decode(fault.stderr)
    home = environment["HOME"]
    assert environment == {
        "PATH": environment["PATH"],
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    assert environment["PATH"].endswith("/bin:/usr/local/bin:/usr/bin:/bin")
    assert arguments == [token(tmp_path / "bad")]
    if lane.level in ("strict", "namespaced"):
        assert (home, folder) == ("/tmp", "/bot")
    else:
        assert not Path(home).exists(), "it was private and is gone"
        assert Path(folder).exists() is (lane.level == "landlock"), "only there it cannot be written"


def test_cpu_time_is_measured(lane: LaneProcess, tmp_path: Path) -> None:
    body = "hello()\nq = ask()\nwhile time.process_time() < 0.2: pass\nanswer(q)\nplay_on()"
    record = played(lane, script(tmp_path / "bad", body), tmp_path)
    busy, idle = record.deals[0].cpu_us
    assert busy > 100_000
    assert 0 <= idle < busy


def test_a_folder_that_is_gone_voids_the_match(lane: LaneProcess, tmp_path: Path) -> None:
    reply = lane.reply(spec_of(bot_ref("a", tmp_path / "nowhere", ("true",)), script(tmp_path / "good", HONEST)))
    assert reply == Voided(7, f"the folder {tmp_path}/nowhere is gone")
    assert living(token(tmp_path / "good")) == []
