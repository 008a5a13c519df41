"""Datatypes that are written as text, as for `near model --type`: `vector(1000, 1, 16, double)`, nested as one likes.

The text is turned into words in prefix order (`vector 1000 1 16 MPI_DOUBLE`), from which bench/typed.c makes the datatype.
"""

import ast
import difflib

NUMBER, LIST, TYPE = "a whole number of 32 bits", "a list of whole numbers of 32 bits, such as [0, 5],", "a datatype"
CONSTRUCTORS = {
    "vector": (NUMBER, NUMBER, NUMBER, TYPE),
    "hvector": (NUMBER, NUMBER, NUMBER, TYPE),
    "contiguous": (NUMBER, TYPE),
    "indexed": (LIST, LIST, TYPE),
    "indexed_block": (NUMBER, LIST, TYPE),
    "subarray": (LIST, LIST, LIST, TYPE),
    "resized": (NUMBER, NUMBER, TYPE),
}
BASIC = {name: f"MPI_{name.upper()}" for name in (
    "char", "signed_char", "unsigned_char", "byte", "short", "unsigned_short", "int", "unsigned", "long", "unsigned_long",
    "long_long", "unsigned_long_long", "float", "double", "long_double", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
    "uint16_t", "uint32_t", "uint64_t")}
BASIC["unsigned_int"] = "MPI_UNSIGNED"


class Misunderstood(ValueError):
    """The text is not a datatype; the message says where and what is expected."""


def prefix_words(text):
    """The words of the datatype `text`, separated by blanks; raises Misunderstood."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise Misunderstood(f"the datatype '{text}' is not understood: it has to look like vector(1000, 1, 16, double)") from None
    return " ".join(map(str, _type(text, tree)))


def _fail(text, node, expected):
    raise Misunderstood(f"the datatype '{text}' is not understood: {expected} is expected where '{ast.unparse(node)}' stands")


def _type(text, node):
    if isinstance(node, ast.Name):
        basic = node.id if node.id in BASIC.values() else BASIC.get(node.id)
        if basic is None:
            _unknown(text, node.id)
        return [basic]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        _fail(text, node, TYPE)
    name = node.func.id
    if name not in CONSTRUCTORS:
        _unknown(text, name)
    expected = CONSTRUCTORS[name]
    if len(node.args) != len(expected):
        raise Misunderstood(f"the datatype '{text}' is not understood: {name} takes {len(expected)} arguments, not {len(node.args)}: "
                            f"{', '.join(expected)}")
    lists = [len(each.elts) for each, kind in zip(node.args, expected, strict=True) if kind is LIST and isinstance(each, ast.List)]
    if len(set(lists)) > 1:
        raise Misunderstood(f"the datatype '{text}' is not understood: the lists of {name} must be equally long, but have "
                            f"{' and '.join(map(str, lists))} numbers")
    words = [_argument(text, each, kind) for each, kind in zip(node.args, expected, strict=True)]
    return [name, *lists[:1], *(word for argument in words for word in argument)]


def _argument(text, node, kind):
    if kind is TYPE:
        return _type(text, node)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        value = None
    numbers = value if kind is LIST else [value]
    if not isinstance(numbers, list) or any(type(number) is not int or abs(number) >= 1 << 31 for number in numbers):
        _fail(text, node, kind)
    return numbers


def _unknown(text, name):
    near = difflib.get_close_matches(name, [*CONSTRUCTORS, *BASIC], 1)
    hint = f"; did you mean {near[0]}?" if near else f": known are {', '.join([*CONSTRUCTORS, *BASIC])}"
    raise Misunderstood(f"the datatype '{text}' is not understood: there is no type '{name}'{hint}")
