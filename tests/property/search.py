"""Searches many random programs for one that a level, a pass or machine code gets wrong, each from a seed of its own.

`python -m stepwell.tests.property.search --count 100000 --log FILE` goes on where FILE ends, and reports what it holds.
A process that dies at a program finds it, too: the next one notes its seed and goes on behind it.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import FrameType
from typing import Any

from torch import fx
from xdsl.dialects.builtin import ModuleOp, TensorType

from stepwell.ir import graph
from stepwell.ir.dtypes import FLOAT32, element_of
from stepwell.ir.graph.traits import View
from stepwell.ir.interpret import interpret
from stepwell.ir.shapes import sizes_of
from stepwell.ir.target import TargetAttr
from stepwell.lowering.pipelines import CPU, PASSES, make_pass
from stepwell.runtime.compiler import Compilation, machine
from stepwell.runtime.config import config
from stepwell.runtime.reduction import Case
from stepwell.runtime.reference import to_array
from stepwell.tests.interpreters.support import context, parse
from stepwell.tests.property.bounds import Reference
from stepwell.tests.property.programs import Program, rolled_program
from stepwell.tests.property.test_programs import FUSION, cost, text_of

GRAPH = next(names for stage, names in CPU if stage == "graph")
GRAPH_PASSES = [name for name in PASSES if name.startswith("graph-")]
LOWERING = ("convert-graph-to-loop", *FUSION, "convert-loop-to-tile")
LOOP_PASSES = [name for name in PASSES if name.startswith("loop-")]

NATIVE_EVERY = 5
"""One program in so many runs as machine code, the others in the interpreter of the tile level."""

STEPS_EVERY = 12
"""Of the others, one in so many also runs at every level on the way, goes through one pass alone (each has its turn)
and out to text and back. A mistake on the way shows at the end as well, for a third of the time."""

SECONDS = 120
"""Processor time after which a program counts as one that never ends."""

BATCH = 100

CONTEXT = context()


# -- one program -------------------------------------------------------------------------------------


def lower(module: ModuleOp, *passes: str) -> None:
    for name in passes:
        make_pass(name).apply(CONTEXT, module)
    module.verify()


class Examination:
    """One program on its way down; `step` is what is looked at."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.step = "graph"
        self.native = seed % NATIVE_EVERY == 0
        self.program = rolled_program(seed, exact_functions=not self.native)

    def run(self) -> None:
        """Raises what is wrong."""
        self.program.module.verify()
        self.reference = Reference(self.program)
        if self.native:
            self.step = "machine code"
            self.reference.check(run_natively(self.program))
        elif self.seed % STEPS_EVERY == 1:
            self.check_steps()
        else:
            prepared = GRAPH if self.seed % 2 else ()
            self.check(self.program.module.clone(), *prepared, *LOWERING)

    def check_steps(self) -> None:
        module, turn = self.program.module.clone(), self.seed // STEPS_EVERY
        self.check_alone(module, GRAPH_PASSES[turn % len(GRAPH_PASSES)])
        self.check(module, "convert-graph-to-loop")
        self.check_alone(module, LOOP_PASSES[turn % len(LOOP_PASSES)])
        before = cost(module)
        self.check(module, *FUSION)
        assert cost(module) <= before, "fusion moves more bytes"
        self.check(module, "convert-loop-to-tile")

    def check(self, module: ModuleOp, *passes: str) -> None:
        self.step = ", ".join(passes)
        lower(module, *passes)
        self.reference.check(interpret(module, self.program.arguments))

    def check_alone(self, module: ModuleOp, name: str) -> None:
        """One pass on a copy that was text meanwhile."""
        text = text_of(module)
        copy = parse(text)
        assert text_of(copy) == text, "text does not say everything"
        self.check(copy, name)


def run_natively(program: Program) -> list[Any]:
    """The results of machine code, by way of everything that a compile does after import."""
    settings = replace(config.snapshot(), verify=False, disable_cache=True, strict=True)
    imported, inputs = Case(program.module, tuple(program.arguments)).as_import({}, TargetAttr(machine(settings)))
    compilation = Compilation(fx.GraphModule({}, fx.Graph()), inputs, "inference", settings)
    return [to_array(result) for result in compilation.compile(imported)(list(inputs))]


# -- what programs hold ------------------------------------------------------------------------------


@dataclass
class Tally:
    """How many programs, of what kind; `ops` and `kinds` count programs by their number of ops and by the ops they
    hold. Seconds are those that passed, and those of the processor."""

    first: int
    count: int = 0
    native: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    reduction: int = 0
    view: int = 0
    symbol: int = 0
    other_type: int = 0
    ops: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, program: Program, native: bool) -> None:
        block = Case(program.module, ()).function.body.block
        ops = [op for op in block.ops if op.results]
        values = [*block.args, *(result for op in ops for result in op.results)]
        types = [value.type for value in values if isinstance(value.type, TensorType)]
        self.count += 1
        self.native += native
        self.ops[str(len(ops))] += 1
        self.kinds.update({op.name for op in ops})
        self.reduction += any(isinstance(op, graph.ReductionOp) for op in ops)
        self.view += any(op.has_trait(View) for op in ops)
        self.symbol += any(not size.is_constant for type_ in types for size in sizes_of(type_))
        self.other_type += any(element_of(type_) != FLOAT32 for type_ in types)

    @staticmethod
    def of(batches: Iterable[Tally]) -> Tally:
        """All batches as one."""
        total = Tally(0)
        for batch in batches:
            for part in fields(Tally)[1:]:
                setattr(total, part.name, getattr(total, part.name) + getattr(batch, part.name))
        return total

    @property
    def median(self) -> int:
        sizes = sorted((int(size), count) for size, count in self.ops.items())
        seen = 0
        for size, count in sizes:
            seen += count
            if 2 * seen >= self.count:
                return size
        return 0

    def __str__(self) -> str:
        parts = {
            "a reduction": self.reduction, "a view": self.view, "a symbol": self.symbol,
            "a type other than f32": self.other_type,
        }  # fmt: skip
        shares = ", ".join(f"{share / max(self.count, 1):.0%} with {name}" for name, share in parts.items())
        return (
            f"{self.count} programs, {self.native} of them as machine code, in {self.seconds:.0f} s"
            f" ({self.processor:.0f} s of a processor)\n"
            f"median {self.median} ops; {shares}; {len(self.kinds)} kinds of op"
        )


# -- the log -----------------------------------------------------------------------------------------


class Log:
    """A file with a line of JSON for each batch and each finding, and one beside it with the seed that runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.running = path.with_suffix(".running")
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.findings = [line for line in lines if "seed" in line]
        self.batches = [
            Tally(**line | {"ops": Counter(line["ops"]), "kinds": Counter(line["kinds"])})
            for line in lines
            if "first" in line
        ]

    @property
    def next(self) -> int:
        """The first seed that is not in the log."""
        return max((batch.first + batch.count for batch in self.batches), default=0)

    def note_death(self) -> None:
        """Notes the seed at which the last process died, if it did."""
        if self.running.exists():
            self.add_finding(int(self.running.read_text()), "the process died", "")
            self.running.unlink()

    def known(self, seed: int) -> bool:
        return any(finding["seed"] == seed for finding in self.findings)

    def add_finding(self, seed: int, step: str, error: str) -> None:
        finding = {"seed": seed, "step": step, "error": error}
        self.findings.append(finding)
        self._write(finding)

    def add_batch(self, batch: Tally) -> None:
        self.batches.append(batch)
        self._write(vars(batch))

    def _write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    def __str__(self) -> str:
        findings = [f"seed {finding['seed']}, {finding['step']}: {finding['error']}" for finding in self.findings]
        return "\n".join([str(Tally.of(self.batches)), f"{len(findings)} findings", *findings])


def never_ends(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def stop(number: int, frame: FrameType | None) -> None:
    sys.exit("stopped: the next run begins this batch again")


def search(log: Log, count: int) -> None:
    """Goes on to that many programs."""
    signal.signal(signal.SIGVTALRM, never_ends)
    while log.next < count:
        gc.collect()
        log.add_batch(searched(log, log.next, min(BATCH, count - log.next)))


def searched(log: Log, first: int, count: int) -> Tally:
    batch, started, processor = Tally(first), time.perf_counter(), time.process_time()
    for seed in range(first, first + count):
        if log.known(seed):
            batch.count += 1
        else:
            examine(log, seed, batch)
    batch.seconds, batch.processor = time.perf_counter() - started, time.process_time() - processor
    return batch


def examine(log: Log, seed: int, batch: Tally) -> None:
    """Counts a program and notes what is wrong with it."""
    examination = Examination(seed)
    batch.add(examination.program, examination.native)
    log.running.write_text(str(seed))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        examination.run()
    except Exception as error:
        log.add_finding(seed, examination.step, f"{type(error).__name__}: {str(error)[:500]}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        log.running.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=0, help="how many programs the log shall hold")
    parser.add_argument("--log", type=Path, required=True, help="the file to go on with")
    options = parser.parse_args(arguments)
    log = Log(options.log)
    if options.count > log.next:  # else this only reports, maybe while another process searches
        log.note_death()
        search(log, options.count)
    print(log)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    gc.disable()
    gc.freeze()  # torch is large, and does not change
    main()
