"""A filter of system calls that a script in a container gets on top of Docker's own: what is of use to an attacker and to no training.

Classic BPF as in the kernel's Documentation/userspace-api/seccomp_filter.rst. The numbers are those of the kernel's system call tables.
"""

import ctypes
import errno
import os
import struct
from typing import Final

DENIED: Final = {
    # name: (x86-64, arm64). Other processes' memory, the kernel's own machinery, new name spaces, and memory that outlives its process.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}
SOCKET: Final = (41, 198)
ALLOWED_FAMILIES: Final = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6, for pipes between a script's own processes and its loopback: all else, AF_VSOCK first, reaches out."""
NETLINK: Final = 16
"""For ranks, of the protocol NETLINK_ROUTE alone: gloo lists the network's interfaces by it before it connects to the other ranks."""

_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32: Final = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32  # offsets in struct seccomp_data
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(machine: str, *, rank: bool = False) -> bytes | None:
    """The filter for a machine as `os.uname()` names it; None for one whose system calls are not known here."""
    if machine not in _ARCHITECTURES:
        return None
    audit, column = _ARCHITECTURES[machine]
    refuse = _ERRNO | errno.EPERM
    steps = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, audit, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, _NUMBER)]
    if machine == "x86_64":
        steps += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, refuse)]
    for numbers in DENIED.values():
        steps += [_step(_EQUAL, numbers[column], 0, 1), _step(_RETURN, refuse)]
    netlink = [_step(_EQUAL, NETLINK, 0, 2), _step(_LOAD, _THIRD_ARGUMENT), _step(_EQUAL, 0, 1, 0)] if rank else []
    last = len(ALLOWED_FAMILIES) + len(netlink)
    families = [_step(_EQUAL, family, last - index, 0) for index, family in enumerate(ALLOWED_FAMILIES)]
    steps += [_step(_EQUAL, SOCKET[column], 0, last + 2), _step(_LOAD, _FIRST_ARGUMENT), *families, *netlink]
    steps += [_step(_RETURN, _ERRNO | errno.EAFNOSUPPORT), _step(_RETURN, _ALLOW)]
    return b"".join(steps)


def install(*, rank: bool = False) -> None:
    """Puts the filter on this process and all it will start, for good. Raises OSError when the kernel refuses."""
    instructions = program(os.uname().machine, rank=rank)
    if instructions is None:
        return
    call = ctypes.CDLL(None, use_errno=True).prctl
    if call(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs could not be set")
    filled = _Program(len(instructions) // 8, instructions)
    if call(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filled), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls could not be installed")


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
