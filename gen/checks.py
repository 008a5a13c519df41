"""Decides how an entry point checks its arguments, and what it passes to the implementation."""

from kinds import BARE_HANDLES, COUNT_KINDS, OBJECTS, POSITIVE_KINDS, SIGNED, SIZE_KINDS

# The order of the checks: an error of one kind is reported before those of later kinds.
COMM, ROOT, HANDLE, VALUE, MATCH, BUFFER, OUTPUT = range(7)


class Checks:
    """The arguments of one form of a function: `large` says which."""

    def __init__(self, entry, large):
        self.entry = entry
        self.steps = []  # (priority, condition or None, statement)
        self.arguments = []  # for the implementation
        self.declared = []  # declarations before the checks
        self.after = []  # statements after the implementation has succeeded
        for p in entry.function.parameters:
            if p.kind == "VARARGS":
                continue
            if p.large_only and not large:
                self.arguments.append(self.absent(p))
            else:
                self.arguments.append(self.parameter(p, large))
        self.matching_operation()
        if entry.wants_large:
            self.arguments.append("true" if large else "false")
        self.steps.sort(key=lambda step: step[0])

    def written(self):
        """The checks as text; consecutive checks with the same condition share one `if`."""
        lines, open_guard = [], None
        for _, guard, text in self.steps:
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

    def parameter(self, p, large):
        """Adds the checks of `p` to `steps`; returns the implementation's argument."""
        guard = self.guard_of(p)

        def check(priority, text):
            self.steps.append((priority, guard, f"NEAR_CHECK(check::{text});"))

        name, quoted = p.name, f'"{p.name}"'
        if p.kind in BARE_HANDLES:
            if "*" in p.type(large):
                check(OUTPUT, f"output({name}, {quoted})")
            return name
        if p.kind in OBJECTS and not p.array:
            return self.handle(p, large, check)
        if p.kind in OBJECTS:
            length = self.entry.array_length(p)
            if p.kind == "REQUEST":
                null = "refuse_null" if self.entry.null_request_refused else "allow_null"
                check(HANDLE, f"requests(call, {name}, {length}, {quoted}, check::{null})")
            elif p.kind == "DATATYPE" and p.direction == "in":
                state = "any_state" if self.entry.uncommitted else "committed_only"
                check(HANDLE, f"datatypes({name}, {length}, {quoted}, check::{state})")
            elif length:
                check(OUTPUT, f"array({name}, {length}, {quoted})")
            return name
        if p.kind == "BUFFER":
            self.buffer(p, check)
            return name
        if p.kind == "POLYFUNCTION":
            if self.entry.null_function_refused:
                check(VALUE, f"function({name}, {quoted})")
            return f"reinterpret_cast<void*>({name})"
        if p.kind.startswith("POLY") or p.kind == "DISPLACEMENT" and p.array and p.direction == "in":
            return self.poly(p, large, check)
        self.other(p, check)
        return name

    def handle(self, p, large, check):
        cls, validator, null = OBJECTS[p.kind]
        name, quoted = p.name, f'"{p.name}"'
        if p.direction == "out":
            check(OUTPUT, f"output({name}, {quoted})")
            self.declared.append(f"{cls}* {name}_object = nullptr;")
            if p.kind == "MESSAGE":
                null = "*flag ? MPI_MESSAGE_NO_PROC : MPI_MESSAGE_NULL" if "flag" in self.entry.by_name else \
                    "MPI_MESSAGE_NO_PROC"
            self.after.append(f"*{name} = check::publish({name}_object, {null});")
            return f"{name}_object"
        pointer = "*" in p.small_type
        value = f"*{name}" if pointer else name
        if pointer:
            check(COMM, f"output({name}, {quoted})")
        if p.kind == "REQUEST":
            allowed = "refuse_null" if self.entry.null_request_refused else "allow_null"
            check(HANDLE, f"request(call, {value}, {quoted}, check::{allowed})")
            return value
        if p.kind == "MESSAGE":
            check(HANDLE, f"message(call, {value}, {quoted})")
            return value
        if p.name in self.entry.leader_only:
            self.declared.append(f"{cls}* {name}_object = check::{validator}_or_null({name});")
            return f"{name}_object"
        self.declared.append(f"{cls}* {name}_object = nullptr;")
        if self.entry.null_named:
            guard = f"{name} != {null}"
            self.steps.append((HANDLE, guard, f"NEAR_CHECK(check::{validator}({value}, {quoted}, {name}_object));"))
            if p in (self.entry.comm, self.entry.win):
                self.steps.append((HANDLE, guard, f"call.on(*{name}_object);"))
            return f"{name}_object"
        if p.kind == "DATATYPE" and not self.entry.uncommitted:
            validator = "committed"
        if p.kind == "INFO":
            validator = "info" if self.entry.null_info_refused or p.direction == "inout" else "info_or_null"
        nobody = self.entry.nobody(p) if p.kind == "DATATYPE" else None
        if nobody:
            check(HANDLE, f"committed_or_null({value}, {nobody}, {quoted}, {name}_object)")
            return f"{name}_object" if self.entry.is_optional(p) else f"*{name}_object"
        owner = p.kind in ("COMMUNICATOR", "WINDOW")
        check(COMM if owner else HANDLE, f"{validator}({value}, {quoted}, {name}_object)")
        if p in (self.entry.comm, self.entry.win) or owner and p.direction == "inout":
            self.steps.append((COMM, None, f"call.on(*{name}_object);"))
            if self.entry.sides:
                self.side_conditions()
            if self.entry.neighbours:
                check(COMM, f"topology(*{name}_object)")
        if p.direction == "inout" and self.entry.frees:
            if not self.entry.spares_predefined():
                check(HANDLE, f"not_predefined(*{name}_object, {quoted})")
            self.after.append(f"*{name} = {null};")
        if p.direction == "in" and (p.kind == "INFO" or self.entry.is_optional(p)):
            return f"{name}_object"
        return f"*{name}_object"

    def side_conditions(self):
        comm = f"*{self.entry.comm.name}_object"
        for side in ("send", "recv"):
            use = self.entry.sides.get(side)
            if use == "leaf":
                text = f"check::leaf_side(root, {comm}, {side}buf)"
            elif use == "root":
                text = f"check::root_side(root, {comm})"
            elif use == "placed":
                text = f"{side}buf != MPI_IN_PLACE"
            else:
                continue
            self.steps.append((ROOT, None, f"const bool {side}_used = {text};"))

    def buffer(self, p, check):
        if self.entry.function.short in ("Free_mem", "Win_attach", "Win_detach") or p.name == "buffer" and \
                "attach" in self.entry.function.short:
            return
        following = self.entry.function.parameters[self.entry.function.parameters.index(p) + 1:]
        quoted = f'"{p.name}"'
        for q in following:
            if q.kind in ("POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE") and not q.array and q.direction == "in":
                check(BUFFER, f"bytes({p.name}, {q.name}, {quoted})")
                return
            if q.kind in COUNT_KINDS and not q.array and q.direction == "in":
                types = [t for t in following if t.kind == "DATATYPE"]
                if types and not types[0].array:
                    which = "buffer_or_in_place" if self.entry.may_be_in_place and p.name == "sendbuf" else "buffer"
                    check(BUFFER, f"{which}({p.name}, {q.name}, *{types[0].name}_object, {quoted})")
                return
            if q.kind in COUNT_KINDS and q.array:
                if not (self.entry.may_be_in_place and p.name == "sendbuf"):
                    check(BUFFER, f"placed({p.name}, {quoted})")
                return

    def amount(self, p, check):
        """Checks that the size of the counted elements in bytes does not overflow."""
        type_ = self.entry.type_of(p)
        if type_ is None:
            return
        if p.array:
            length = self.entry.array_length(p)
            types = type_.name if type_.array else f"*{type_.name}_object"
            if length:
                check(BUFFER, f'amounts(Counts({p.name}), {length}, {types}, "{p.name}")')
            return
        blocks = self.entry.blocks_of(p)
        check(BUFFER, f'amount({p.name}, {f"{blocks}, " if blocks else ""}*{type_.name}_object, "{p.name}")')

    def poly(self, p, large, check):
        name, quoted = p.name, f'"{p.name}"'
        if p.kind in COUNT_KINDS and p.direction == "in":
            self.amount(p, check)
        type_ = p.type(large)
        if p.array:
            length = self.entry.array_length(p)
            if length:
                if p.kind in COUNT_KINDS:
                    check(VALUE, f"counts(Counts({name}), {length}, {quoted})")
                elif p.kind.endswith("_PI"):
                    check(VALUE, f"positive_counts(Counts({name}), {length}, {quoted})")
                else:
                    check(VALUE, f"array({name}, {length}, {quoted})")
            return f"Counts({name})"
        if p.direction == "in":
            if (self.entry.function.name.removeprefix("MPI_"), name) in SIGNED:
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
            self.declared.append(f"MPI_Count {name}_wide = {name} != nullptr ? *{name} : 0;")
        else:
            self.declared.append(f"MPI_Count {name}_wide = 0;")
        if self.entry.undefined_when_too_large:
            self.after.append(f"*{name} = check::narrow_or_undefined({name}_wide);")
        else:
            self.after.append(f"NEAR_CHECK(check::narrow({name}_wide, {quoted}, *{name}));")
        return f"{name}_wide"

    def other(self, p, check):
        f, name, quoted = self.entry.function, p.name, f'"{p.name}"'
        if p.array:
            if p.kind in ("STATUS", "WEIGHT", "ERROR_CODE", "STRING_2DARRAY", "STRING_ARRAY", "ARGUMENT_LIST"):
                return
            if p.kind == "STRING":
                check(VALUE, f"string({name}, {quoted})")
                return
            length = self.entry.array_length(p)
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
            if self.entry.null_function_refused:
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
        comm = f"*{self.entry.comm.name}_object" if self.entry.comm else None
        if p.name in self.entry.leader_only:
            return
        if p.kind in ("RANK", "TAG") and self.entry.function.short.startswith("Status_set"):
            return  # a program may store any number
        if p.kind == "RANK" and comm:
            which = {"dest": "destination", "source": "source", "root": "root"}.get(name, "member")
            check(ROOT, f"{which}({name}, {comm}, {quoted})")
        elif p.kind == "TAG":
            receives = name == "recvtag" or name == "tag" and "source" in self.entry.by_name
            check(VALUE, f"{'receive' if receives else 'send'}_tag({name}, {quoted})")
        elif p.kind in COUNT_KINDS:
            check(VALUE, f"count({name}, {quoted})")
            self.amount(p, check)
        elif p.kind in SIZE_KINDS:
            check(VALUE, f"{'count' if self.entry.counts_requests(p) else 'size'}({name}, {quoted})")
        elif p.kind in POSITIVE_KINDS:
            check(VALUE, f"positive({name}, {quoted})")
        elif p.kind == "COLOR":
            check(VALUE, f"color({name}, {quoted})")

    def matching_operation(self):
        operations = [p for p in self.entry.function.parameters if p.kind == "OPERATION" and p.direction == "in"]
        if operations and "datatype" in self.entry.by_name and "win" not in self.entry.by_name:
            # If neither side is used (the root is MPI_PROC_NULL on an intercommunicator), the pair is not checked.
            used = "send_used || recv_used" if self.entry.sides else None
            self.steps.append((MATCH, used, f"NEAR_CHECK(datatype::check_operation(*{operations[0].name}_object, "
                                            "*datatype_object));"))

    def absent(self, p):
        """The implementation's argument for a parameter that this form does not have (only the _c form has it)."""
        if p.array:
            return "nullptr"
        if p.direction == "out":
            self.declared.append(f"MPI_Count {p.name}_wide = 0;")
            return f"{p.name}_wide"
        return "0"

    def guard_of(self, p):
        if self.entry.unused_by_no_op(p):
            return "op != MPI_NO_OP"
        use, side = self.entry.use_of(p), self.entry.side_of(p)
        if use is None or use == "always":
            return None
        return f"{side}_used"
