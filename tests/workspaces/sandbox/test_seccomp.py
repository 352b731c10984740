"""The filter is run here on a small machine of our own, so that both ABIs can be tried anywhere."""

import errno
import struct

import pytest

from stretto.workspaces.sandbox import seccomp
from stretto.workspaces.sandbox.seccomp import ABIS, Abi

ALLOWED, KILLED = 0, -1
LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06


def verdict(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """0 if the call is allowed, else its errno; -1 if the process is killed."""
    words = struct.pack("=IIQ", number, audit, 0)
    words += b"".join(struct.pack("=Q", it) for it in (*arguments, *[0] * (6 - len(arguments))))
    steps = list(struct.iter_unpack("=HBBI", program))
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == LOAD:
            (loaded,) = struct.unpack_from("=I", words, value)
        elif code == AND:
            loaded &= value
        elif code == RETURN:
            if value >> 16 == 0x8000:
                return KILLED
            return value & 0xFFFF if value >> 16 == 5 else ALLOWED
        else:
            is_true = {
                EQUAL: loaded == value,
                AT_LEAST: loaded >= value,
                ANY_BIT: bool(loaded & value),
            }[code]
            at += if_true if is_true else if_false


class Machine:
    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("platform.machine", lambda: name)
        seccomp.program.cache_clear()
        self.abi: Abi = ABIS[name]
        self.programs = {it: seccomp.program(local_sockets=it) or b"" for it in (False, True)}
        self.blind = seccomp.program(local_sockets=False, watches=False) or b""
        seccomp.program.cache_clear()

    def says(self, name: str, *arguments: int, local_sockets: bool = False) -> int:
        program = self.programs[local_sockets]
        return verdict(program, self.abi.audit, self.abi.calls[name], *arguments)


@pytest.fixture(params=sorted(ABIS))
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(request.param, monkeypatch)


@pytest.mark.parametrize("name", ["ptrace", "mount", "keyctl", "bpf", "open_by_handle_at", "setns"])
def test_calls_that_reach_out_are_forbidden(machine: Machine, name: str) -> None:
    assert machine.says(name) == errno.EPERM


@pytest.mark.parametrize("name", ["clone3", "openat2", "io_uring_setup", "memfd_create", "shmget"])
def test_calls_that_nobody_can_look_into_seem_not_to_exist(machine: Machine, name: str) -> None:
    assert machine.says(name) == errno.ENOSYS


def test_a_process_may_be_made_but_no_namespace(machine: Machine) -> None:
    assert machine.says("clone", 0x01200011) == ALLOWED
    for flag in (0x10000000, 0x20000, 0x40000000, 0x80, 0x02000000):
        assert machine.says("clone", flag | 17) == errno.EPERM
        assert machine.says("unshare", flag) == errno.EPERM


def test_sockets_of_the_internet_are_allowed_and_no_others(machine: Machine) -> None:
    for family in (2, 10, 16):
        assert machine.says("socket", family, 1) == ALLOWED
    for family in (1, 17, 31, 38, 40):
        assert machine.says("socket", family, 1) == errno.EACCES


def test_local_sockets_are_allowed_when_asked_for(machine: Machine) -> None:
    assert machine.says("socket", 1, 1, local_sockets=True) == ALLOWED
    assert machine.says("socket", 40, 1, local_sockets=True) == errno.EACCES


def test_a_pair_of_streams_is_allowed_but_not_of_datagrams(machine: Machine) -> None:
    assert machine.says("socketpair", 1, 1 | 0o2000000) == ALLOWED
    assert machine.says("socketpair", 1, 5) == ALLOWED
    assert machine.says("socketpair", 1, 2 | 0o4000) == errno.EPERM


def test_no_file_gets_a_set_id_bit(machine: Machine) -> None:
    assert machine.says("fchmodat", 0, 0, 0o755) == ALLOWED
    assert machine.says("fchmodat", 0, 0, 0o4755) == errno.EPERM
    assert machine.says("fchmod", 3, 0o2755) == errno.EPERM
    assert machine.says("openat", 0, 0, 0o101, 0o4755) == errno.EPERM
    assert machine.says("openat", 0, 0, 0o101, 0o755) == ALLOWED
    assert machine.says("openat", 0, 0, 0o1, 0o4755) == ALLOWED  # nothing is made
    assert machine.says("mknodat", 0, 0, 0o020666) == errno.EPERM
    assert machine.says("mknodat", 0, 0, 0o060666) == errno.EPERM
    assert machine.says("mknodat", 0, 0, 0o010666) == ALLOWED  # a pipe


def test_no_keystroke_is_pushed_into_a_terminal(machine: Machine) -> None:
    assert machine.says("ioctl", 0, 0x5412) == errno.EPERM
    assert machine.says("ioctl", 0, 0xFFFFFFFF00005412) == errno.EPERM  # only the low half counts
    assert machine.says("ioctl", 0, 0x5413) == ALLOWED


def test_files_can_be_watched_unless_that_shows_too_much(machine: Machine) -> None:
    number = machine.abi.calls["inotify_init1"]
    assert verdict(machine.programs[False], machine.abi.audit, number) == ALLOWED
    assert verdict(machine.blind, machine.abi.audit, number) == errno.ENOSYS


def test_another_abi_is_not_spoken(machine: Machine) -> None:
    assert verdict(machine.programs[False], 0x40000003, 20) == KILLED
    if machine.abi.has_x32:
        x32 = 0x40000000 + machine.abi.calls["socket"]
        assert verdict(machine.programs[False], machine.abi.audit, x32, 1, 1) == errno.ENOSYS


def test_an_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    seccomp.program.cache_clear()
    assert seccomp.program(local_sockets=False) is None
    seccomp.program.cache_clear()
