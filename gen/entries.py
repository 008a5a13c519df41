"""Writes the entry points and the declarations of the functions that they call. The generated code is simple: each line
of an entry point calls a function of src/mpi/check.h or src/mpi/call.h, which compilers and people can read.

An entry point, in this order:

    Call call(<index in the function table>);         lock, state line; a MakingCall sets the handles to null
                                                      after a failure
    NEAR_CHECK(call.enter());                         initialized, not finalized
    NEAR_CHECK(check::...);                           handles to objects, then all arguments by kind
    call.about(...);                                  state line: communicator, peer, tag, bytes
    return call.finish(impl::Function(...));          the hand-written part; failure runs the error handler

The forms of a collective share one hand-written function, which describes the call:

    NEAR_CHECK(impl::Allreduce_call(..., described));
    return call.finish(coll::run(described, ...));    or start (nonblocking), or prepare (persistent)

No exception leaves an entry point. The calls for small messages (`fast` in api/extra.json) first try a fast path
(src/mpi/fast.h), and do all of this only if it declines.
"""

import fnmatch
import re

from kinds import (
    BARE_HANDLES,
    BLOCKS,
    COUNT_KINDS,
    OBJECTS,
    POSITIVE_KINDS,
    SIGNED,
    SIZE_KINDS,
    UNUSED_BY_NO_OP,
    base_name,
)

COMM, ROOT, HANDLE, VALUE, MATCH, BUFFER, OUTPUT = range(7)


class Entry:
    """The entry points and the implementation of one function."""

    def __init__(self, function, surface):
        self.function = function
        extra = surface.extra

        def listed(key):
            return any(fnmatch.fnmatchcase(function.short, name) for name in extra[key]["names"])

        self.plain = listed("plain")
        self.any_time = listed("any_time")
        self.fast = listed("fast")
        self.fast_twice = listed("fast_twice")
        self.frees = listed("frees")
        self.wants_large = listed("wants_large")
        self.uncommitted = listed("uncommitted")
        self.undefined_when_too_large = listed("undefined_when_too_large")
        self.null_request_refused = listed("null_request_refused")
        self.null_info_refused = listed("null_info_refused")
        self.null_function_refused = listed("null_function_refused")
        self.leader_only = {name.partition(".")[2] for name in extra["leader_only"]["names"]
                            if name.partition(".")[0] == function.short}
        self.null_named = listed("null_named")
        base = base_name(function.short)
        self.collective = base if base in surface.collectives else None
        self.sides = extra["sides"].get(base, {})
        self.may_be_in_place = base in extra["in_place"]["names"]
        self.by_name = {p.name: p for p in function.parameters}
        comms = [p for p in function.parameters if p.kind == "COMMUNICATOR" and p.direction == "in"]
        self.comm = comms[0] if comms else None
        self.win = next((p for p in function.parameters if p.kind == "WINDOW" and p.direction == "in"), None)
        self.tool = function.short.startswith("T_")
        self.files = function.chapter == 14 or any(p.kind == "FILE" for p in function.parameters)

    # Queries about parameters

    def made(self):
        """(name, null handle) of each handle that the call makes."""
        null = {kind: row[2] for kind, row in OBJECTS.items()} | BARE_HANDLES
        return [(p.name, null[p.kind]) for p in self.function.parameters
                if p.kind in null and p.direction == "out" and not p.array]

    def nobody(self, type_):
        """C++ condition for a message of 0 elements without a partner, whose datatype may be null."""
        if self.function.chapter not in (3, 4) or self.type_is_alone(type_):
            return None
        count = self.function.parameters[self.function.parameters.index(type_) - 1].name
        if "message" in self.by_name:
            return f"{count} == 0 && *message == MPI_MESSAGE_NO_PROC"
        ranks = {"sendtype": ["dest"], "recvtype": ["source"]}.get(type_.name, ["dest", "source"])
        return " && ".join([f"{count} == 0"] + [f"{rank} == MPI_PROC_NULL" for rank in ranks if rank in self.by_name])

    def type_is_alone(self, type_):
        """Whether the datatype is not that of a message which the call sends or receives."""
        return not any(p.kind == "BUFFER" for p in self.function.parameters) or type_.kind != "DATATYPE"

    def side_of(self, p):
        """The side of a collective whose sides may be ignored: 'send', 'recv' or None."""
        if not self.sides:
            return None
        for side in ("send", "recv"):
            if p.name.startswith(side):
                return side
        return self.sides.get(p.name)

    def use_of(self, p):
        """When the parameter's side is used: 'leaf', 'root', 'placed', 'always' or None."""
        side = self.side_of(p)
        return self.sides[side] if side else None

    def is_optional(self, p):
        """Whether the call may ignore the datatype, so that the implementation gets a pointer."""
        return self.use_of(p) in ("leaf", "root", "placed") or self.unused_by_no_op(p)

    def unused_by_no_op(self, p):
        return self.function.short in UNUSED_BY_NO_OP and p.name.startswith("origin_")

    def is_w(self, p):
        return p.kind == "DATATYPE" and p.array and p.direction == "in"

    def array_length(self, p):
        """C++ expression for the number of elements, or None if only the implementation knows it."""
        if isinstance(p.length, list):
            return p.length[0]
        if p.length in self.by_name:
            return p.length
        short = self.function.short
        if p.kind in ("INDEX", "REQUEST") and "incount" in self.by_name:
            return "incount"
        if self.comm is None or p.direction != "in":
            return None
        comm = f"*{self.comm.name}_object"
        if "eighbor" in short:
            return f"check::{'out' if p.name.startswith('s') else 'in'}_degree({comm})"
        if base_name(short) == "Reduce_scatter":
            return f"{self.comm.name}_object->size"
        if p.kind.startswith("POLY") or self.is_w(p):
            return f"{self.comm.name}_object->peers"
        return None

    def type_of(self, count):
        """The datatype of the elements that are counted: the next one after the count. None if no data is sent."""
        if not any(p.kind == "BUFFER" for p in self.function.parameters):
            return None
        following = self.function.parameters[self.function.parameters.index(count) + 1:]
        return next((p for p in following if p.kind == "DATATYPE" and p.direction == "in"), None)

    def blocks_of(self, count):
        """C++ expression for how many blocks of `count` elements the call moves on one process, or None for one."""
        if "partitions" in self.by_name:
            return "partitions"
        base = base_name(self.function.short)
        if not any(count.name.startswith(side) for side in BLOCKS.get(base, ())):
            return None
        comm = f"{self.comm.name}_object"
        if base.startswith("Neighbor"):
            return f"check::{'out' if count.name.startswith('s') else 'in'}_degree(*{comm})"
        return f"{comm}->{'size' if base == 'Reduce_scatter_block' else 'peers'}"

    def counts_requests(self, p):
        """Whether this length counts requests; the standard then calls it a count."""
        return any(q.kind == "REQUEST" and q.length == p.name for q in self.function.parameters)

    # The implementation's declaration

    def implementation_parameter(self, p):
        kind, name = p.kind, p.name
        if kind == "VARARGS":
            return None
        if kind in OBJECTS and not p.array:
            cls = OBJECTS[kind][0]
            if kind in ("REQUEST", "MESSAGE"):
                if p.direction == "out":
                    return f"{cls}*& {name}"
                handle = p.small_type.rstrip("*")
                return f"{handle}& {name}" if "*" in p.small_type else f"{handle} {name}"
            if p.direction == "out":
                return f"{cls}*& {name}"
            if p.direction == "inout":
                return f"{cls}& {name}"
            pointer = kind == "INFO" or self.is_optional(p) or name in self.leader_only or self.null_named
            return f"{cls}{'*' if pointer else '&'} {name}"
        if kind == "POLYFUNCTION":
            return f"void* {name}"
        if kind.startswith("POLY") or kind == "DISPLACEMENT" and p.array and p.direction == "in":
            if p.array:
                return f"Counts {name}"
            return f"MPI_Count{'&' if p.direction != 'in' else ''} {name}"
        if p.array:
            return f"{p.large_type} (*{name})[3]" if p.array == "[][3]" else f"{p.large_type}* {name}"
        return f"{p.large_type.removeprefix('const ') if p.large_type == 'const int' else p.large_type} {name}"

    def implementation_declaration(self):
        if self.collective:
            if self.function.short != self.collective:
                return None  # another form of the collective; one description serves all forms
            parameters = [self.implementation_parameter(p) for p in self.function.parameters]
            return f"Result {self.collective}_call({', '.join(parameters)}, CollectiveCall& call);"
        if self.plain:
            parameters = [p.declare(False) for p in self.function.parameters]
            return f"{self.function.returns} {self.function.short}({', '.join(parameters)});"
        parameters = [self.implementation_parameter(p) for p in self.function.parameters]
        parameters = [p for p in parameters if p]
        if self.wants_large:
            parameters.append("bool large")
        return f"Result {self.function.short}({', '.join(parameters)});"

    # The entry point

    def definition(self, large, index, done):
        f = self.function
        name = f.form_name(large)
        lines = [f.prototype(large, "P") + " {"]
        if not done:
            lines = [self.unused(f.prototype(large, "P"), large) + " {"]
            lines += self.not_done(index)
        elif self.plain:
            arguments = ", ".join(p.name for p in f.parameters)
            lines.append(f"  return impl::{f.short}({arguments});")
        else:
            prototype = f.prototype(large, "P")
            if self.fast:
                # A separate function, so that the fast path does not set up the stack that only this path needs.
                full = f"{name}_in_full"
                prototype = f"[[gnu::noinline]] static {prototype.replace(f'P{name}', full)}"
            lines[0] = prototype + " try {"
            if self.fast_twice:
                arguments = ", ".join(p.name for p in f.form_parameters(large))
                lines += [f"  if (mpi::fast::second::{f.short}({index}, {arguments})) [[likely]]",
                          "    return MPI_SUCCESS;"]
            lines += self.body(large, index)
            lines.append("} catch (const std::exception& thrown) {")
            lines += [f"  Made{{{name}, {null}}}.fail();" for name, null in self.made()]
            lines += [f"  return mpi::caught({index}, thrown);", "}"]
            if self.fast:
                arguments = ", ".join(p.name for p in f.form_parameters(large))
                lines += [f.prototype(large, "P") + " {",
                          f"  return mpi::fast::{f.short}({index}, {arguments}, [&] {{",
                          f"    return {full}({arguments});",
                          "  });"]
        if lines[-1][:1] != "}":
            lines.append("}")
        lines.append(f"NEAR_PROFILED({name}, {f.prototype(large).partition(' ')[0]}, "
                     f"({', '.join(p.declare(large) for p in f.form_parameters(large)) or 'void'}))")
        return "\n".join(lines)

    def unused(self, prototype, large):
        """The prototype without the names of parameters that the body does not use."""
        f = self.function
        body = "" if self.plain else "\n".join(self.not_done(0))
        parts = []
        for p in f.form_parameters(large):
            parts.append(p.declare(large) if re.search(rf"\b{p.name}\b", body) or p.kind == "VARARGS"
                         else f"{p.type(large)} /*{p.name}*/{p.array}")
        return f"{f.returns} P{f.form_name(large)}({', '.join(parts) or 'void'})"

    def not_done(self, index):
        f = self.function
        if self.plain:
            return [f"  return mpi::unsupported_value<{f.returns}>({index});"]
        if self.tool:
            return [f"  return mpi::unsupported_tool({index});"]
        lines = self.entering(index)
        handler = next((p for p in f.parameters if p.kind == "ERRHANDLER" and p.direction == "in"), None)
        if self.comm and not self.files:
            lines.append(f"  call.on_valid({self.comm.name});")
        if handler and any(p.kind == "SESSION" and p.direction == "out" for p in f.parameters):
            lines.append(f"  return call.unsupported_session({handler.name});")
        else:
            lines.append("  return call.unsupported();")
        return lines

    def entering(self, index):
        made = "".join(f", Made{{{name}, {null}}}" for name, null in self.made())
        lines = [f"  {'MakingCall' if made else 'Call'} call({index}{made});"]
        if not self.any_time:
            lines.append("  NEAR_CHECK(call.enter());")
        if self.files:
            lines.append("  call.on_files();")
        return lines

    def body(self, large, index):
        f = self.function
        lines = self.entering(index)
        steps, arguments, after = [], [], []
        declared = []
        for p in f.parameters:
            if p.kind == "VARARGS":
                continue
            if p.large_only and not large:
                arguments.append(self.absent(p, declared))
                continue
            arguments.append(self.parameter(p, large, steps, declared, after))
        self.matching_operation(steps)
        if self.wants_large:
            arguments.append("true" if large else "false")
        steps.sort(key=lambda step: step[0])
        lines += [f"  {line}" for line in self.declarations(declared)]
        lines += self.written(steps)
        about = self.about()
        if about:
            lines.append(f"  {about}")
        if self.collective:
            described, call = self.collective_call(arguments)
            lines += described
        else:
            call = f"impl::{f.short}({', '.join(arguments)})"
        if self.frees and self.spares_predefined():
            handle = next(p for p in f.parameters if p.direction == "inout")
            call = f"{handle.name}_object->predefined ? Result() : {call}"
        if after:
            lines.append(f"  NEAR_CHECK({call});")
            lines += [f"  {line}" for line in after]
            lines.append("  return MPI_SUCCESS;")
        else:
            lines.append(f"  return call.finish({call});")
        return lines

    def collective_call(self, arguments):
        """The lines that describe the call, and the expression that runs it (blocking), starts it or prepares it."""
        f = self.function
        by_kind = list(zip([p.kind for p in f.parameters], arguments, strict=True))
        description = [value for kind, value in by_kind if kind not in ("INFO", "REQUEST")]
        verb = "run" if f.short == self.collective else "prepare" if f.short.endswith("_init") else "start"
        over = ["described"] + [value for kind, value in by_kind if kind in ("COMMUNICATOR", "REQUEST")]
        lines = ["  impl::CollectiveCall described;",
                 f"  NEAR_CHECK(impl::{self.collective}_call({', '.join(description)}, described));"]
        return lines, f"coll::{verb}({', '.join(over)})"

    def spares_predefined(self):
        """Whether freeing a predefined object does nothing. Other calls return such objects, so it is allowed."""
        return self.function.short in ("Group_free", "Errhandler_free")

    def declarations(self, declared):
        return declared

    def written(self, steps):
        """The checks as text; consecutive checks with the same condition share one `if`."""
        lines, open_guard = [], None
        for _, guard, text in steps:
            if guard != open_guard:
                if open_guard:
                    lines.append("  }")
                if guard:
                    lines.append(f"  if ({guard}) {{")
                open_guard = guard
            lines.append(("    " if guard else "  ") + text)
        if open_guard:
            lines.append("  }")
        return lines

    def guard_of(self, p):
        if self.unused_by_no_op(p):
            return "op != MPI_NO_OP"
        use, side = self.use_of(p), self.side_of(p)
        if use is None or use == "always":
            return None
        return f"{side}_used"

    def absent(self, p, declared):
        """The implementation's argument for a parameter that this form does not have (only the _c form has it)."""
        if p.array:
            return "nullptr"
        if p.direction == "out":
            declared.append(f"MPI_Count {p.name}_wide = 0;")
            return f"{p.name}_wide"
        return "0"

    def parameter(self, p, large, steps, declared, after):
        """Adds the checks of `p` to `steps`; returns the implementation's argument."""
        guard = self.guard_of(p)

        def check(priority, text):
            steps.append((priority, guard, f"NEAR_CHECK(check::{text});"))

        name, quoted = p.name, f'"{p.name}"'
        if p.kind in BARE_HANDLES:
            if "*" in p.type(large):
                check(OUTPUT, f"output({name}, {quoted})")
            return name
        if p.kind in OBJECTS and not p.array:
            return self.handle(p, large, check, steps, declared, after)
        if p.kind in OBJECTS:
            length = self.array_length(p)
            if p.kind == "REQUEST":
                null = "refuse_null" if self.null_request_refused else "allow_null"
                steps.append((HANDLE, guard, f"NEAR_CHECK(check::requests(call, {name}, {length}, {quoted}, "
                                             f"check::{null}));"))
            elif p.kind == "DATATYPE" and p.direction == "in":
                state = "any_state" if self.uncommitted else "committed_only"
                check(HANDLE, f"datatypes({name}, {length}, {quoted}, check::{state})")
            elif length:
                check(OUTPUT, f"array({name}, {length}, {quoted})")
            return name
        if p.kind == "BUFFER":
            self.buffer(p, check)
            return name
        if p.kind == "POLYFUNCTION":
            if self.null_function_refused:
                check(VALUE, f"function({name}, {quoted})")
            return f"reinterpret_cast<void*>({name})"
        if p.kind.startswith("POLY") or p.kind == "DISPLACEMENT" and p.array and p.direction == "in":
            return self.poly(p, large, check, declared, after)
        self.other(p, check)
        return name

    def handle(self, p, large, check, steps, declared, after):
        cls, validator, null = OBJECTS[p.kind]
        name, quoted = p.name, f'"{p.name}"'
        if p.direction == "out":
            check(OUTPUT, f"output({name}, {quoted})")
            declared.append(f"{cls}* {name}_object = nullptr;")
            if p.kind == "MESSAGE":
                null = "*flag ? MPI_MESSAGE_NO_PROC : MPI_MESSAGE_NULL" if "flag" in self.by_name else \
                    "MPI_MESSAGE_NO_PROC"
            after.append(f"*{name} = check::publish({name}_object, {null});")
            return f"{name}_object"
        pointer = "*" in p.small_type
        value = f"*{name}" if pointer else name
        if pointer:
            check(COMM, f"output({name}, {quoted})")
        if p.kind == "REQUEST":
            allowed = "refuse_null" if self.null_request_refused else "allow_null"
            check(HANDLE, f"request(call, {value}, {quoted}, check::{allowed})")
            return value
        if p.kind == "MESSAGE":
            check(HANDLE, f"message(call, {value}, {quoted})")
            return value
        if p.name in self.leader_only:
            declared.append(f"{cls}* {name}_object = check::{validator}_or_null({name});")
            return f"{name}_object"
        declared.append(f"{cls}* {name}_object = nullptr;")
        if self.null_named:
            guard = f"{name} != {null}"
            steps.append((HANDLE, guard, f"NEAR_CHECK(check::{validator}({value}, {quoted}, {name}_object));"))
            if p in (self.comm, self.win):
                steps.append((HANDLE, guard, f"call.on(*{name}_object);"))
            return f"{name}_object"
        if p.kind == "DATATYPE" and not self.uncommitted:
            validator = "committed"
        if p.kind == "INFO":
            validator = "info" if self.null_info_refused or p.direction == "inout" else "info_or_null"
        nobody = self.nobody(p) if p.kind == "DATATYPE" else None
        if nobody:
            check(HANDLE, f"committed_or_null({value}, {nobody}, {quoted}, {name}_object)")
            return f"{name}_object" if self.is_optional(p) else f"*{name}_object"
        owner = p.kind in ("COMMUNICATOR", "WINDOW")
        check(COMM if owner else HANDLE, f"{validator}({value}, {quoted}, {name}_object)")
        if p in (self.comm, self.win) or owner and p.direction == "inout":
            steps.append((COMM, None, f"call.on(*{name}_object);"))
            if self.sides:
                self.side_conditions(steps)
        if p.direction == "inout" and self.frees:
            if not self.spares_predefined():
                check(HANDLE, f"not_predefined(*{name}_object, {quoted})")
            after.append(f"*{name} = {null};")
        if p.direction == "in" and (p.kind == "INFO" or self.is_optional(p)):
            return f"{name}_object"
        return f"*{name}_object"

    def side_conditions(self, steps):
        comm = f"*{self.comm.name}_object"
        for side in ("send", "recv"):
            use = self.sides.get(side)
            if use == "leaf":
                text = f"check::leaf_side(root, {comm}, {side}buf)"
            elif use == "root":
                text = f"check::root_side(root, {comm})"
            elif use == "placed":
                text = f"{side}buf != MPI_IN_PLACE"
            else:
                continue
            steps.append((ROOT, None, f"const bool {side}_used = {text};"))

    def buffer(self, p, check):
        if self.function.short in ("Free_mem", "Win_attach", "Win_detach") or p.name == "buffer" and \
                "attach" in self.function.short:
            return
        following = self.function.parameters[self.function.parameters.index(p) + 1:]
        quoted = f'"{p.name}"'
        for q in following:
            if q.kind in ("POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE") and not q.array and q.direction == "in":
                check(BUFFER, f"bytes({p.name}, {q.name}, {quoted})")
                return
            if q.kind in COUNT_KINDS and not q.array and q.direction == "in":
                types = [t for t in following if t.kind == "DATATYPE"]
                if types and not types[0].array:
                    which = "buffer_or_in_place" if self.may_be_in_place and p.name == "sendbuf" else "buffer"
                    check(BUFFER, f"{which}({p.name}, {q.name}, *{types[0].name}_object, {quoted})")
                return
            if q.kind in COUNT_KINDS and q.array:
                if not (self.may_be_in_place and p.name == "sendbuf"):
                    check(BUFFER, f"placed({p.name}, {quoted})")
                return

    def amount(self, p, check):
        """Checks that the size of the counted elements in bytes does not overflow."""
        type_ = self.type_of(p)
        if type_ is None:
            return
        if p.array:
            length = self.array_length(p)
            types = type_.name if type_.array else f"*{type_.name}_object"
            if length:
                check(BUFFER, f'amounts(Counts({p.name}), {length}, {types}, "{p.name}")')
            return
        blocks = self.blocks_of(p)
        check(BUFFER, f'amount({p.name}, {f"{blocks}, " if blocks else ""}*{type_.name}_object, "{p.name}")')

    def poly(self, p, large, check, declared, after):
        name, quoted = p.name, f'"{p.name}"'
        if p.kind in COUNT_KINDS and p.direction == "in":
            self.amount(p, check)
        type_ = p.type(large)
        if p.array:
            length = self.array_length(p)
            if length:
                if p.kind in COUNT_KINDS:
                    check(VALUE, f"counts(Counts({name}), {length}, {quoted})")
                elif p.kind.endswith("_PI"):
                    check(VALUE, f"positive_counts(Counts({name}), {length}, {quoted})")
                else:
                    check(VALUE, f"array({name}, {length}, {quoted})")
            return f"Counts({name})"
        if p.direction == "in":
            if (self.function.name.removeprefix("MPI_"), name) in SIGNED:
                pass
            elif p.kind in COUNT_KINDS:
                check(VALUE, f"count({name}, {quoted})")
            elif p.kind in SIZE_KINDS:
                check(VALUE, f"size({name}, {quoted})")
            return name
        check(OUTPUT if p.direction == "out" else VALUE, f"output({name}, {quoted})")
        if type_ != "int*":
            return f"*{name}"
        if p.direction == "inout":
            # Declarations come before the checks, so the pointer may still be null.
            declared.append(f"MPI_Count {name}_wide = {name} != nullptr ? *{name} : 0;")
        else:
            declared.append(f"MPI_Count {name}_wide = 0;")
        if self.undefined_when_too_large:
            after.append(f"*{name} = check::narrow_or_undefined({name}_wide);")
        else:
            after.append(f"NEAR_CHECK(check::narrow({name}_wide, {quoted}, *{name}));")
        return f"{name}_wide"

    def other(self, p, check):
        f, name, quoted = self.function, p.name, f'"{p.name}"'
        if p.array:
            if p.kind in ("STATUS", "WEIGHT", "ERROR_CODE", "STRING_2DARRAY", "STRING_ARRAY", "ARGUMENT_LIST"):
                return
            if p.kind == "STRING":
                check(VALUE, f"string({name}, {quoted})")
                return
            length = self.array_length(p)
            if length is None:
                return
            if p.kind == "RANK" and p.array == "[]" and p.direction == "in" and "Group" in f.short:
                group = next(q for q in f.parameters if q.kind == "GROUP")
                null = "allow_null" if "translate" in f.short else "refuse_null"
                check(VALUE, f"group_ranks({name}, {length}, *{group.name}_object, {quoted}, check::{null})")
            else:
                check(OUTPUT if p.direction == "out" else VALUE, f"array({name}, {length}, {quoted})")
            return
        if p.kind == "FUNCTION":
            if self.null_function_refused:
                check(VALUE, f"function({name}, {quoted})")
            return
        if p.direction == "in" and "*" not in p.small_type:
            self.number(p, check)
            return
        if p.kind == "STATUS" and p.direction == "out" or p.kind in ("ARGUMENT_COUNT", "ARGUMENT_LIST"):
            return
        if p.kind in ("EXTRA_STATE", "EXTRA_STATE2", "ATTRIBUTE_VAL", "ATTRIBUTE_VAL_10") and p.direction == "in":
            return
        if p.kind == "STRING" and p.direction == "out" and f.short in ("Info_get_string", "Session_get_nth_pset"):
            return
        if p.kind == "STRING" and p.direction == "in":
            check(VALUE, f"string({name}, {quoted})")
        else:
            check(OUTPUT, f"output({name}, {quoted})")

    def number(self, p, check):
        name, quoted = p.name, f'"{p.name}"'
        comm = f"*{self.comm.name}_object" if self.comm else None
        if p.name in self.leader_only:
            return
        if p.kind in ("RANK", "TAG") and self.function.short.startswith("Status_set"):
            return  # a program may store any number
        if p.kind == "RANK" and comm:
            which = {"dest": "destination", "source": "source", "root": "root"}.get(name, "member")
            check(ROOT, f"{which}({name}, {comm}, {quoted})")
        elif p.kind == "TAG":
            receives = name == "recvtag" or name == "tag" and "source" in self.by_name
            check(VALUE, f"{'receive' if receives else 'send'}_tag({name}, {quoted})")
        elif p.kind in COUNT_KINDS:
            check(VALUE, f"count({name}, {quoted})")
            self.amount(p, check)
        elif p.kind in SIZE_KINDS:
            check(VALUE, f"{'count' if self.counts_requests(p) else 'size'}({name}, {quoted})")
        elif p.kind in POSITIVE_KINDS:
            check(VALUE, f"positive({name}, {quoted})")
        elif p.kind == "COLOR":
            check(VALUE, f"color({name}, {quoted})")

    def matching_operation(self, steps):
        operations = [p for p in self.function.parameters if p.kind == "OPERATION" and p.direction == "in"]
        if operations and "datatype" in self.by_name and "win" not in self.by_name:
            # If neither side is used (the root is MPI_PROC_NULL on an intercommunicator), the pair is not checked.
            used = "send_used || recv_used" if self.sides else None
            steps.append((MATCH, used, f"NEAR_CHECK(datatype::check_operation(*{operations[0].name}_object, "
                                       "*datatype_object));"))

    def about(self):
        """The statement that fills the state line, for calls on a communicator that may wait."""
        if self.win and self.function.chapter == 12:
            peer = next((n for n in ("target_rank", "rank") if n in self.by_name), "MPI_UNDEFINED")
            bytes_ = "target_count * target_datatype_object->size" if "target_count" in self.by_name else "0"
            return f"call.about(*win_object->communicator, {peer}, MPI_UNDEFINED, {bytes_});"
        if self.comm is None or self.function.chapter not in (3, 6, 7, 8, 16):
            return None
        peer = next((n for n in ("dest", "source", "root") if n in self.by_name), None)
        tag = next((n for n in ("tag", "sendtag") if n in self.by_name), None)
        count = self.by_name.get("count")
        bytes_ = "0"
        if count and "datatype" in self.by_name and not count.array:
            bytes_ = "count * datatype_object->size"
        if peer is None and self.function.chapter in (7, 16, 8):
            return None if self.function.chapter != 8 else f"call.about(*{self.comm.name}_object);"
        arguments = [peer or "MPI_UNDEFINED", tag or "MPI_UNDEFINED", bytes_]
        return f"call.about(*{self.comm.name}_object, {', '.join(arguments)});"


IMPL_HEAD = """\
// Called by the entry points: one function for both forms of each MPI function, written by hand in src/mpi/.
// Generated by gen/generate.py; do not edit.
#pragma once

#include "datatype/counts.h"
#include "datatype/operation.h"
#include "object/window.h"
#include "p2p/p2p.h"

namespace near::mpi::impl {

using datatype::Counts;
using datatype::Datatype;
using datatype::Operation;
using object::Communicator;
using object::ErrorHandler;
using object::Group;
using object::Info;
using object::Result;
using object::Window;

struct CollectiveCall; // mpi/collective.h

"""


def impl_h(surface):
    lines = [IMPL_HEAD]
    for number, title in surface.chapters():
        entries = [Entry(f, surface) for f in surface.functions if f.chapter == number]
        entries = [e for e in entries if not e.tool]
        if not entries:
            continue
        lines.append(f"// {title} (chapter {number})\n")
        declarations = [e.implementation_declaration() for e in entries]
        lines += [declaration + "\n" for declaration in declarations if declaration]
        lines.append("\n")
    return "".join(lines) + "} // namespace near::mpi::impl\n"


ENTRIES_HEAD = """\
// Entry points of chapter {number}: {title}.
// Generated by gen/generate.py; do not edit.
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include "mpi/call.h"
#include "mpi/check.h"
#include "mpi/collective.h"
#include "mpi/impl.h"
#include "mpi/fast.h"

using namespace near;
using near::mpi::Call;
using near::mpi::Made;
using near::mpi::MakingCall;
namespace check = near::mpi::check;
namespace impl = near::mpi::impl;
using datatype::Counts;
using datatype::Datatype;
using datatype::Operation;
using object::Communicator;
using object::ErrorHandler;
using object::Group;
using object::Info;
using object::Result;
using object::Window;

extern "C" {{
"""


def entries_cpp(surface, number, title, done, index_of):
    parts = [ENTRIES_HEAD.format(number=number, title=title)]
    for function, large in surface.forms():
        if function.chapter == number:
            entry = Entry(function, surface)
            name = function.form_name(large)
            parts.append(entry.definition(large, index_of[name], function.short in done))
    parts.append('} // extern "C"\n')
    return "\n".join(parts)
