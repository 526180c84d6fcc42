"""Memory of outputs and workspaces on the CPU, kept when its user is done: page faults on fresh memory cost more than
most kernels.

Hands out a storage only if nobody else holds it and nobody has changed it. Never for CUDA, whose allocator keeps
memory by itself, and never for two live tensors that alias.
"""

from __future__ import annotations

import ctypes
import mmap
import operator
import os
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache

import torch
from torch._C import _storage_Use_Count
from torch._C._dynamo import guards

from .config import config

MIN_POOLED_BYTES = 1 << 20
"""Less is allocated as eager does: the C library keeps it too, and finds it in less time than the 2 µs we take."""

MIN_HUGE_BYTES = 32 << 20
"""From here on the C library maps fresh pages for every allocation, and huge ones halve what their faults cost."""

PROBES = 8
"""How many storages of the right size are looked at before another one is made."""

_empty_strided: Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]
_empty_strided = guards._empty_strided_cpu  # type: ignore[attr-defined]
_reinterpret: Callable[[torch.Tensor, tuple[int, ...], tuple[int, ...], int], torch.Tensor]
_reinterpret = guards._reinterpret_tensor  # type: ignore[attr-defined]


@lru_cache(4096)
def storage_nbytes(size: tuple[int, ...], stride: tuple[int, ...], itemsize: int) -> int:
    """Bytes of the storage that eager gives a tensor of this size and these strides."""
    if 0 in size:
        return 0
    return int(itemsize * (1 + sum(map(operator.mul, size, stride)) - sum(stride)))


class _Kept:
    """A storage of the pool: a tensor over all of it, and what is so while nobody else has it."""

    __slots__ = ("_address", "_holders", "_pointer", "_storage", "base", "nbytes")

    def __init__(self, nbytes: int, dtype: torch.dtype) -> None:
        self.base = _empty_strided((nbytes // dtype.itemsize,), (1,), dtype)
        self.nbytes = nbytes
        self._storage = self.base.untyped_storage()
        self._pointer = self._storage._cdata
        self._address = self._storage.data_ptr()
        self._holders = self._count_holders()

    def _count_holders(self) -> int:
        """Python has one object per storage, which is one holder however many hold that object: count these too."""
        held = sys.getrefcount(self.base) + sys.getrefcount(self._storage)
        return held + _storage_Use_Count(self._pointer)

    def is_free(self) -> bool:
        return self._count_holders() == self._holders

    def is_intact(self) -> bool:
        """Its last user has not resized it, shared it, made it copy-on-write (another address) or lent it to NumPy."""
        storage = self._storage
        return storage.data_ptr() == self._address and storage.nbytes() == self.nbytes and storage.resizable()

    def use_huge_pages(self) -> None:
        """Ask for them, for the whole pages within; where the system has none, all goes on as before."""
        first = -(-self._address // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (self._address + self.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if sys.platform == "linux":
            _madvise(first, last - first, mmap.MADV_HUGEPAGE)


if sys.platform == "linux":
    _madvise = ctypes.CDLL(None).madvise
    _madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

_Key = tuple[int, torch.dtype, bool]
"""Bytes, type, and whether made under inference mode: tensors over such a storage are of another kind."""


class Pool:
    """Storages in buckets of equal key, the least recently used bucket first, and in each the oldest hand-out.

    `max_bytes` says how many to remember. Those in use count: nobody tells when they are freed.
    """

    def __init__(self, max_bytes: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self._buckets: OrderedDict[_Key, deque[_Kept]] = OrderedDict()
        self._bytes = 0
        self._workspaces = threading.local()
        # Re-entrant, because a finaliser that runs in here may itself run compiled code.
        self._lock = threading.RLock()

    def empty_strided(self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """As `torch.empty_strided` on the CPU: storage of exact size, an inference tensor where eager gives one."""
        nbytes = storage_nbytes(size, stride, dtype.itemsize)
        if nbytes < MIN_POOLED_BYTES:
            return _empty_strided(size, stride, dtype)
        key = nbytes, dtype, torch.is_inference_mode_enabled()
        with self._lock:
            kept = self._take(key)
            if kept is not None:
                return self._hand_out(key, kept, size, stride)
        kept = _make(nbytes, dtype)
        with self._lock:
            tensor = self._hand_out(key, kept, size, stride)
            self._bytes += nbytes
            surplus = self._trim()
        del kept, surplus  # outside the lock: unmapping takes long
        return tensor

    def _take(self, key: _Key) -> _Kept | None:
        """Remove and return a storage that is fit for reuse: the newest, warm in the cache, or an old one."""
        bucket = self._buckets.get(key)
        if bucket is None:
            return None
        for probe in range(min(PROBES, len(bucket))):
            kept = bucket.popleft() if probe else bucket.pop()
            if not kept.is_free():
                bucket.append(kept)
            elif kept.is_intact():
                return kept
            else:
                self._bytes -= kept.nbytes
        return None

    def _hand_out(self, key: _Key, kept: _Kept, size: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
        """A new tensor over the storage, which is in use from here on and goes to the end of its bucket."""
        tensor = _reinterpret(kept.base, size, stride, 0)
        self._buckets.setdefault(key, deque()).append(kept)
        self._buckets.move_to_end(key)
        return tensor

    def _trim(self) -> list[_Kept]:
        """Forget what is over the limit, oldest first, and return it to be freed."""
        limit = self._max_bytes()
        surplus = []
        while self._bytes > limit and self._buckets:
            key, bucket = next(iter(self._buckets.items()))
            while bucket and self._bytes > limit:
                surplus.append(bucket.popleft())
                self._bytes -= surplus[-1].nbytes
            if not bucket:
                del self._buckets[key]
        return surplus

    def workspace(self, nbytes: int) -> torch.Tensor:
        """At least so many bytes, 64-byte aligned: nobody else's for as long as the caller holds the result."""
        kept: _Kept | None = getattr(self._workspaces, "kept", None)
        if kept is None or kept.nbytes < nbytes:
            if nbytes > self._max_bytes():
                return self.empty_strided((nbytes,), (1,), torch.uint8)
            with torch.inference_mode(False):
                kept = self._workspaces.kept = _make(nbytes, torch.uint8)
        elif not kept.is_free():  # a call further out, on this thread, is in the midst of using it
            return self.empty_strided((nbytes,), (1,), torch.uint8)
        return kept.base

    def empty_cache(self) -> None:
        """Forget every storage and workspace: what nobody uses is freed, the rest when its user is done."""
        with self._lock:
            buckets, self._buckets = self._buckets, OrderedDict()
            # The workspaces of all threads live in this object.
            workspaces, self._workspaces = self._workspaces, threading.local()
            self._bytes = 0
        del buckets, workspaces

    def renew_lock(self) -> None:
        """In a forked child, where the thread that held the lock may not exist."""
        self._lock = threading.RLock()


def _make(nbytes: int, dtype: torch.dtype) -> _Kept:
    kept = _Kept(nbytes, dtype)
    if nbytes >= MIN_HUGE_BYTES:
        kept.use_huge_pages()
    return kept


POOL = Pool(lambda: config.pool_bytes)
"""The process's own; its limit is the knob `pool_bytes`."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.renew_lock)


def empty_cache() -> None:
    """Give back the memory that stepwell keeps for the outputs of later calls."""
    POOL.empty_cache()
