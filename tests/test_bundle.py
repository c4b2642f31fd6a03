from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import socket
import stat
import struct
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.bundle import Bundle, BundleFile, make_bundle, read_bundle, unpack, verify
from arena.errors import ConfigError, InfraError
from arena.records import BotHash

FILES = {"bot.toml": b'name = "a"\n', "run.sh": b"#!/bin/sh\n", "src/a.py": b"pass\n", "src/é.txt": b""}
VECTOR = "55ef20aff0615fecd4fec7cfe459a15482899adea012d31ee2d945fb37bc401f"


def write(root: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
    return root


def by_hand(files: dict[str, bytes]) -> str:
    text = struct.pack(">I", 14) + b"arena-bundle-1"
    for name in sorted(files, key=str.encode):
        for part in (name.encode(), b"x" if name.endswith(".sh") else b"-", files[name]):
            text += struct.pack(">I", len(part)) + part
    return hashlib.sha256(text).hexdigest()


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    return write(tmp_path / "bot")


# The hash


def test_the_hash_is_pinned(bot: Path) -> None:
    assert read_bundle(bot).hash == by_hand(FILES) == VECTOR


def test_the_hash_of_nothing_is_pinned() -> None:
    assert make_bundle([]).hash == hashlib.sha256(b"\0\0\0\x0earena-bundle-1").hexdigest()


def test_a_bundle_tells_its_files(bot: Path) -> None:
    bundle = read_bundle(bot)
    assert [file.path for file in bundle.files] == ["bot.toml", "run.sh", "src/a.py", "src/é.txt"]
    assert [file.executable for file in bundle.files] == [False, True, False, False]
    assert bundle.size == sum(map(len, FILES.values()))
    assert bundle.find("src/a.py") == b"pass\n"
    assert bundle.find("src") is None


def test_what_is_no_part_of_a_bot_does_not_count(bot: Path) -> None:
    before = read_bundle(bot).hash
    write(bot, {".git/config": b"x", "__pycache__/a.pyc": b"x", "src/__pycache__/b.pyc": b"x", "src/.git": b"x"})
    (bot / "empty").mkdir()
    (bot / ".git" / "link").symlink_to("/etc/passwd")
    (bot / "bot.toml").chmod(0o600)
    os.utime(bot / "bot.toml", (1, 1))
    assert read_bundle(bot).hash == before


@pytest.mark.parametrize("change", ["contents", "name", "bit", "more"])
def test_every_change_changes_the_hash(bot: Path, change: str) -> None:
    before = read_bundle(bot).hash
    match change:
        case "contents":
            (bot / "bot.toml").write_bytes(b"")
        case "name":
            (bot / "bot.toml").rename(bot / "bot.tomi")
        case "bit":
            (bot / "bot.toml").chmod(0o744)
        case _:
            (bot / "new").touch()
    assert read_bundle(bot).hash != before


names = st.sampled_from(["a", "b", "ab", "-", "x", "a/x", "a/-", "b/b/b"])
trees = st.dictionaries(names, st.tuples(st.booleans(), st.binary(max_size=3) | st.sampled_from([b"x", b"\0\0\0\1x"])))
Tree = dict[str, tuple[bool, bytes]]


def bundle_of(tree: Tree, order: Callable[[list[BundleFile]], None] = lambda _: None) -> Bundle | None:
    files = [BundleFile(path, executable, data) for path, (executable, data) in tree.items()]
    order(files)
    try:
        return make_bundle(files)
    except ConfigError:
        return None


@given(trees, st.randoms())
def test_the_order_of_files_does_not_count(tree: Tree, random: object) -> None:
    shuffle: Callable[[list[BundleFile]], None] = random.shuffle  # type: ignore[attr-defined]  # a Random of hypothesis
    assert bundle_of(tree) == bundle_of(tree, shuffle)


@given(trees, trees)
def test_different_trees_have_different_hashes(one: Tree, other: Tree) -> None:
    first, second = bundle_of(one), bundle_of(other)
    if first is not None and second is not None:
        assert (first.hash == second.hash) == (one == other)


# What is refused


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as info:
        read_bundle(path)
    assert str(info.value).startswith(f"{path}: ")
    return str(info.value)


def test_links_are_refused(bot: Path) -> None:
    (bot / "src" / "link").symlink_to("a.py")
    assert "'src/link' is a symbolic link" in refused(bot)


def test_links_to_folders_are_refused(bot: Path) -> None:
    (bot / "link").symlink_to("src")
    assert "'link' is a symbolic link" in refused(bot)


def test_hard_links_are_refused(bot: Path) -> None:
    os.link(bot / "run.sh", bot / "src" / "hard")
    assert "'run.sh' is a hard link, one of 2" in refused(bot)


def test_pipes_are_refused(bot: Path) -> None:
    os.mkfifo(bot / "pipe")
    assert "'pipe' is neither a file nor a folder" in refused(bot)


def test_sockets_are_refused(bot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bot)  # the path of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        assert "'sock' is neither a file nor a folder" in refused(bot)


@pytest.mark.parametrize("mode", [stat.S_ISUID, stat.S_ISGID])
def test_set_ids_are_refused(bot: Path, mode: int) -> None:
    (bot / "run.sh").chmod(0o755 | mode)
    assert "'run.sh' is setuid or setgid" in refused(bot)


def test_names_that_are_not_utf8_are_refused(bot: Path) -> None:
    Path(os.fsdecode(os.fsencode(bot) + b"/\xff")).touch()
    assert r"'\udcff' is not UTF-8" in refused(bot)


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "a\x1b[2J"])
def test_names_that_are_not_plain_are_refused(bot: Path, name: str) -> None:
    (bot / name).touch()
    assert f"{name!r} has a backslash or a control character" in refused(bot)


@pytest.mark.parametrize(
    ("one", "other"), [("README", "readme"), ("src/x", "SRC/y"), ("e\u0301", "é"), ("straße", "STRASSE"), ("ſ", "S")]
)
def test_names_that_are_one_on_some_file_systems_are_refused(tmp_path: Path, one: str, other: str) -> None:
    assert "cannot both exist" in refused(write(tmp_path / "bot", {one: b"", other: b""}))


def test_a_file_below_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="'a/b' and 'a' cannot both"):
        make_bundle([BundleFile("a", False, b""), BundleFile("a/b", False, b"")])


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../x", "./a", "a//b", "a/", "a\0b", "\udcff"])
def test_paths_that_are_not_plain_are_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        make_bundle([BundleFile(path, False, b"")])


def test_deep_folders_are_refused(tmp_path: Path) -> None:
    assert "is longer than 32 names" in refused(write(tmp_path / "bot", {"d/" * 32 + "x": b""}))
    assert read_bundle(write(tmp_path / "other", {"d/" * 31 + "x": b""})).files


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    many = write(tmp_path / "bot", {f"{i:04}": b"" for i in range(2000)})
    assert len(read_bundle(many).files) == 2000
    (many / "more").touch()
    assert "too large at 'more'; at most 2000 files, 2000 folders and 64 MiB" in refused(many)


def test_too_many_folders_are_refused(tmp_path: Path) -> None:
    for i in range(2001):
        (tmp_path / f"{i:04}").mkdir()
    assert "too large at '2000'" in refused(tmp_path)


def test_large_files_are_refused_before_they_are_read(bot: Path) -> None:
    with open(bot / "large", "wb") as file:
        file.truncate(1 << 40)
    assert "too large at 'large'" in refused(bot)


def test_the_size_may_be_used_up(tmp_path: Path) -> None:
    files = [BundleFile("a", False, bytes(64 << 20)), BundleFile("b", False, b"")]
    assert make_bundle(files).size == 64 << 20
    with pytest.raises(ConfigError, match="too large at 'c'"):
        make_bundle([*files, BundleFile("c", False, b"1")])


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "nothing")
    assert "is neither a folder nor an archive (.zip" in refused(write(tmp_path / "x", {"bot.rar": b""}) / "bot.rar")
    os.mkfifo(tmp_path / "bot.tar")
    assert "is neither a folder nor an archive" in refused(tmp_path / "bot.tar")


def test_a_folder_may_be_named_by_a_link(bot: Path) -> None:
    link = bot.parent / "link"
    link.symlink_to("bot")
    assert read_bundle(link) == read_bundle(bot)


# Changes while it is read


def change_while_reading(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[], object]) -> None:
    """Run `change` right after the status of `name` was taken."""
    real = os.stat

    def meddle(path: str, **more: object) -> os.stat_result:
        status = real(path, **more)  # type: ignore[arg-type]  # handed on as it came
        if path == name:
            change()
        return status

    monkeypatch.setattr(os, "stat", meddle)


def test_a_file_that_grows_is_refused(bot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_while_reading(monkeypatch, "a.py", lambda: (bot / "src/a.py").write_bytes(b"much longer"))
    assert "'src/a.py' changed while it was read" in refused(bot)


def test_a_file_that_became_a_link_is_refused(bot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (bot / "src/a.py").unlink()
        (bot / "src/a.py").symlink_to("/etc/passwd")

    change_while_reading(monkeypatch, "a.py", swap)
    assert "cannot be read" in refused(bot)


def test_a_folder_that_became_a_link_is_refused(bot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (bot / "src").rename(bot.parent / "away")
        (bot / "src").symlink_to("../away")

    change_while_reading(monkeypatch, "src", swap)
    assert "cannot be read" in refused(bot)


def test_a_folder_that_changes_is_refused(bot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(bot / "src", (1, 1))
    change_while_reading(monkeypatch, "a.py", (bot / "src" / "new").touch)
    assert "'src/' changed while it was read" in refused(bot)


# Archives


def zipped(bot: Path, name: str = "bot.zip", prefix: str = "") -> Path:
    path = bot.parent / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(bot.rglob("*")):
            archive.write(file, prefix + str(file.relative_to(bot)))
    return path


def tarred(bot: Path, name: str = "bot.tar.gz", top: str = ".") -> Path:
    path = bot.parent / name
    with tarfile.open(path, "w" if name.endswith(".tar") else "w:gz", format=tarfile.GNU_FORMAT) as archive:
        archive.add(bot, top)
    return path


def test_archives_have_the_hash_of_their_folder(bot: Path) -> None:
    write(bot, {".git/config": b"x", "src/__pycache__/b.pyc": b"x", "n" * 200 + "/" + "m" * 200: b"long"})
    wanted = read_bundle(bot)
    for archive in (
        zipped(bot),
        zipped(bot, "top.zip", "some-bot/"),
        tarred(bot),
        tarred(bot, "b.tar", "bot"),
        tarred(bot, "b.tgz", "./bot"),
    ):
        assert read_bundle(archive) == wanted


def test_archives_of_the_ordinary_tools_have_the_hash_of_their_folder(bot: Path) -> None:
    wanted = read_bundle(bot)
    for arguments in (["-czf", "a.tar.gz", "bot"], ["-cf", "b.tar", "-C", "bot", "."]):
        subprocess.run(["tar", *arguments], cwd=bot.parent, check=True)
        assert read_bundle(bot.parent / arguments[1]) == wanted


def test_an_archive_without_modes_has_no_executables(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        info = zipfile.ZipInfo("bot.toml")
        info.create_system, info.external_attr = 0, 0x20
        archive.writestr(info, b"x")
    assert read_bundle(tmp_path / "w.zip").files == (BundleFile("bot.toml", False, b"x"),)


def test_one_folder_without_a_manifest_stays(tmp_path: Path) -> None:
    bot = write(tmp_path / "bot", {"a/b": b""})
    assert read_bundle(zipped(bot)).files[0].path == "a/b"


def one_member(path: Path, name: str, data: bytes = b"", **changes: object) -> Path:
    """Write an archive of one member whose header has the given attributes."""
    info = tarfile.TarInfo(name) if path.suffix != ".zip" else zipfile.ZipInfo(name)
    if isinstance(info, tarfile.TarInfo):
        info.size = len(data)
    for attribute, value in changes.items():
        setattr(info, attribute, value)
    if isinstance(info, tarfile.TarInfo):
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            archive.addfile(info, io.BytesIO(data))
    else:
        with zipfile.ZipFile(path, "w") as zip_archive:
            zip_archive.writestr(info, data)
    return path


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz"])
@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a//b", "a\\b", "a\nb", "/"])
def test_archives_with_paths_that_lead_out_are_refused(tmp_path: Path, suffix: str, name: str) -> None:
    assert "name" in refused(one_member(tmp_path / f"x{suffix}", name)) or "plain relative" in refused(
        tmp_path / f"x{suffix}"
    )


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_tars_of_anything_but_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    said = refused(one_member(tmp_path / "x.tar", "thing", type=kind, linkname="/etc/passwd"))
    assert "'thing' is " in said


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFREG | stat.S_ISUID])
def test_zips_of_anything_but_files_are_refused(tmp_path: Path, kind: int) -> None:
    assert "'thing' is " in refused(one_member(tmp_path / "x.zip", "thing", external_attr=(kind | 0o644) << 16))


def test_set_ids_in_a_tar_are_refused(tmp_path: Path) -> None:
    assert "setuid" in refused(one_member(tmp_path / "x.tar", "thing", mode=0o4755))


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
        archive.addfile(tarfile.TarInfo("a"))
    assert "'a' and 'a' cannot both" in refused(tmp_path / "x.tar")


def test_zip_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = one_member(tmp_path / "x.zip", "aXb")
    path.write_bytes(path.read_bytes().replace(b"aXb", b"a\xffb"))
    assert "is not UTF-8" in refused(path)
    path = one_member(tmp_path / "y.zip", "aXXb", b"?")
    path.write_bytes(path.read_bytes().replace(b"aXXb", "aéb".encode()))
    assert read_bundle(path).files[0].path == "aéb"


def test_tar_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = one_member(tmp_path / "x.tar", "a")
    with tarfile.open(path, "w", encoding="latin-1", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("a\xff"))
    assert "is not UTF-8" in refused(path)


def test_encrypted_and_unusual_zips_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a", b"a")
    assert "neither stored nor deflated" in refused(tmp_path / "x.zip")
    path = one_member(tmp_path / "y.zip", "a", b"a")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in refused(path)


def test_tar_bombs_are_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.tar.gz", "wb") as file:
        info = tarfile.TarInfo("large")
        info.size = 1 << 40
        file.write(info.tobuf())
    assert "too large at 'large'" in refused(tmp_path / "x.tar.gz")
    info.name = ".git/large"
    with gzip.open(tmp_path / "y.tar.gz", "wb", compresslevel=1) as file:
        file.write(info.tobuf())
        for _ in range(90):
            file.write(bytes(1 << 20))
    assert "expands to more than 64 MiB" in refused(tmp_path / "y.tar.gz")


def test_a_negative_size_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    info.size = -1
    (tmp_path / "x.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    assert "'a' has the size -1" in refused(tmp_path / "x.tar")


def test_a_huge_extended_header_is_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=1) as file:
        info = tarfile.TarInfo("h")
        info.type, info.size = tarfile.XHDTYPE, 1 << 35
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(90):
            file.write(bytes(1 << 20))
    assert "expands to more than 64 MiB" in refused(tmp_path / "x.tar.gz")


def test_zip_bombs_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in "ab":
            archive.writestr(name, bytes(33 << 20))
    assert "too large at 'b'" in refused(tmp_path / "x.zip")


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1 << 20))
    data = (tmp_path / "x.zip").read_bytes().replace(struct.pack("<I", 1 << 20), struct.pack("<I", 10))
    (tmp_path / "x.zip").write_bytes(data)
    assert "is damaged" in refused(tmp_path / "x.zip")


def test_a_zip_with_a_long_list_of_contents_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.comment = b"c" * 60_000
        for number in range(75):
            info = zipfile.ZipInfo(f".git/{number}")
            info.comment = b"c" * 60_000
            archive.writestr(info, b"")
    assert "list of contents is longer than 4 MiB" in refused(tmp_path / "x.zip")


def test_cut_off_archives_are_refused(bot: Path) -> None:
    for archive in (zipped(bot), tarred(bot), tarred(bot, "b.tar")):
        data = archive.read_bytes()
        for length in {0, 1, 511, 512, 1024, 1536, len(data) // 2, len(data) - 9}:
            archive.write_bytes(data[: min(length, len(data.rstrip(b"\0")))])
            assert "damaged" in refused(archive) or "cannot be read" in refused(archive)


def test_the_checksum_at_the_end_of_a_padded_tar_counts(bot: Path) -> None:
    plain = tarred(bot, "b.tar").read_bytes() + bytes(1 << 18)
    archive = bot.parent / "b.tar.gz"
    archive.write_bytes(gzip.compress(plain))
    assert read_bundle(archive) == read_bundle(bot)
    archive.write_bytes(archive.read_bytes()[:-8] + b"wrong---")
    assert "cannot be read: CRC check failed" in refused(archive)


def test_a_tar_with_a_bad_header_in_the_middle_is_refused(bot: Path) -> None:
    archive = tarred(bot, "b.tar")
    data = bytearray(archive.read_bytes())
    data[data.index(b"./src/a.py")] ^= 1
    archive.write_bytes(data)
    assert "cut off or bad header" in refused(archive)


@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    stream = io.BytesIO()
    if is_zip := data.draw(st.booleans()):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bot.toml", b"x" * 50)
    else:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            info = tarfile.TarInfo("é" * 60)
            info.size = 5
            tar.addfile(info, io.BytesIO(b"xxxxx"))
    text = bytearray(stream.getvalue()[: None if is_zip else 3072])
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.zip" if is_zip else "x.tar")
        path.write_bytes(text)
        with contextlib.suppress(ConfigError):
            read_bundle(path)


# Unpacking


def test_unpacking_gives_the_bundle_back_read_only(bot: Path, tmp_path: Path) -> None:
    bundle = read_bundle(bot)
    into = tmp_path / "bots" / bundle.hash / "src"
    unpack(bundle, into)
    verify(into, bundle.hash)
    assert stat.S_IMODE((into / "run.sh").stat().st_mode) == 0o555
    assert stat.S_IMODE((into / "src/a.py").stat().st_mode) == 0o444
    assert os.listdir(into.parent) == ["src"]
    inode = into.stat().st_ino
    unpack(bundle, into)
    assert into.stat().st_ino == inode


@pytest.mark.parametrize("change", ["contents", "ignored", "link", "missing"])
def test_an_unpacked_bundle_that_changed_is_found(bot: Path, tmp_path: Path, change: str) -> None:
    bundle = read_bundle(bot)
    into = tmp_path / "src"
    unpack(bundle, into)
    match change:
        case "contents":
            (into / "src/a.py").chmod(0o644)
            (into / "src/a.py").write_bytes(b"evil")
        case "ignored":
            write(into, {"src/__pycache__/a.cpython-311.pyc": b"evil"})
        case "link":
            into.rename(tmp_path / "away")
            into.symlink_to("away")
        case _:
            (into / "bot.toml").unlink()
    with pytest.raises(ConfigError, match=f"no longer the bundle {bundle.hash}"):
        verify(into, bundle.hash)
    with pytest.raises(ConfigError, match="submit the bot again"):
        unpack(bundle, into)


def test_verify_names_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no longer the bundle"):
        verify(tmp_path / "nothing", BotHash("0" * 64))


def test_a_folder_unpacked_meanwhile_by_another_is_taken(
    bot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = read_bundle(bot)
    into = tmp_path / "src"
    unpack(bundle, into)
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    unpack(bundle, into)
    verify(into, bundle.hash)


def test_what_cannot_be_written_is_our_failure(bot: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfraError, match="cannot unpack"):
        unpack(read_bundle(bot), tmp_path / "file" / "src")


def test_a_place_that_is_taken_by_a_file_is_our_failure(
    bot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").touch()
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    with pytest.raises(InfraError, match="cannot unpack"):
        unpack(read_bundle(bot), tmp_path / "src")
