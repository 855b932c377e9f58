"""The first act of a pass: it moves into the view of the file system that was made for it (`file_view`)."""

import ctypes
import os

_CAPSET = {"x86_64": 126, "aarch64": 91, "riscv64": 91, "ppc64le": 184, "s390x": 185}
_CAPABILITY_VERSION_3 = 0x20080522


def enter(holder: int) -> None:
    """Move this process, which has one thread, into the view; its working folder keeps its path."""
    working_folder = os.getcwd()
    with open("/proc/self/status") as file:
        rights = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    libc = ctypes.CDLL(None, use_errno=True)
    own_user = os.readlink("/proc/self/ns/user") == os.readlink(f"/proc/{holder}/ns/user")
    spaces = [os.open(f"/proc/{holder}/ns/{name}", os.O_RDONLY) for name in (["mnt"] if own_user else ["user", "mnt"])]
    for space in spaces:
        _check(libc.setns(space, 0), "setns")
        os.close(space)
    os.chdir(working_folder)
    if not own_user:
        # It has every right in the new user namespace, where a plain run of an ordinary user has none: it could write
        # read-only files.
        header, low, high = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), rights & 0xFFFFFFFF, rights >> 32
        rights_as_before = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
        _check(libc.syscall(_CAPSET[os.uname().machine], header, rights_as_before), "capset")


def _check(status: int, operation: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")
