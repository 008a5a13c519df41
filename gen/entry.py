"""What the generators need to know of one function: what api/extra.json lists about it, and queries about its
parameters.
"""

import fnmatch

from kinds import BARE_HANDLES, BLOCKS, OBJECTS, UNUSED_BY_NO_OP, base_name


class Entry:
    """One function, whose entry points and implementation are generated."""

    def __init__(self, function, surface):
        self.function = function
        extra = surface.extra

        def listed(key):
            return any(fnmatch.fnmatchcase(function.short, name) for name in extra[key]["names"])

        self.plain = listed("plain")
        self.any_time = listed("any_time")
        self.in_children = listed("in_children")
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
        self.neighbours = self.collective is not None and base.startswith("Neighbor_")
        self.sides = extra["sides"].get(base, {})
        self.may_be_in_place = base in extra["in_place"]["names"]
        self.by_name = {p.name: p for p in function.parameters}
        comms = [p for p in function.parameters if p.kind == "COMMUNICATOR" and p.direction == "in"]
        self.comm = comms[0] if comms else None
        self.win = next((p for p in function.parameters if p.kind == "WINDOW" and p.direction == "in"), None)
        self.tool = function.short.startswith("T_")
        self.files = function.chapter == 14 or any(p.kind == "FILE" for p in function.parameters)

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
        if self.neighbours:
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
        if self.neighbours:
            return f"check::{'out' if count.name.startswith('s') else 'in'}_degree(*{comm})"
        return f"{comm}->{'size' if base == 'Reduce_scatter_block' else 'peers'}"

    def counts_requests(self, p):
        """Whether this length counts requests; the standard then calls it a count."""
        return any(q.kind == "REQUEST" and q.length == p.name for q in self.function.parameters)

    def spares_predefined(self):
        """Whether freeing a predefined object does nothing. Other calls return such objects, so it is allowed."""
        return self.function.short in ("Group_free", "Errhandler_free")

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
