"""The one thunk and the one driver through which every plan runs, as LLVM IR text.

Data-driven: a plan is a descriptor, written by `launcher`, so no code is generated for it. What changes lies on the
stack, so any number of threads may be in here at once. Nothing unwinds.
"""

from __future__ import annotations

HEADER = ("n_arguments", "n_constants", "n_derived", "n_slots", "n_launches", "n_words", "release_gil")
"""A descriptor is a sequence of i64 words: these (n_words is the length of the longest array that a kernel receives),
and then, one after the other,
  kinds      [n_arguments]   0: a tensor, of which the data pointer counts; 1: an int
  constants  [n_constants]   values of the slots after those of the arguments
  derived    [n_derived][2]  two slots each, whose sum is the value of one more slot
  starts     [n_launches]    the word at which a launch begins: LAUNCH, then the slot of each kernel operand
"""

LAUNCH = ("kernel", "grid", "static_grid", "finish", "serial_below", "n_operands")
"""Addresses of the kernel, of its grid function or 0, of its finish function or 0; see `launcher.Launch`."""

ENTRY = "stretch"
DATA_PTR = "stepwell_data_ptr"
"""A symbol to import: the Python string "data_ptr"."""

PYTHON_SYMBOLS = (
    "PyBytes_AsString",
    "PyErr_Format",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyExc_IndexError",
    "PyExc_TypeError",
    "PyLong_AsLongLong",
    "PyObject_VectorcallMethod",
    "PyTuple_GetItem",
    "Py_BuildValue",
    "Py_DecRef",
)
"""Symbols to import from the interpreter."""


def text(serial: bool) -> str:
    """LLVM IR that defines ENTRY, a METH_FASTCALL function; `serial` makes it independent of OpenMP."""
    return assemble((_NO_OPENMP if serial else _OPENMP) + _LAUNCH)


def assemble(launch: str) -> str:
    """LLVM IR that defines ENTRY, given that of `void @launch(ptr %record, ptr %slots, ptr %words)`."""
    return "".join((_PYTHON, launch, _UNBOXING, _ENTRY))


def loads(pointer: str, fields: tuple[str, ...]) -> str:
    """Load each field of a record into the value of its name."""
    return "\n".join(
        f"  %{field}.at = getelementptr i64, ptr {pointer}, i64 {index}\n  %{field} = load i64, ptr %{field}.at"
        for index, field in enumerate(fields)
    )


def _string(name: str, value: str) -> str:
    return f'@{name} = private constant [{len(value) + 1} x i8] c"{value}\\00"'


_OPENMP = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_max_threads()
declare i32 @omp_get_num_threads()
declare i32 @omp_get_thread_num()
declare i32 @omp_in_parallel()
"""

_NO_OPENMP = """
define internal void @GOMP_parallel(ptr %body, ptr %context, i32 %threads, i32 %flags) { ret void }
define internal i32 @omp_get_max_threads() { ret i32 1 }
define internal i32 @omp_get_num_threads() { ret i32 1 }
define internal i32 @omp_get_thread_num() { ret i32 0 }
define internal i32 @omp_in_parallel() { ret i32 0 }
"""

_PYTHON = f"""
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @Py_BuildValue(ptr, ...)
declare void @Py_DecRef(ptr)
@PyExc_IndexError = external global ptr
@PyExc_TypeError = external global ptr
@{DATA_PTR} = external global i8
{_string("wrong_count", "stretch: expected %lld arguments, got %lld")}
{_string("wrong_range", "stretch: expected launches within 0:%lld, got %lld:%lld")}
{_string("no_value", "")}
{_string("two_values", "(LL)")}
"""

_LAUNCH = f"""
%Region = type {{ ptr, ptr, i64 }}

; One thread's share of the programs: contiguous, and the same in every run with as many threads.
define internal void @region(ptr %context) nounwind {{
entry:
  %kernel = load ptr, ptr %context
  %words.at = getelementptr %Region, ptr %context, i64 0, i32 1
  %words = load ptr, ptr %words.at
  %programs.at = getelementptr %Region, ptr %context, i64 0, i32 2
  %programs = load i64, ptr %programs.at
  %thread.i32 = call i32 @omp_get_thread_num()
  %thread = zext i32 %thread.i32 to i64
  %threads.i32 = call i32 @omp_get_num_threads()
  %threads = zext i32 %threads.i32 to i64
  %next = add i64 %thread, 1
  %lo.scaled = mul i64 %programs, %thread
  %lo = udiv i64 %lo.scaled, %threads
  %hi.scaled = mul i64 %programs, %next
  %hi = udiv i64 %hi.scaled, %threads
  %some = icmp ult i64 %lo, %hi
  br i1 %some, label %run, label %done
run:
  call void %kernel(ptr %words, i64 %lo, i64 %hi)
  br label %done
done:
  ret void
}}

define internal void @run_programs(ptr %kernel, ptr %words, i64 %programs, i64 %serial_below) nounwind {{
entry:
  %region = alloca %Region
  %large = icmp sge i64 %programs, %serial_below
  br i1 %large, label %ask, label %serial
ask:
  %max = call i32 @omp_get_max_threads()
  %several = icmp sgt i32 %max, 1
  br i1 %several, label %ask.again, label %serial
ask.again:
  %nested = call i32 @omp_in_parallel()
  %free = icmp eq i32 %nested, 0
  br i1 %free, label %parallel, label %serial
serial:
  call void %kernel(ptr %words, i64 0, i64 %programs)
  ret void
parallel:
  store ptr %kernel, ptr %region
  %words.at = getelementptr %Region, ptr %region, i64 0, i32 1
  store ptr %words, ptr %words.at
  %programs.at = getelementptr %Region, ptr %region, i64 0, i32 2
  store i64 %programs, ptr %programs.at
  %max.i64 = zext i32 %max to i64
  %threads = call i64 @llvm.umin.i64(i64 %max.i64, i64 %programs)
  %threads.i32 = trunc i64 %threads to i32
  call void @GOMP_parallel(ptr @region, ptr %region, i32 %threads.i32, i32 0)
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)

; words[0] is set: the address of the call's error slot.
define internal void @launch(ptr %record, ptr %slots, ptr %words) nounwind {{
entry:
{loads("%record", LAUNCH)}
  %operand.slots = getelementptr i64, ptr %record, i64 {len(LAUNCH)}
  %operands = getelementptr i64, ptr %words, i64 1
  br label %gather
gather:
  %k = phi i64 [0, %entry], [%k.next, %gather.one]
  %more = icmp ult i64 %k, %n_operands
  br i1 %more, label %gather.one, label %size
gather.one:
  %slot.at = getelementptr i64, ptr %operand.slots, i64 %k
  %slot = load i64, ptr %slot.at
  %value.at = getelementptr i64, ptr %slots, i64 %slot
  %value = load i64, ptr %value.at
  %operand.at = getelementptr i64, ptr %operands, i64 %k
  store i64 %value, ptr %operand.at
  %k.next = add i64 %k, 1
  br label %gather
size:
  %is.dynamic = icmp ne i64 %grid, 0
  br i1 %is.dynamic, label %ask, label %sized
ask:
  %grid.function = inttoptr i64 %grid to ptr
  %asked = call i64 %grid.function(ptr %words)
  br label %sized
sized:
  %programs = phi i64 [%static_grid, %size], [%asked, %ask]
  %some = icmp sgt i64 %programs, 0
  br i1 %some, label %run, label %ran
run:
  %kernel.function = inttoptr i64 %kernel to ptr
  call void @run_programs(ptr %kernel.function, ptr %words, i64 %programs, i64 %serial_below)
  br label %ran
ran:
  %has.finish = icmp ne i64 %finish, 0
  br i1 %has.finish, label %finish.run, label %done
finish.run:
  %finish.function = inttoptr i64 %finish to ptr
  call void %finish.function(ptr %words)
  br label %done
done:
  ret void
}}
"""

_UNBOXING = f"""
; The value of a Python int, and whether that failed with an exception set.
define internal {{ i64, i1 }} @unbox_int(ptr %object) nounwind {{
entry:
  %value = call i64 @PyLong_AsLongLong(ptr %object)
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %ask, label %done
ask:
  %exception = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %exception, null
  br label %done
done:
  %failed = phi i1 [false, %entry], [%raised, %ask]
  %half = insertvalue {{ i64, i1 }} poison, i64 %value, 0
  %result = insertvalue {{ i64, i1 }} %half, i1 %failed, 1
  ret {{ i64, i1 }} %result
}}

; The data pointer of the tensor at %place, and whether that failed with an exception set.
define internal {{ i64, i1 }} @unbox_tensor(ptr %place) nounwind {{
entry:
  %number = call ptr @PyObject_VectorcallMethod(ptr @{DATA_PTR}, ptr %place, i64 1, ptr null)
  %failed = icmp eq ptr %number, null
  br i1 %failed, label %bad, label %good
bad:
  ret {{ i64, i1 }} {{ i64 0, i1 true }}
good:
  %result = call {{ i64, i1 }} @unbox_int(ptr %number)
  call void @Py_DecRef(ptr %number)
  ret {{ i64, i1 }} %result
}}
"""

_ENTRY = f"""
; call(first, last, *arguments): run launches[first:last] until one records an error. Returns None or (code, value).
; self is a tuple whose first item is the descriptor; the caller's references keep the arguments alive meanwhile.
define ptr @{ENTRY}(ptr %self, ptr %args, i64 %n_args) nounwind {{
entry:
  %error = alloca [2 x i64]
  %item = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %no.item = icmp eq ptr %item, null
  br i1 %no.item, label %fail, label %descriptor
descriptor:
  %header = call ptr @PyBytes_AsString(ptr %item)
  %no.header = icmp eq ptr %header, null
  br i1 %no.header, label %fail, label %check.count
check.count:
{loads("%header", HEADER)}
  %n_expected = add i64 %n_arguments, 2
  %counted = icmp eq i64 %n_args, %n_expected
  br i1 %counted, label %unbox.first, label %bad.count
bad.count:
  %type.error = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %type.error, ptr @wrong_count, i64 %n_expected, i64 %n_args)
  br label %fail

unbox.first:
  %first.object = load ptr, ptr %args
  %first.result = call {{ i64, i1 }} @unbox_int(ptr %first.object)
  %first = extractvalue {{ i64, i1 }} %first.result, 0
  %first.failed = extractvalue {{ i64, i1 }} %first.result, 1
  br i1 %first.failed, label %fail, label %unbox.last
unbox.last:
  %last.at = getelementptr ptr, ptr %args, i64 1
  %last.object = load ptr, ptr %last.at
  %last.result = call {{ i64, i1 }} @unbox_int(ptr %last.object)
  %last = extractvalue {{ i64, i1 }} %last.result, 0
  %last.failed = extractvalue {{ i64, i1 }} %last.result, 1
  br i1 %last.failed, label %fail, label %check.range
check.range:
  %ordered = icmp ule i64 %first, %last
  %bounded = icmp ule i64 %last, %n_launches
  %ranged = and i1 %ordered, %bounded
  br i1 %ranged, label %prepare, label %bad.range
bad.range:
  %index.error = load ptr, ptr @PyExc_IndexError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %index.error, ptr @wrong_range, i64 %n_launches, i64 %first, i64 %last)
  br label %fail

prepare:
  %slots = alloca i64, i64 %n_slots
  %words = alloca i64, i64 %n_words
  %error.int = ptrtoint ptr %error to i64
  store i64 %error.int, ptr %words
  store [2 x i64] zeroinitializer, ptr %error
  %kinds = getelementptr i64, ptr %header, i64 {len(HEADER)}
  %constants = getelementptr i64, ptr %kinds, i64 %n_arguments
  %derived = getelementptr i64, ptr %constants, i64 %n_constants
  %n_derived.words = mul i64 %n_derived, 2
  %starts = getelementptr i64, ptr %derived, i64 %n_derived.words
  %arguments = getelementptr ptr, ptr %args, i64 2
  br label %unbox

unbox:
  %a = phi i64 [0, %prepare], [%a.next, %unboxed]
  %a.more = icmp ult i64 %a, %n_arguments
  br i1 %a.more, label %unbox.one, label %copy
unbox.one:
  %kind.at = getelementptr i64, ptr %kinds, i64 %a
  %kind = load i64, ptr %kind.at
  %place = getelementptr ptr, ptr %arguments, i64 %a
  %is.int = icmp ne i64 %kind, 0
  br i1 %is.int, label %unbox.int, label %unbox.tensor
unbox.int:
  %object = load ptr, ptr %place
  %int.result = call {{ i64, i1 }} @unbox_int(ptr %object)
  br label %unboxed.any
unbox.tensor:
  %tensor.result = call {{ i64, i1 }} @unbox_tensor(ptr %place)
  br label %unboxed.any
unboxed.any:
  %a.result = phi {{ i64, i1 }} [%int.result, %unbox.int], [%tensor.result, %unbox.tensor]
  %a.failed = extractvalue {{ i64, i1 }} %a.result, 1
  br i1 %a.failed, label %fail, label %unboxed
unboxed:
  %a.value = extractvalue {{ i64, i1 }} %a.result, 0
  %a.slot = getelementptr i64, ptr %slots, i64 %a
  store i64 %a.value, ptr %a.slot
  %a.next = add i64 %a, 1
  br label %unbox

copy:
  %copied = getelementptr i64, ptr %slots, i64 %n_arguments
  %n_constants.bytes = mul i64 %n_constants, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %copied, ptr align 8 %constants, i64 %n_constants.bytes, i1 false)
  %sums = getelementptr i64, ptr %copied, i64 %n_constants
  br label %derive
derive:
  %d = phi i64 [0, %copy], [%d.next, %derive.one]
  %d.more = icmp ult i64 %d, %n_derived
  br i1 %d.more, label %derive.one, label %unlock
derive.one:
  %pair.at = getelementptr [2 x i64], ptr %derived, i64 %d
  %pair = load [2 x i64], ptr %pair.at
  %base.slot = extractvalue [2 x i64] %pair, 0
  %base.at = getelementptr i64, ptr %slots, i64 %base.slot
  %base = load i64, ptr %base.at
  %offset.slot = extractvalue [2 x i64] %pair, 1
  %offset.at = getelementptr i64, ptr %slots, i64 %offset.slot
  %offset = load i64, ptr %offset.at
  %sum = add i64 %base, %offset
  %sum.at = getelementptr i64, ptr %sums, i64 %d
  store i64 %sum, ptr %sum.at
  %d.next = add i64 %d, 1
  br label %derive

unlock:
  %releases = icmp ne i64 %release_gil, 0
  br i1 %releases, label %release, label %run
release:
  %state.saved = call ptr @PyEval_SaveThread()
  br label %run
run:
  %state = phi ptr [null, %unlock], [%state.saved, %release]
  br label %launches
launches:
  %l = phi i64 [%first, %run], [%l.next, %launched]
  %l.more = icmp ult i64 %l, %last
  br i1 %l.more, label %launch.one, label %lock
launch.one:
  %start.at = getelementptr i64, ptr %starts, i64 %l
  %start = load i64, ptr %start.at
  %record = getelementptr i64, ptr %header, i64 %start
  call void @launch(ptr %record, ptr %slots, ptr %words)
  %failure = load i64, ptr %error
  %ok = icmp eq i64 %failure, 0
  br i1 %ok, label %launched, label %lock
launched:
  %l.next = add i64 %l, 1
  br label %launches
lock:
  %released = icmp ne ptr %state, null
  br i1 %released, label %acquire, label %answer
acquire:
  call void @PyEval_RestoreThread(ptr %state)
  br label %answer

answer:
  %code = load i64, ptr %error
  %clean = icmp eq i64 %code, 0
  br i1 %clean, label %none, label %pair.result
none:
  %nothing = call ptr (ptr, ...) @Py_BuildValue(ptr @no_value)
  ret ptr %nothing
pair.result:
  %detail.at = getelementptr [2 x i64], ptr %error, i64 0, i64 1
  %detail = load i64, ptr %detail.at
  %both = call ptr (ptr, ...) @Py_BuildValue(ptr @two_values, i64 %code, i64 %detail)
  ret ptr %both
fail:
  ret ptr null
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
