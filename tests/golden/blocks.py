"""Texts of tile kernels whose blocks have shapes that programs rarely give them: several dims, odd widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepwell.tests.cpu.kernels import block, elementwise_kernel, row_major

Shape = tuple[int, ...]
Texts = Callable[[str], Iterator[str]]
"""An element type → kernels on it."""

SHAPES: tuple[Shape, ...] = ((), (1,), (7,), (16,), (100,), (4, 16))

FLOATS, INTEGERS = ("f32", "f64", "bf16", "f16"), ("i8", "i16", "i32", "i64")
ELEMENTS = (*FLOATS, *INTEGERS, "i1")


def moved(element: str, shape: Shape, strides: str, start: str = "3", mask: str = "") -> str:
    """A kernel that loads a block from a place and stores it at one like that."""
    type_, buffer, kept = block(element, shape), f"memref<?x{element}>", row_major(shape)
    return f"""
    tile.kernel @moved(%m : memref<?xi1>, %x : {buffer}, %o : {buffer}, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} {{
      %mask = tile.load %m[0] strides ({kept}) : memref<?xi1> -> {block("i1", shape)}
      %y = tile.load %x[0] strides ({kept}) : {buffer} -> {type_}
      %v = tile.load %x[{start}] strides ({strides}){mask and f"{mask} else %y"} : {buffer} -> {type_}
      %w = tile.load %x[{start}] strides ({strides}){mask} : {buffer} -> {type_}
      tile.store %v, %o[{start}] strides ({strides}){mask} : {type_}, {buffer}
      tile.store %w, %o[0] strides ({kept}){mask} : {type_}, {buffer}
    }}"""


STRIDES: tuple[tuple[Shape, str], ...] = (
    ((), ""), ((1,), "1"), ((64,), "1"), ((7,), "1"), ((64,), "3"), ((16,), "0"), ((16,), "-1"), ((16,), "s0"),
    ((8, 16), "16, 1"), ((8, 16), "1, 8"), ((8, 16), "s0, 1"), ((3, 5), "1, 3"), ((4, 16), "0, 1"), ((4, 16), "1, 0"),
    ((2, 4, 8), "32, 8, 1"),
)  # fmt: skip


def accesses(element: str) -> Iterator[str]:
    for shape, strides in STRIDES:
        for mask in ("", " mask %mask"):
            yield moved(element, shape, strides, mask=mask)


COMBINERS = ("", " add", " mul", " max", " min")
OF_BITS = (" and", " or", " xor")
"""How stores combine numbers, and integers besides."""


def scattered(element: str) -> Iterator[str]:
    """Places that are computed, and combining stores."""
    buffer = f"memref<?x{element}>"
    combiners = ("",) if element == "i1" else (*COMBINERS, *OF_BITS) if element in INTEGERS else COMBINERS
    for shape in SHAPES:
        type_, places, kept = block(element, shape), block("i64", shape), row_major(shape)
        for mask in ("", " mask %mask"):
            for combiner in combiners:
                yield f"""
    tile.kernel @scattered(%m : memref<?xi1>, %p : memref<?xi64>, %x : {buffer}, %o : {buffer}) grid (1) {{
      %mask = tile.load %m[0] strides ({kept}) : memref<?xi1> -> {block("i1", shape)}
      %places = tile.load %p[0] strides ({kept}) : memref<?xi64> -> {places}
      %v = tile.gather %x[%places]{mask} : {buffer}, {places}
      tile.scatter %v, %o[%places]{mask}{combiner} : {type_}, {buffer}, {places}
      tile.store %v, %o[0] strides ({kept}){mask}{combiner} : {type_}, {buffer}
    }}"""


REDUCED = (
    ((64,), 0), ((1,), 0), ((7,), 0), ((4, 16), 0), ((4, 16), 1), ((5, 16), 0), ((3, 2, 8), 0), ((2, 4, 8), 1),
    ((3, 4, 8), 2),
)  # fmt: skip


def reductions(element: str) -> Iterator[str]:
    buffer = f"memref<?x{element}>"
    of_bits = ("maxu", "minu", "and", "or", "xor") if element in (*INTEGERS, "i1") else ()
    for shape, dim in REDUCED:
        kept = shape[:dim] + shape[dim + 1 :]
        for combiner in ("add", "mul", "max", "min", *of_bits):
            yield f"""
    tile.kernel @reduced(%x : {buffer}, %o : {buffer}) grid (1) {{
      %v = tile.load %x[0] strides ({row_major(shape)}) : {buffer} -> {block(element, shape)}
      %r = tile.reduce {combiner} %v dim {dim} : {block(element, shape)}
      tile.store %r, %o[0] strides ({row_major(kept)}) : {block(element, kept)}, {buffer}
    }}"""
        for combiner in ("argmax", "argmin"):
            yield f"""
    tile.kernel @placed(%x : {buffer}, %o : {buffer}, %p : memref<?xi64>) grid (1) {{
      %v = tile.load %x[0] strides ({row_major(shape)}) : {buffer} -> {block(element, shape)}
      %i = tile.iota {dim} : {block("i64", shape)}
      %r, %at = tile.reduce {combiner} %v, %i dim {dim} : {block(element, shape)}, {block("i64", shape)}
      tile.store %r, %o[0] strides ({row_major(kept)}) : {block(element, kept)}, {buffer}
      tile.store %at, %p[0] strides ({row_major(kept)}) : {block("i64", kept)}, memref<?xi64>
    }}"""


ARITHMETIC = {
    "f": ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"),
    "i": (
        "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui", "shli",
        "shrsi", "shrui", "andi", "maxsi", "minui",
    ),
}  # fmt: skip


def arithmetic(element: str) -> Iterator[str]:
    for shape in SHAPES:
        for name in ARITHMETIC["f" if "f" in element else "i"]:
            yield elementwise_kernel(f"%r = arith.{name} %0, %1 : {{0}}", (element, element), element, shape)


CASTS = {
    ("f", "f"): ("extf", "truncf"),
    ("f", "i"): ("fptosi", "fptoui"),
    ("i", "f"): ("sitofp", "uitofp"),
    ("i", "i"): ("extsi", "extui", "trunci"),
}


def bits(element: str) -> int:
    return int(element.lstrip("bfi"))


def casts(element: str) -> Iterator[str]:
    for target in ELEMENTS:
        for name in CASTS["f" if "f" in element else "i", "f" if "f" in target else "i"]:
            wider = bits(target) - bits(element)
            if not ("ext" in name and wider <= 0) and not ("trunc" in name and wider >= 0):
                for shape in SHAPES[2:]:
                    yield elementwise_kernel(cast(name), (element,), target, shape)


def cast(name: str) -> str:
    return (
        f"%r = arith.{name} %0 : {{0}} to {{r}}" if "f" in name[-1] else f"%r = tile.convert {name} %0 : {{0}} -> {{r}}"
    )


def rearranged(element: str) -> Iterator[str]:
    buffer = f"memref<?x{element}>"
    for shape in ((16, 16), (8, 16), (16, 8), (4, 32), (1, 8), (8, 1), (3, 5), (3, 4), (4, 3)):
        turned = shape[::-1]
        yield f"""
    tile.kernel @turned(%x : {buffer}, %o : {buffer}) grid (1) {{
      %v = tile.load %x[0] strides ({row_major(shape)}) : {buffer} -> {block(element, shape)}
      %w = tile.transpose %v : {block(element, shape)} -> {block(element, turned)}
      tile.store %w, %o[0] strides ({row_major(turned)}) : {block(element, turned)}, {buffer}
    }}"""
    for source, dims, target in (
        ((16,), "1", (4, 16)), ((4,), "0", (4, 16)), ((4, 16), "1, 2", (2, 4, 16)), ((4, 16), "0, 2", (4, 2, 16)),
        ((2, 4), "0, 1", (2, 4, 16)), ((4,), "1", (2, 4, 8)), ((), "", (4, 16)),
    ):  # fmt: skip
        yield f"""
    tile.kernel @spread(%x : {buffer}, %o : {buffer}) grid (1) {{
      %v = tile.load %x[0] strides ({row_major(source)}) : {buffer} -> {block(element, source)}
      %w = tile.broadcast %v dims [{dims}] : {block(element, source)} -> {block(element, target)}
      tile.store %w, %o[0] strides ({row_major(target)}) : {block(element, target)}, {buffer}
    }}"""


def constants(element: str) -> Iterator[str]:
    """Blocks of different numbers, and of one number."""
    buffer, dot = f"memref<?x{element}>", "" if element in INTEGERS else ".0"
    rows = [[f"{row * 4 + lane}{dot}" for lane in range(4)] for row in range(2)]
    several = ", ".join(f"[{', '.join(row)}]" for row in rows)
    for shape, text in (((2, 4), f"[{several}]"), ((2, 4), f"3{dot}"), ((16,), f"3{dot}")):
        yield f"""
    tile.kernel @constant(%o : {buffer}) grid (1) {{
      %c = arith.constant dense<{text}> : {block(element, shape)}
      tile.store %c, %o[0] strides ({row_major(shape)}) : {block(element, shape)}, {buffer}
    }}"""


def divided(element: str) -> Iterator[str]:
    """By a vector in each row, and by numbers that are known."""
    buffer = f"memref<?x{element}>"
    for shape in ((), (16,), (4, 16)):
        for name in ("divsi", "remsi", "divui", "floordivsi") if element in INTEGERS else ():
            for number in (0, -1, 3):
                constant = f"{number} : {{r}}" if shape == () else f"dense<{number}> : {{r}}"
                text = f"%c = arith.constant {constant}\n%r = arith.{name} %0, %c : {{0}}"
                yield elementwise_kernel(text, (element,), element, shape)
    division = "divsi" if element in INTEGERS else "divf"
    yield f"""
    tile.kernel @by_a_row(%x : {buffer}, %y : {buffer}, %o : {buffer}) grid (1) {{
      %v = tile.load %x[0] strides (16, 1) : {buffer} -> {block(element, (4, 16))}
      %w = tile.load %y[0] strides (1) : {buffer} -> {block(element, (16,))}
      %b = tile.broadcast %w dims [1] : {block(element, (16,))} -> {block(element, (4, 16))}
      %q = arith.{division} %v, %b : {block(element, (4, 16))}
      tile.store %q, %o[0] strides (16, 1) : {block(element, (4, 16))}, {buffer}
    }}"""


def chosen(element: str) -> Iterator[str]:
    """By conditions that are known, and by one condition for several lanes or rows."""
    buffer = f"memref<?x{element}>"
    for shape in ((), (16,), (4, 16)):
        type_, mask, strides = block(element, shape), block("i1", shape), row_major(shape)
        constants = [f"dense<{word}> : {mask}" if shape else word for word in ("true", "false")]
        for condition in (*(f"arith.constant {constant}" for constant in constants), None):
            chosen_by = mask if condition else "i1"
            yield f"""
    tile.kernel @chosen(%m : memref<?xi1>, %x : {buffer}, %o : {buffer}) grid (1) {{
      %c = {condition or "tile.load %m[0] strides () : memref<?xi1> -> i1"}
      %v = tile.load %x[0] strides ({strides}) : {buffer} -> {type_}
      %w = tile.load %x[100] strides ({strides}) : {buffer} -> {type_}
      %r = tile.select %c, %v, %w : {chosen_by}, {type_}
      tile.store %r, %o[0] strides ({strides}) : {type_}, {buffer}
    }}"""


def masks(element: str) -> Iterator[str]:
    """Known conditions as lanes that become rows."""
    for word in ("true", "false"):
        yield f"""
    tile.kernel @masks(%o : memref<?x{element}>) grid (1) {{
      %c = arith.constant dense<{word}> : {block(element, (4,))}
      %w = tile.broadcast %c dims [0] : {block(element, (4,))} -> {block(element, (4, 16))}
      tile.store %w, %o[0] strides (16, 1) : {block(element, (4, 16))}, memref<?x{element}>
    }}"""


def numbered(texts: Iterator[str]) -> str:
    """Kernels of one module, which differ in name."""
    return "\n".join(text.replace("tile.kernel @", f"tile.kernel @k{k}_", 1) for k, text in enumerate(texts))


KERNELS: dict[str, tuple[Texts, tuple[str, ...]]] = {
    "accesses": (accesses, ("f32", "i1", "bf16", "f64", "i8")),
    "scattered": (scattered, ("f32", "i1", "bf16", "i8", "i64")),
    "reductions": (reductions, ELEMENTS),
    "arithmetic": (arithmetic, (*FLOATS, *INTEGERS)),
    "casts": (casts, ELEMENTS),
    "constants": (constants, (*FLOATS, *INTEGERS)),
    "rearranged": (rearranged, ("f32", "i1", "bf16", "f64", "i8")),
    "divided": (divided, ("f32", "bf16", *INTEGERS)),
    "chosen": (chosen, ("f32", "i8", "i1")),
    "masks": (masks, ("i1",)),
}
"""Kind → its kernels and the elements that they take."""
