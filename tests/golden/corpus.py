"""What the compiler makes of each program of the corpus, stage by stage, as digests that files keep.

`python -m stepwell.tests.golden.corpus --update` writes the files anew after an intended change; `NAME --against HEAD`
prints what a program has become since that revision. Digests tell that code changed, not that it is right.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from io import StringIO
from itertools import zip_longest
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from stepwell.backends.cpu.targets import kernel_texts
from stepwell.ir import tile
from stepwell.ir.errors import StepwellError
from stepwell.ir.target import TARGET, Target, TargetAttr, target_of
from stepwell.lowering.pipelines import CPU, GPU, Stage, make_pass
from stepwell.tests.golden.builder import context
from stepwell.tests.golden.programs import CODE, KINDS, OWN, Program

FOLDER = Path(__file__).parent / "digests"

SAME = "."
"""Stands for a stage that changed nothing."""

KIB, MIB = 1 << 10, 1 << 20

TARGETS = {
    "avx512": Target("wide", 512, 32, 2, 48 * KIB, MIB, 8 * MIB),
    "avx512bf16": Target("wide", 512, 32, 2, 48 * KIB, MIB, 8 * MIB, rounds_to_bf16=True),
    "avx2": Target("middle", 256, 16, 8, 32 * KIB, 512 * KIB, 16 * MIB),
    "neon": Target("narrow", 128, 32, 4, 64 * KIB, 2 * MIB, 32 * MIB),
    "gpu": Target("sm_90", 128, 255, 132, 227 * KIB, 50 * MIB, 50 * MIB),
}
"""Machines of the corpus, not those that run it. What a GPU runs is kept up to the passes that only GPUs need."""


# -- one program -------------------------------------------------------------------------------------


def pipeline(program: Program, target: Target) -> tuple[Stage, ...]:
    """The stages from the program's level on."""
    stages = GPU[:-1] if target.is_gpu else CPU
    names = [name for name, _ in stages]
    return stages[names.index(program.first) if program.first != CODE else len(names) :]


def text_of(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def snapshots(program: Program, *, every_pass: bool = False) -> Iterator[tuple[str, str]]:
    """The program, the module after each stage or each pass, and the code of its kernels, each with its name."""
    module = program.make()
    if program.target != OWN:
        module.attributes[TARGET] = TargetAttr(TARGETS[program.target])
    target = target_of(module)
    yield "program", text_of(module)
    try:
        for stage, names in pipeline(program, target):
            for name in names:
                make_pass(name).apply(context(), module)
                if every_pass:
                    yield name, text_of(module)
            if not every_pass:
                yield stage, text_of(module)
        if not target.is_gpu and any(isinstance(op, tile.KernelOp) for op in module.ops):
            yield CODE, "\n".join(kernel_texts(module, CODE))
    except StepwellError as error:
        yield "error", str(error)


def digests(program: Program) -> list[tuple[str, str]]:
    """Each stage with a digest of what it leaves, which may be that it changed nothing."""
    found, before = [], ""
    for step, text in snapshots(program):
        found.append((step, SAME if text == before else sha256(text.encode()).hexdigest()[:4]))
        before = text
    return found


def line_of(program: Program) -> str:
    return " ".join([f"{program.name}:", *(digest for _, digest in digests(program))])


def difference(program: Program, kept: str | None) -> str | None:
    """What to say about a program whose line in the file is `kept`; nothing if it is as it was."""
    if kept is None:
        return f"{program.name}: not in the file"
    old = kept.removeprefix(f"{program.name}:").split()
    for found, known in zip_longest(digests(program), old):
        if found is None or found[1] != known:
            return f"{program.name}: {found[0] if found else 'the end'}"
    return None


# -- the files ---------------------------------------------------------------------------------------


def path_of(kind: str) -> Path:
    return FOLDER / f"{kind}.txt"


@cache
def kept(kind: str) -> dict[str, str]:
    """Program → its line in the file."""
    lines = path_of(kind).read_text().splitlines() if path_of(kind).exists() else []
    return {line.partition(":")[0]: line for line in lines}


def programs(kind: str) -> Iterator[Program]:
    for name, row in KINDS[kind].items():
        yield from row.programs(name)


def update(kind: str) -> str:
    """Writes the file of a kind; says how many programs have changed."""
    lines = {program.name: line_of(program) for program in programs(kind)}
    changed = sum(kept(kind).get(name) != line for name, line in lines.items())
    gone = len(kept(kind).keys() - lines.keys())
    FOLDER.mkdir(exist_ok=True)
    path_of(kind).write_text("\n".join(lines.values()) + "\n")
    return f"{kind}: {changed} of {len(lines)} programs changed, {gone} gone"


# -- what changed ------------------------------------------------------------------------------------


def find(name: str) -> Program:
    found = next((program for kind in KINDS for program in programs(kind) if program.name == name), None)
    if found is None:
        sys.exit(f"no program is called {name!r}")
    return found


def shown(name: str) -> str:
    """What every pass makes of a program, if it changes something."""
    found, before = [], ""
    for step, text in snapshots(find(name), every_pass=True):
        if text != before:
            found.append(f"-- {step}\n{text}\n")
        before = text
    return "\n".join(found)


def shown_at(name: str, revision: str) -> str:
    """The same of another revision, which a process of its own runs in a copy."""
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stepwell"
        subprocess.run(["git", "worktree", "add", "--detach", str(copy), revision], cwd=root, check=True)
        try:
            command = [sys.executable, "-m", "stepwell.tests.golden.corpus", name]
            environment = {**os.environ, "PYTHONPATH": folder}
            done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
            return done.stdout.decode() if not done.returncode else sys.exit(f"{revision} has no such program")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(copy)], cwd=root, check=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="?", help="a program, to show what each step makes of it")
    parser.add_argument("--against", metavar="REVISION", help="show how that differs from another revision")
    parser.add_argument("--update", nargs="*", metavar="KIND", help="write the files of these kinds, or all, anew")
    options = parser.parse_args(arguments)
    for kind in KINDS if options.update == [] else options.update or ():
        print(update(kind), flush=True)
    if options.name is not None and options.against is None:
        print(shown(options.name))
    elif options.name is not None:
        old, new = shown_at(options.name, options.against), shown(options.name) + "\n"
        print("".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), options.against, "now")), end="")


if __name__ == "__main__":
    main()
