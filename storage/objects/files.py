"""System calls on files: copies inside the kernel, durable writes, and the one seam from OSError to our errors."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from regions.errors import InputError, NightrelayError, NotFoundError, OutsideError
from storage.objects.interface import Body, FileRange

_FICLONE = 0x40049409
_MAPPED_FROM = 1 << 20
"""From this size on a file is mapped to be hashed; below, one read is cheaper than the page faults."""
_no_clones: set[int] = set()
"""Devices whose file systems said that they cannot clone: asking once is enough."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def file_errors(action: str, path: Path) -> Iterator[None]:
    """Turn what the file system says while doing `action` into our errors."""
    try:
        yield
    except OSError as error:
        if isinstance(error, NightrelayError):
            raise
        raise _translated(error, action, path) from error


def _translated(error: OSError, action: str, path: Path) -> NightrelayError:
    said = f"cannot {action} {path}: {error.strerror or error}"
    if error.errno in _FULL:
        return OutsideError(f"{said}; free space there or raise the limit, then try again", kind="no-space")
    if error.errno == errno.ENOENT:
        return NotFoundError(said, path=str(path))
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG):
        return InputError(
            f"{said}; a store in a folder cannot hold a key that is also the folder of others, nor names over 255 "
            "bytes: choose another key",
            kind="key",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutsideError(f"{said}; let this user (id {os.geteuid()}) read and write there", kind="store-access")
    return OutsideError(f"{said} (errno {error.errno}); look at the disk and its mount", kind="disk")


def write_body(body: Body, descriptor: int, offset: int = 0) -> None:
    """Write a whole body at `offset`: cloned or copied inside the kernel where it is a file's range."""
    if isinstance(body, FileRange):
        _copy_range(body, descriptor, offset)
        return
    view = memoryview(body).cast("B")
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _copy_range(body: FileRange, descriptor: int, offset: int) -> None:
    source, left = body.offset, body.size
    if _cloned(body, descriptor, offset):
        return
    while left:
        try:
            moved = os.copy_file_range(body.descriptor, descriptor, left, source, offset)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            moved = _send_range(body.descriptor, descriptor, source, offset, left)
        if not moved:
            raise OSError(errno.EIO, f"the source ended {left} bytes early")
        source, offset, left = source + moved, offset + moved, left - moved


def _cloned(body: FileRange, descriptor: int, offset: int) -> bool:
    """Share the source's blocks (btrfs, XFS) where the range is a whole file; False where that cannot be done."""
    status = os.fstat(body.descriptor)
    if body.offset or offset or status.st_size != body.size or not body.size or status.st_dev in _no_clones:
        return False
    try:
        fcntl.ioctl(descriptor, _FICLONE, body.descriptor)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY):
            _no_clones.add(status.st_dev)
        return False
    return True


def _send_range(source: int, target: int, start: int, offset: int, size: int) -> int:
    """Copy between file systems that copy_file_range does not join; sendfile writes at the file's own position."""
    os.lseek(target, offset, os.SEEK_SET)
    return os.sendfile(target, source, start, size)


def sync_folder(folder: Path) -> None:
    """Make a folder's names durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: Path) -> None:
    """Make everything on the folder's file system durable: one call for a whole batch of files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc().syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(descriptor)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def viewed(body: Body) -> Iterator[memoryview]:
    """Give a body's bytes to native code (digests, checksums) without copying them; a file's range is mapped."""
    if not isinstance(body, FileRange):
        yield memoryview(body).cast("B")
        return
    if os.fstat(body.descriptor).st_size < body.offset + body.size:
        raise OSError(errno.EIO, "the file is shorter than its record says")
    if body.size < _MAPPED_FROM:
        yield memoryview(os.pread(body.descriptor, body.size, body.offset))
        return
    skipped = body.offset % mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(body.descriptor, body.size + skipped, access=mmap.ACCESS_READ, offset=body.offset - skipped)
    with mapped, memoryview(mapped) as whole, whole[skipped:] as wanted:
        yield wanted


def hash_file(descriptor: int) -> str:
    """Return the BLAKE3 hex digest of an open file."""
    with viewed(FileRange(descriptor, 0, os.fstat(descriptor).st_size)) as data:
        return blake3(data).hexdigest()
