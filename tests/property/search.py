"""Searches many random programs for one that a level, a pass or machine code gets wrong, each from a seed of its own.

`python -m stepwell.tests.property.search --count 100000 --jobs 2 --log FILE` does what FILE lacks, and reports what it
holds. A seed makes the same program whatever the number of jobs. A process that dies at a program finds it, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import time
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Sequence
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
from stepwell.tests.forks import Forks, Say
from stepwell.tests.interpreters.support import context, parse
from stepwell.tests.property.bounds import Reference
from stepwell.tests.property.programs import BoundedGrower, Program, RoomyGrower, rolled_program
from stepwell.tests.property.test_programs import FUSION, cost, text_of

GRAPH = next(names for stage, names in CPU if stage == "graph")
GRAPH_PASSES = [name for name in PASSES if name.startswith("graph-")]
LOWERING = ("convert-graph-to-loop", *FUSION, "convert-loop-to-tile")
LOOP_PASSES = [name for name in PASSES if name.startswith("loop-")]

NATIVE_EVERY = 5
"""One program in so many runs as machine code, every other one of these on large tensors; the rest run in the
interpreter of the tile level."""

STEPS_EVERY = 12
"""Of the others, one in so many also runs at every level on the way, goes through one pass alone (each has its turn)
and out to text and back. A mistake on the way shows at the end as well, for a third of the time."""

SECONDS = 120
"""Processor time after which a program counts as one that never ends."""

BATCH = 100
"""Programs that one process examines."""

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
        grower = RoomyGrower if seed % (2 * NATIVE_EVERY) == 0 else BoundedGrower
        self.program = rolled_program(seed, exact_functions=not self.native, grower=grower)

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
    """How many programs from which seed on, of what kind; `ops` and `kinds` count programs by their number of ops and
    by the ops they hold; `processor` is in seconds."""

    first: int
    count: int = 0
    native: int = 0
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
            f"{self.count} programs, {self.native} of them as machine code, in {self.processor:.0f} s of a processor\n"
            f"median {self.median} ops; {shares}; {len(self.kinds)} kinds of op"
        )


# -- the log -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What is wrong with a program, and at which step of its way."""

    seed: int
    step: str
    error: str


class Log:
    """A file with a line of JSON for each batch and each finding."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.findings = {line["seed"]: Finding(**line) for line in lines if "seed" in line}
        self.batches = [
            Tally(**line | {"ops": Counter(line["ops"]), "kinds": Counter(line["kinds"])})
            for line in lines
            if "first" in line
        ]

    def missing(self, count: int) -> Iterator[range]:
        """The seeds below that number which are in no batch yet, in pieces of a batch."""
        first = 0
        for batch in sorted([*self.batches, Tally(count)], key=lambda batch: batch.first):
            yield from pieces(range(first, min(batch.first, count)))
            first = batch.first + batch.count

    def add_finding(self, finding: Finding) -> None:
        self.findings[finding.seed] = finding
        self._write(vars(finding))

    def add_batch(self, batch: Tally) -> None:
        self.batches.append(batch)
        self._write(vars(batch))

    def _write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    def __str__(self) -> str:
        findings = [f"seed {seed}, {found.step}: {found.error}" for seed, found in sorted(self.findings.items())]
        return "\n".join([str(Tally.of(self.batches)), f"{len(findings)} findings", *findings])


def pieces(seeds: range) -> Iterator[range]:
    return (seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH))


# -- the search --------------------------------------------------------------------------------------


def search(log: Log, count: int, forks: Forks[range]) -> None:
    """Goes on to that many programs. A batch that a process dies in begins again, without the program it died at."""
    pending = deque(log.missing(count))
    for fork in forks.run(pending, lambda say, seeds, slot: examine_all(say, seeds, log.findings)):
        for word in fork.said:
            if isinstance(word, Finding):
                log.add_finding(word)
        if isinstance(fork.said[-1], Tally):
            log.add_batch(fork.said[-1])
        else:
            last = max(word for word in fork.said if isinstance(word, int))
            log.add_finding(Finding(last, "the process died", f"status {fork.status}"))
            pending.append(fork.key)


def examine_all(say: Say, seeds: range, known: Container[int]) -> None:
    """Says which seed is looked at, what is wrong with its program, and at the end what all programs hold."""
    signal.signal(signal.SIGVTALRM, never_ends)
    batch, processor = Tally(seeds.start), time.process_time()
    for seed in seeds:
        if seed in known:
            batch.count += 1
        else:
            say(seed)
            examine(say, seed, batch)
    batch.processor = time.process_time() - processor
    say(batch)


def never_ends(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def examine(say: Say, seed: int, batch: Tally) -> None:
    """Counts a program and says what is wrong with it. Native code that never ends takes the process with it."""
    examination = Examination(seed)
    batch.add(examination.program, examination.native)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
    try:
        examination.run()
    except Exception as error:
        say(Finding(seed, examination.step, f"{type(error).__name__}: {str(error)[:500]}"))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=0, help="how many programs the log shall hold")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes to use (1)")
    parser.add_argument("--budget", type=float, help="seconds after which to stop; run it again to go on")
    parser.add_argument("--log", type=Path, required=True, help="the file to go on with")
    options = parser.parse_args(arguments)
    log = Log(options.log)
    deadline = None if options.budget is None else time.monotonic() + options.budget
    with Forks[range](options.jobs, deadline) as forks:
        search(log, options.count, forks)
    print(log)


if __name__ == "__main__":
    gc.disable()
    gc.freeze()  # torch is large, and does not change
    main()
