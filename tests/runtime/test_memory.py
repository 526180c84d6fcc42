"""The pool hands out a storage only when nobody else has it, and as the user would have got it from eager."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import stepwell
from stepwell.runtime import memory
from stepwell.runtime.memory import MIN_HUGE_BYTES, MIN_POOLED_BYTES, Pool, storage_nbytes

SIZE = (512, 512)
STRIDE = (512, 1)
NBYTES = 512 * 512 * 4


@pytest.fixture
def pool() -> Pool:
    return Pool(lambda: 64 * NBYTES)


def take(pool: Pool, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return pool.empty_strided(SIZE, STRIDE, dtype)


def reused(pool: Pool, use: Callable[[torch.Tensor], object]) -> bool:
    """Whether the next tensor lies where the last one did, if `use` is all that happens in between."""
    address = (tensor := take(pool)).data_ptr()
    held = use(tensor)
    del tensor
    again = take(pool)
    del held
    return again.data_ptr() == address


def test_what_was_dropped_is_handed_out_again(pool: Pool) -> None:
    assert reused(pool, lambda tensor: None)


@pytest.mark.parametrize(
    "use",
    [
        lambda tensor: tensor,
        lambda tensor: tensor[3:],
        lambda tensor: tensor.view(torch.uint8),
        lambda tensor: tensor.detach(),
        lambda tensor: tensor.numpy(),
        lambda tensor: tensor.__dlpack__(),
        lambda tensor: tensor.untyped_storage(),
        lambda tensor: torch.nn.Parameter(tensor),
        lambda tensor: (tensor.requires_grad_() * tensor).grad_fn,
        lambda tensor: [tensor.numpy()[5:]],
        lambda tensor: torch.empty(0).set_(tensor),
        lambda tensor: torch._lazy_clone(tensor),
    ],
    ids=[
        "itself",
        "slice",
        "other type",
        "detached",
        "numpy",
        "dlpack",
        "storage",
        "parameter",
        "saved for backward",
        "numpy slice",
        "set_",
        "copy on write",
    ],
)
def test_what_is_still_held_is_not_handed_out(pool: Pool, use: Callable[[torch.Tensor], object]) -> None:
    assert not reused(pool, use)


@pytest.mark.parametrize(
    "use",
    [
        lambda tensor: tensor[3:] + 1,
        lambda tensor: tensor.untyped_storage() and None,
        lambda tensor: tensor.sum().item(),
        lambda tensor: tensor.clone(),
        lambda tensor: [tensor.resize_(2, 3)].clear(),
    ],
    ids=["slice dropped", "storage dropped", "read", "copied", "shrunk"],
)
def test_what_is_no_longer_held_is_handed_out(pool: Pool, use: Callable[[torch.Tensor], object]) -> None:
    assert reused(pool, use)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.resize_(1024, 1024),
        lambda tensor: tensor.untyped_storage().resize_(0),
        lambda tensor: tensor.share_memory_(),
        lambda tensor: tensor.numpy(),
    ],
    ids=["grown", "emptied", "shared", "lent to numpy"],
)
def test_a_changed_storage_is_forgotten(pool: Pool, change: Callable[[torch.Tensor], object]) -> None:
    change(take(pool))
    again = take(pool)
    storage = again.untyped_storage()
    assert storage.nbytes() == NBYTES
    assert storage.resizable()
    assert not storage.is_shared()
    assert pool._bytes == NBYTES, "the changed one no longer counts"


@pytest.mark.parametrize(
    ("size", "stride", "dtype"),
    [
        ((1024, 1024), (1024, 1), torch.float32),
        ((1024, 1024), (1, 1024), torch.int64),
        ((3, 1024, 1024), (1024 * 1024, 1, 1024), torch.bfloat16),
        ((700, 1000), (2048, 2), torch.float64),
        ((2, 1, 1 << 20), (1 << 20, 7, 1), torch.bool),
        ((1, 1 << 20), (5, 1), torch.complex64),
        ((1 << 21,), (1,), torch.uint8),
        ((16,), (1,), torch.float32),
        ((), (), torch.float32),
        ((0, 1 << 22), (1 << 22, 1), torch.float32),
    ],
)
def test_tensors_are_as_eagers(pool: Pool, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> None:
    expected = torch.empty_strided(size, stride, dtype=dtype)
    nbytes = expected.untyped_storage().nbytes()
    assert storage_nbytes(size, stride, dtype.itemsize) == nbytes
    for _ in range(2):
        tensor = pool.empty_strided(size, stride, dtype)
        assert (tensor.shape, tensor.stride(), tensor.dtype) == (expected.shape, expected.stride(), dtype)
        assert tensor.untyped_storage().nbytes() == nbytes
        assert tensor.storage_offset() == 0
        assert tensor.data_ptr() % 64 == 0
        assert tensor._version == 0
        assert tensor.is_leaf
        assert not tensor.requires_grad
        tensor.zero_()


def test_saved_files_hold_no_more_than_the_tensor(pool: Pool) -> None:
    def saved_bytes(tensor: torch.Tensor) -> int:
        torch.save(tensor, buffer := io.BytesIO())
        return buffer.tell()

    assert saved_bytes(take(pool)) == saved_bytes(torch.empty(SIZE))


def test_sizes_and_types_do_not_mix(pool: Pool) -> None:
    addresses = [take(pool).data_ptr(), take(pool, torch.int32).data_ptr()]
    assert take(pool, torch.int32).dtype == torch.int32
    assert take(pool).data_ptr() == addresses[0]
    assert pool.empty_strided((512, 513), (513, 1), torch.float32).data_ptr() not in addresses


def test_equal_bytes_serve_every_shape(pool: Pool) -> None:
    address = take(pool).data_ptr()
    assert pool.empty_strided((256, 1024), (1, 256), torch.float32).data_ptr() == address


def test_inference_mode_has_tensors_of_its_own(pool: Pool) -> None:
    normal = take(pool)
    with torch.inference_mode():
        inference = take(pool)
        assert inference.is_inference()
        address = inference.data_ptr()
        del inference, normal
        assert take(pool).data_ptr() == address
    again = take(pool)
    assert not again.is_inference()
    assert again.data_ptr() != address
    assert (again.requires_grad_() * 2).requires_grad


def test_a_ring_of_kept_outputs_is_served_from_the_pool(pool: Pool) -> None:
    ring = [take(pool) for _ in range(9)]
    known = {tensor.data_ptr() for tensor in ring}
    for _ in range(20):
        ring.pop(0)
        ring.append(take(pool))
    assert {tensor.data_ptr() for tensor in ring} <= known
    assert len({tensor.data_ptr() for tensor in ring}) == 9


def test_live_tensors_never_overlap(pool: Pool) -> None:
    live = [take(pool).fill_(k) for k in range(70)]
    live = live[::2]
    live += [take(pool).fill_(100 + k) for k in range(70)]
    assert len({tensor.data_ptr() for tensor in live}) == len(live)
    assert [tensor[0, 0].item() for tensor in live] == [*range(0, 70, 2), *range(100, 170)]


def test_the_pool_remembers_no_more_than_its_limit() -> None:
    pool = Pool(lambda: 3 * NBYTES)
    live = [take(pool) for _ in range(5)]
    assert pool._bytes == 3 * NBYTES
    live.clear()
    assert sum(len(bucket) for bucket in pool._buckets.values()) == 3
    assert pool._bytes == 3 * NBYTES


def test_what_was_used_least_recently_is_forgotten_first() -> None:
    pool = Pool(lambda: 3 * NBYTES)
    wide, flat = take(pool), take(pool, torch.int32)
    addresses = wide.data_ptr(), flat.data_ptr()
    del wide, flat
    assert take(pool).data_ptr() == addresses[0]
    others = [take(pool, torch.uint32) for _ in range(2)]
    assert take(pool).data_ptr() == addresses[0]
    assert [key[1] for key in pool._buckets] == [torch.uint32, torch.float32]
    del others


def test_a_limit_of_zero_keeps_nothing() -> None:
    pool = Pool(lambda: 0)
    tensor = take(pool).fill_(1)
    assert pool._bytes == 0
    assert not pool._buckets
    assert take(pool).data_ptr() != tensor.data_ptr()
    assert pool.workspace(1000) is not pool.workspace(1000)


def test_empty_cache_lets_go_of_what_nobody_uses(pool: Pool) -> None:
    held = take(pool).fill_(3)
    pool.workspace(1 << 20)
    pool.empty_cache()
    assert pool._bytes == 0
    assert take(pool).data_ptr() != held.data_ptr()
    assert (held == 3).all()


def test_the_public_function_empties_the_processs_pool() -> None:
    memory.POOL.empty_strided(SIZE, STRIDE, torch.float32)
    assert memory.POOL._bytes > 0
    stepwell.empty_cache()
    assert memory.POOL._bytes == 0


def test_the_knob_limits_the_processs_pool() -> None:
    stepwell.empty_cache()
    with stepwell.config.patch(pool_bytes=0):
        memory.POOL.empty_strided(SIZE, STRIDE, torch.float32)
    assert memory.POOL._bytes == 0


def test_threads_never_share_a_storage(pool: Pool) -> None:
    """Four threads fill and check tensors, keep some, hand some to the next thread, resize and share some."""
    mailboxes: list[list[torch.Tensor]] = [[] for _ in range(4)]
    barrier = threading.Barrier(4)

    def work(thread: int) -> bool:
        barrier.wait()
        kept: list[torch.Tensor] = []
        for step in range(120):
            tensor = take(pool).fill_(thread * 1000 + step)
            if step % 7 == 0:
                mailboxes[(thread + 1) % 4].append(tensor)
            if step % 11 == 0:
                tensor.untyped_storage().resize_(0)
                continue
            if step % 50 == 0:
                tensor.share_memory_()
            kept.append(tensor)
            kept = kept[-4:]
            if mailboxes[thread] and (other := mailboxes[thread].pop()).untyped_storage().nbytes():
                assert (other == other[0, 0]).all()
            assert all((tensor == tensor[0, 0]).all() for tensor in kept)
        return len({tensor.data_ptr() for tensor in kept}) == len(kept)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)


def test_a_tensor_freed_on_another_thread_comes_back(pool: Pool) -> None:
    box = [take(pool)]
    address = box[0].data_ptr()
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert take(pool).data_ptr() == address


def test_a_workspace_is_reused_and_grows(pool: Pool) -> None:
    address = pool.workspace(100_000).data_ptr()
    assert pool.workspace(50_000).data_ptr() == address
    large = pool.workspace(200_000)
    assert large.numel() >= 200_000
    assert large.data_ptr() % 64 == 0
    assert large.dtype == torch.uint8


def test_a_workspace_in_use_is_not_handed_out(pool: Pool) -> None:
    outer = pool.workspace(2 << 20)
    inner = pool.workspace(1 << 20)
    view = inner[:100]
    assert inner.data_ptr() != outer.data_ptr()
    del inner
    assert pool.workspace(1 << 20).data_ptr() not in (outer.data_ptr(), view.data_ptr())


def test_a_view_of_a_workspace_keeps_it_in_use(pool: Pool) -> None:
    view = pool.workspace(1 << 20)[:10].fill_(7)
    pool.workspace(1 << 20).fill_(0)
    assert view.tolist() == [7] * 10


def test_each_thread_has_its_own_workspace(pool: Pool) -> None:
    barrier = threading.Barrier(2)

    def address(_: int) -> int:
        barrier.wait()
        workspace = pool.workspace(1 << 20)
        barrier.wait()
        return workspace.data_ptr()

    with ThreadPoolExecutor(2) as threads:
        assert len(set(threads.map(address, range(2)))) == 2


def test_a_workspace_made_in_inference_mode_serves_training(pool: Pool) -> None:
    with torch.inference_mode():
        assert not pool.workspace(1 << 20).is_inference()


def huge_pages_are_on() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


@pytest.mark.skipif(not huge_pages_are_on(), reason="the kernel has no huge pages, or they are off")
def test_large_fresh_memory_has_huge_pages(pool: Pool) -> None:
    tensor = pool.empty_strided((MIN_HUGE_BYTES,), (1,), torch.uint8)
    start = tensor.data_ptr()
    flags, inside = "", False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line[0] in "0123456789abcdef" and "-" in line.split()[0]:
            low, high = (int(word, 16) for word in line.split()[0].split("-"))
            inside = low <= start + MIN_HUGE_BYTES // 2 < high
        elif inside and line.startswith("VmFlags"):
            flags = line
    assert "hg" in flags.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_can_allocate_while_its_parent_holds_the_lock() -> None:
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.POOL._lock:
            held.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if (child := os.fork()) == 0:
        memory.POOL.empty_strided(SIZE, STRIDE, torch.float32)
        os._exit(0)
    forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_finaliser_may_allocate_while_the_pool_is_busy(pool: Pool) -> None:
    with pool._lock:
        assert take(pool).numel() == SIZE[0] * SIZE[1]


def test_small_tensors_do_not_enter_the_pool(pool: Pool) -> None:
    elements = MIN_POOLED_BYTES // 4 - 1
    pool.empty_strided((elements,), (1,), torch.float32)
    assert not pool._buckets
    pool.empty_strided((elements + 1,), (1,), torch.float32)
    assert len(pool._buckets) == 1
