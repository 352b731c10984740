"""Numbers of the system calls that the filter names. Out: an Abi for each machine we know."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

# The same on every machine since Linux 5.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447, "fchmodat2": 452, "open_tree_attr": 467,
}  # fmt: skip
_X86_64 = _COMMON | {
    "open": 2, "ioctl": 16, "shmget": 29, "socket": 41, "socketpair": 53, "clone": 56,
    "creat": 85, "chmod": 90, "fchmod": 91, "ptrace": 101, "syslog": 103, "mknod": 133,
    "vhangup": 153, "pivot_root": 155, "chroot": 161, "acct": 163, "settimeofday": 164,
    "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172,
    "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "migrate_pages": 256, "openat": 257, "mknodat": 259, "fchmodat": 268, "unshare": 272,
    "move_pages": 279, "inotify_init": 253, "inotify_init1": 294, "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321,
    "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = _COMMON | {
    "inotify_init1": 26, "ioctl": 29, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
    "fchmod": 52, "fchmodat": 53, "openat": 56, "vhangup": 58, "quotactl": 60, "acct": 89,
    "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "settimeofday": 170,
    "shmget": 194, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225, "migrate_pages": 238,
    "move_pages": 239, "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
    "kcmp": 272, "finit_module": 273, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
    "kexec_file_load": 294,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Abi:
    audit: int  # how the kernel names the machine to a filter
    has_x32: bool  # a second set of numbers
    calls: Mapping[str, int]

    def numbers(self, names: Iterable[str]) -> Iterator[int]:
        """Of those that this machine has."""
        return (self.calls[name] for name in names if name in self.calls)


ABIS: Mapping[str, Abi] = {
    "x86_64": Abi(0xC000003E, True, _X86_64),
    "aarch64": Abi(0xC00000B7, False, _AARCH64),
}
