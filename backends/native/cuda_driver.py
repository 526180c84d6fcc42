"""How a CUDA kernel is launched, as LLVM IR text: the part of the thunk in which it differs from the CPU's.

Knows the CUDA driver by three functions that it imports; a GPU is needed to call it, not to make it.
"""

from __future__ import annotations

from .driver import assemble, loads

LAUNCH = ("cell", "context", "stream", "grid", "number", "n_checked", "n_parameters")
"""A launch is a sequence of i64 words: these, then the slots that are checked, then the slot of each parameter.

`cell` is the address of two triples (function, threads of a block, bytes of shared memory): for arguments that are
all multiples of ALIGNMENT, and for any others, where a function of 0 is still to be made. `context` is the handle of
the device's context; `stream` and `grid` are slots; `number` is what an error record calls this launch.
"""

ALIGNMENT = 16
"""What checked addresses and sizes are multiples of, in a kernel that was promised so."""

UNMADE = -1
"""In an error record: the launch needs the kernel without promises. Other codes are CUDA's."""

SYMBOLS = ("cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel")
"""Symbols to import from the CUDA driver."""


def text() -> str:
    """LLVM IR that defines the entry of `driver`, for launches of this kind."""
    return assemble(_LAUNCH)


_LAUNCH = f"""
declare i32 @cuCtxGetCurrent(ptr)
declare i32 @cuCtxSetCurrent(ptr)
declare i32 @cuLaunchKernel(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)

; words[0] is set: the address of the call's error slot. The other words become the addresses of the parameters.
define internal void @launch(ptr %record, ptr %slots, ptr %words) nounwind {{
entry:
  %current.at = alloca ptr
{loads("%record", LAUNCH)}
  %checked.slots = getelementptr i64, ptr %record, i64 {len(LAUNCH)}
  %parameter.slots = getelementptr i64, ptr %checked.slots, i64 %n_checked
  %parameters = getelementptr i64, ptr %words, i64 1
  %programs.at = getelementptr i64, ptr %slots, i64 %grid
  %programs = load i64, ptr %programs.at
  %some = icmp sgt i64 %programs, 0
  br i1 %some, label %check, label %done
check:
  %c = phi i64 [0, %entry], [%c.next, %check.one]
  %bits = phi i64 [0, %entry], [%bits.next, %check.one]
  %c.more = icmp ult i64 %c, %n_checked
  br i1 %c.more, label %check.one, label %choose
check.one:
  %checked.at = getelementptr i64, ptr %checked.slots, i64 %c
  %checked.slot = load i64, ptr %checked.at
  %checked.value.at = getelementptr i64, ptr %slots, i64 %checked.slot
  %checked.value = load i64, ptr %checked.value.at
  %bits.next = or i64 %bits, %checked.value
  %c.next = add i64 %c, 1
  br label %check
choose:
  %rest = and i64 %bits, {ALIGNMENT - 1}
  %aligned = icmp eq i64 %rest, 0
  %first.word = select i1 %aligned, i64 0, i64 3
  %cell.pointer = inttoptr i64 %cell to ptr
  %function.at = getelementptr i64, ptr %cell.pointer, i64 %first.word
  %function = load ptr, ptr %function.at
  %threads.at = getelementptr i64, ptr %function.at, i64 1
  %threads = load i32, ptr %threads.at
  %shared.at = getelementptr i64, ptr %function.at, i64 2
  %shared = load i32, ptr %shared.at
  %unmade = icmp eq ptr %function, null
  br i1 %unmade, label %fail, label %gather
gather:
  %k = phi i64 [0, %choose], [%k.next, %gather.one]
  %k.more = icmp ult i64 %k, %n_parameters
  br i1 %k.more, label %gather.one, label %enter
gather.one:
  %slot.at = getelementptr i64, ptr %parameter.slots, i64 %k
  %slot = load i64, ptr %slot.at
  %value.at = getelementptr i64, ptr %slots, i64 %slot
  %parameter.at = getelementptr i64, ptr %parameters, i64 %k
  store ptr %value.at, ptr %parameter.at
  %k.next = add i64 %k, 1
  br label %gather
enter:
  %context.pointer = inttoptr i64 %context to ptr
  %asked = call i32 @cuCtxGetCurrent(ptr %current.at)
  %current = load ptr, ptr %current.at
  %is.current = icmp eq ptr %current, %context.pointer
  br i1 %is.current, label %go, label %switch
switch:
  %switched = call i32 @cuCtxSetCurrent(ptr %context.pointer)
  %refused = icmp ne i32 %switched, 0
  br i1 %refused, label %fail, label %go
go:
  %stream.value.at = getelementptr i64, ptr %slots, i64 %stream
  %stream.pointer = load ptr, ptr %stream.value.at
  %programs.i32 = trunc i64 %programs to i32
  %launched = call i32 @cuLaunchKernel(ptr %function, i32 %programs.i32, i32 1, i32 1, i32 %threads, i32 1, i32 1,
    i32 %shared, ptr %stream.pointer, ptr %parameters, ptr null)
  %failed = icmp ne i32 %launched, 0
  br i1 %failed, label %fail, label %done
fail:
  %status = phi i32 [{UNMADE}, %choose], [%switched, %switch], [%launched, %go]
  %code = sext i32 %status to i64
  %error = load ptr, ptr %words
  store i64 %code, ptr %error
  %detail.at = getelementptr i64, ptr %error, i64 1
  store i64 %number, ptr %detail.at
  ret void
done:
  ret void
}}
"""
