"""Writes the invalid-argument test: a C program that calls every implemented function once for each wrong value of each
parameter, with valid values of the others, and expects the error class of that kind. It runs as a single process.

The expected classes are derived from the kinds independently of the checks in the entry points."""

from entry import Entry
from kinds import BARE_HANDLES, COUNT_KINDS, SIGNED, SIZE_KINDS

# Functions that cannot be called here, or not in this way.
LEFT_OUT = {"Init", "Init_thread", "Finalize", "Abort"}
# Handles: type, a valid handle, the null handle, error class, name of a freed handle.
HANDLES = {
    "COMMUNICATOR": ("MPI_Comm", "comm", "MPI_COMM_NULL", "MPI_ERR_COMM", "freed_comm"),
    "GROUP": ("MPI_Group", "group", "MPI_GROUP_NULL", "MPI_ERR_GROUP", "freed_group"),
    "DATATYPE": ("MPI_Datatype", "MPI_INT", "MPI_DATATYPE_NULL", "MPI_ERR_TYPE", "freed_type"),
    "OPERATION": ("MPI_Op", "MPI_SUM", "MPI_OP_NULL", "MPI_ERR_OP", "freed_op"),
    "ERRHANDLER": ("MPI_Errhandler", "MPI_ERRORS_RETURN", "MPI_ERRHANDLER_NULL", "MPI_ERR_ERRHANDLER",
                   "freed_errhandler"),
    "INFO": ("MPI_Info", "info", "MPI_INFO_NULL", "MPI_ERR_INFO", "freed_info"),
    "REQUEST": ("MPI_Request", "MPI_REQUEST_NULL", "MPI_REQUEST_NULL", "MPI_ERR_REQUEST", "freed_request"),
    "MESSAGE": ("MPI_Message", "MPI_MESSAGE_NO_PROC", "MPI_MESSAGE_NULL", "MPI_ERR_REQUEST", None),
    "FILE": ("MPI_File", "MPI_FILE_NULL", None, "MPI_ERR_FILE", None),
    "WINDOW": ("MPI_Win", "win", "MPI_WIN_NULL", "MPI_ERR_WIN", "freed_win"),
    "SESSION": ("MPI_Session", "MPI_SESSION_NULL", None, "MPI_ERR_SESSION", None),
}
GARBAGE = ("0", "1", "0x7fffffffffff0", "~0ull", "0x44000123", "0x7fffffff")
TEXT_KINDS = {"STRING"}
FREE_POINTERS = {"EXTRA_STATE", "EXTRA_STATE2", "ATTRIBUTE_VAL", "ATTRIBUTE_VAL_10"}
INT = {"int": "ints", "MPI_Count": "counts", "MPI_Aint": "aints"}


# Wrong numbers in calls that make or synchronise windows, with their error classes.
WINDOW_NUMBERS = {
    "WINDOW_SIZE": ("-1", "MPI_ERR_SIZE"),
    "POLYRMA_DISPLACEMENT": ("0", "MPI_ERR_DISP"),
    "RMA_DISPLACEMENT_NNI": ("-1", "MPI_ERR_DISP"),
    "LOCK_TYPE": ("77", "MPI_ERR_LOCKTYPE"),
    "ASSERT": ("1 << 30", "MPI_ERR_ASSERT"),
}


# The size of so many elements of MPI_INT is 2^63 + 4 bytes.
TOO_MANY = "(1LL << 61) + 1"


class Cases:
    """The wrong values for one form of a function."""

    def __init__(self, entry, large):
        self.entry, self.large = entry, large
        self.function = entry.function

    def base_type(self, p):
        return p.type(self.large).replace("const ", "").replace("*", "").strip()

    def good(self, p):
        """A valid argument for this parameter."""
        type_ = p.type(self.large)
        if p.kind in HANDLES:
            c_type, value, *_ = HANDLES[p.kind]
            if p.array:
                return f"{c_type}_array"
            if p is self.entry.comm and self.entry.neighbours:
                return "grid"
            if p.kind == "REQUEST" and "*" not in type_ and self.entry.null_request_refused:
                return "partitioned_receive" if self.function.short == "Parrived" else "partitioned_send"
            return f"&{c_type}_variable" if "*" in type_ else value
        if p.kind in ("FUNCTION", "POLYFUNCTION"):
            return f"({type_})any_function"
        if p.kind == "VARARGS":
            return None
        if p.kind == "STATUS":
            return "statuses"
        if p.kind == "STRING":
            return '"external32"' if p.name == "datarep" else "text" if p.direction == "out" else '"key"'
        if p.array == "[][3]":
            return "ranges"
        if p.kind in ("RANK", "INDEX") and p.array and p.direction == "in":
            return "zeros"
        if p.array:
            return INT.get(self.base_type(p), "space") if p.direction != "out" else f"out_{self.base_type(p)}"
        if p.kind in ("KEYVAL",) and "*" not in type_:
            return "keyval"
        if type_.endswith("*"):
            return "space" if "void" in type_ else f"out_{self.base_type(p)}"
        if p.kind == "COMM_SIZE":
            return "1"
        if p.kind == "LOCK_TYPE":
            return "MPI_LOCK_SHARED"
        if p.kind == "POLYRMA_DISPLACEMENT":
            return "1"
        if p.name == "logical_size":
            return "4"
        if p.kind in ("POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE"):
            return "4096"
        return "1" if p.kind in COUNT_KINDS or p.kind in SIZE_KINDS or p.kind.endswith("_PI") else "0"

    def wrong(self, p):
        """Yields (what is wrong, argument, expected class)."""
        entry, type_ = self.entry, p.type(self.large)
        pointer = "*" in type_
        if p.kind in BARE_HANDLES:
            if not pointer:
                for value in GARBAGE:
                    yield value, f"({type_}){value}", HANDLES[p.kind][3]
            else:
                yield "a null pointer", "0", "MPI_ERR_ARG"
        elif p.kind in HANDLES:
            yield from self.wrong_handles(p)
        elif p.kind == "BUFFER":
            yield from self.wrong_buffer(p)
        elif p.kind in ("FUNCTION", "POLYFUNCTION"):
            if entry.null_function_refused:
                yield "a null pointer", "0", "MPI_ERR_ARG"
        elif p.kind in ("STATUS",):
            if p.direction != "out":
                yield "a null pointer", "0", "MPI_ERR_ARG"
        elif p.array or pointer:
            yield from self.wrong_pointer(p)
        else:
            yield from self.wrong_number(p)

    def counts_data(self, p):
        """Whether this is a count of the _c form for the elements of a buffer."""
        rest = self.function.parameters[self.function.parameters.index(p) + 1:]
        kinds = {q.kind for q in self.function.parameters}
        return self.base_type(p) == "MPI_Count" and "BUFFER" in kinds and any(q.kind == "DATATYPE" for q in rest)

    def wrong_handles(self, p):
        c_type, _, null, error_class, freed = HANDLES[p.kind]
        entry = self.entry
        if "*" in p.type(self.large) and not p.array:
            yield "a null pointer", "0", "MPI_ERR_ARG"
        if p.direction == "out" and not p.array:
            return
        if p.name in entry.leader_only:
            return
        if p.array and p.direction == "out":
            return
        values = [(v, f"({c_type}){v}") for v in GARBAGE]
        null_allowed = p.kind == "INFO" and not (entry.null_info_refused or p.direction == "inout") or \
            p.kind == "REQUEST" and not entry.null_request_refused or entry.null_named
        if not null_allowed:
            values.append((null, null))
        if freed:
            values.append(("a freed handle", freed))
        if p.kind == "DATATYPE" and not entry.uncommitted:
            values.append(("an uncommitted type", "uncommitted"))
        for what, value in values:
            if p.array:
                yield what, f"({c_type}[8]){{{value}}}", error_class
            elif "*" in p.type(self.large):
                yield what, f"&({c_type}){{{value}}}", error_class
            else:
                yield what, value, error_class
        predefined = {"COMMUNICATOR": "MPI_COMM_WORLD", "DATATYPE": "MPI_INT", "OPERATION": "MPI_SUM",
                      "INFO": "MPI_INFO_ENV"}.get(p.kind)
        if p is entry.comm and entry.neighbours:
            yield "no topology", "comm", "MPI_ERR_TOPOLOGY"
        if entry.frees and predefined and "*" in p.type(self.large):
            yield "a predefined handle", f"&({c_type}){{{predefined}}}", error_class

    def wrong_buffer(self, p):
        entry = self.entry
        if entry.function.short in ("Free_mem",) or p.name == "buffer" and "attach" in entry.function.short:
            return
        following = entry.function.parameters[entry.function.parameters.index(p) + 1:]
        counted = [q for q in following if q.kind in COUNT_KINDS or q.kind in ("POLYNUM_BYTES_NNI",
                                                                               "POLYDTYPE_PACK_SIZE")]
        if not counted:
            return
        sided = entry.use_of(p) in ("leaf", "placed")
        in_place = sided or entry.may_be_in_place and p.name == "sendbuf"
        if not counted[0].array:
            yield "a null pointer", "0", "MPI_ERR_BUFFER"
        if not in_place:
            yield "MPI_IN_PLACE", "MPI_IN_PLACE", "MPI_ERR_BUFFER"

    def wrong_pointer(self, p):
        entry = self.entry
        if p.kind in FREE_POINTERS and p.direction == "in" or p.kind in ("ARGUMENT_COUNT", "ARGUMENT_LIST", "WEIGHT"):
            return
        if p.kind == "STRING" and p.direction == "out" and entry.function.short == "Info_get_string":
            return
        if p.array and p.kind not in TEXT_KINDS and entry.array_length(p) is None:
            return
        if p.kind in COUNT_KINDS or p.kind.endswith("_PI"):
            error_class = "MPI_ERR_COUNT" if p.kind in COUNT_KINDS else "MPI_ERR_ARG"
            c_type = self.base_type(p)
            if p.direction == "in":
                yield "negative", f"({c_type}[8]){{-1}}", error_class
            if p.kind in COUNT_KINDS and p.direction == "in" and self.counts_data(p):
                yield "too large", f"({c_type}[8]){{{TOO_MANY}}}", "MPI_ERR_COUNT"
        yield "a null pointer", "0", "MPI_ERR_ARG"

    def wrong_number(self, p):
        entry, short = self.entry, self.entry.function.short
        if p.name in entry.leader_only or p.kind in ("RANK", "TAG") and short.startswith("Status_set"):
            return
        if (short, p.name) in SIGNED:
            return
        if p.kind == "RANK" and entry.comm:
            error_class = "MPI_ERR_ROOT" if p.name == "root" else "MPI_ERR_RANK"
            for value in ("99", "-77", "MPI_ANY_SOURCE" if p.name != "source" else "MPI_ROOT"):
                yield value, value, error_class
        elif p.kind == "TAG":
            yield "-55", "-55", "MPI_ERR_TAG"
            if "source" not in entry.by_name or p.name == "sendtag":
                yield "MPI_ANY_TAG", "MPI_ANY_TAG", "MPI_ERR_TAG"
        elif p.kind in COUNT_KINDS:
            yield "-1", "-1", "MPI_ERR_COUNT"
            if self.counts_data(p):
                yield TOO_MANY, TOO_MANY, "MPI_ERR_COUNT"
        elif p.kind in SIZE_KINDS:
            of_requests = any(q.kind == "REQUEST" and q.length == p.name for q in self.function.parameters)
            yield "-1", "-1", "MPI_ERR_COUNT" if of_requests else "MPI_ERR_ARG"
        elif p.kind.endswith("_PI"):
            yield "0", "0", "MPI_ERR_ARG"
        elif p.kind == "COLOR":
            yield "-1", "-1", "MPI_ERR_ARG"
        elif p.kind == "RANK_NNI" and entry.win:
            for value in ("99", "-77"):
                yield value, value, "MPI_ERR_RANK"
        elif p.kind in WINDOW_NUMBERS:
            value, error_class = WINDOW_NUMBERS[p.kind]
            yield value, value, error_class
        elif p.kind == "KEYVAL":
            yield "0", "0", "MPI_ERR_KEYVAL"
            yield "-1", "-1", "MPI_ERR_KEYVAL"
            yield "123456", "123456", "MPI_ERR_KEYVAL"


HEAD = """\
/* Every implemented function with every kind of wrong argument. Generated by gen/generate.py; do not edit. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Comm comm, freed_comm, grid;
static MPI_Group group, freed_group;
static MPI_Datatype uncommitted, freed_type;
static MPI_Op freed_op;
static MPI_Errhandler freed_errhandler;
static MPI_Info info, freed_info;
static MPI_Request freed_request, partitioned_send, partitioned_receive;
static int keyval;
static char space[1 << 16], text[1 << 14];
static MPI_Status statuses[8];
static int ints[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out_int[64];
static int zeros[8];
static MPI_Count counts[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out_MPI_Count[64];
static MPI_Aint aints[8], out_MPI_Aint[64];
static MPI_Offset out_MPI_Offset[8];
static char out_char[1 << 14];
static int ranges[8][3];
static MPI_Comm MPI_Comm_variable;
static MPI_Group MPI_Group_variable;
static MPI_Datatype MPI_Datatype_variable, MPI_Datatype_array[64];
static MPI_Op MPI_Op_variable;
static MPI_Errhandler MPI_Errhandler_variable;
static MPI_Info MPI_Info_variable, MPI_Info_array[8];
static MPI_Request MPI_Request_variable, MPI_Request_array[8];
static MPI_Message MPI_Message_variable;
static MPI_File MPI_File_variable;
static MPI_Win MPI_Win_variable, win, freed_win;
static MPI_Session MPI_Session_variable;

static int any_function(void) { return MPI_SUCCESS; }
static void reduce(void* in, void* out, int* n, MPI_Datatype* type) {
  (void)in, (void)out, (void)n, (void)type;
}
static void handle(MPI_Comm* c, int* code, ...) { (void)c, (void)code; }

static void prepare(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  comm = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &freed_comm);
  MPI_Comm c = freed_comm;
  MPI_Comm_free(&c);
  MPI_Cart_create(MPI_COMM_WORLD, 1, ints, ints, 0, &grid);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &freed_group);
  MPI_Group g = freed_group;
  MPI_Group_free(&g);
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_Type_contiguous(2, MPI_INT, &freed_type);
  MPI_Datatype t = freed_type;
  MPI_Type_free(&t);
  MPI_Op_create(reduce, 1, &freed_op);
  MPI_Op o = freed_op;
  MPI_Op_free(&o);
  MPI_Comm_create_errhandler(handle, &freed_errhandler);
  MPI_Errhandler e = freed_errhandler;
  MPI_Errhandler_free(&e);
  MPI_Info_create(&info);
  MPI_Info_create(&freed_info);
  MPI_Info i = freed_info;
  MPI_Info_free(&i);
  MPI_Irecv(ints, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &freed_request);
  MPI_Request r = freed_request;
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  void* base;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &freed_win);
  MPI_Win w = freed_win;
  MPI_Win_free(&w);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, win);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, 0);
  MPI_Psend_init(ints, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &partitioned_send);
  MPI_Precv_init(ints, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &partitioned_receive);
}

/* Resets the variables that an earlier call may have set. */
static void refresh(void) {
  MPI_Comm_variable = MPI_COMM_NULL;
  MPI_Group_variable = MPI_GROUP_NULL;
  MPI_Datatype_variable = MPI_INT;
  MPI_Op_variable = MPI_OP_NULL;
  MPI_Errhandler_variable = MPI_ERRHANDLER_NULL;
  MPI_Info_variable = MPI_INFO_NULL;
  MPI_Request_variable = MPI_REQUEST_NULL;
  MPI_Message_variable = MPI_MESSAGE_NO_PROC;
  MPI_File_variable = MPI_FILE_NULL;
  MPI_Win_variable = MPI_WIN_NULL;
  MPI_Session_variable = MPI_SESSION_NULL;
  for (int i = 0; i < 8; ++i) {
    MPI_Request_array[i] = MPI_REQUEST_NULL;
    MPI_Datatype_array[i] = MPI_INT;
    MPI_Info_array[i] = MPI_INFO_NULL;
  }
}

static int cases, wrong;
static void judge(const char* call, const char* what, int code, int expected) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  ++cases;
  if (error_class == expected) return;
  ++wrong;
  printf("%s with %s gave class %d, expected %d\\n", call, what, error_class, expected);
}

#define CASE(name, what, expected, call)                                                                   \\
  refresh();                                                                                               \\
  if (getenv("VERBOSE")) printf("%s with %s\\n", name, what), fflush(stdout);                               \\
  judge(name, what, call, expected)

"""


def invalid_c(surface, done):
    parts, calls = [HEAD], []
    for function, large in surface.forms():
        if function.short not in done or function.short in LEFT_OUT or function.returns != "int":
            continue
        entry = Entry(function, surface)
        if entry.plain or entry.tool:
            continue
        cases = Cases(entry, large)
        name = function.form_name(large)
        parameters = [p for p in function.form_parameters(large) if p.kind != "VARARGS"]
        lines = []
        for p in parameters:
            for what, value, error_class in cases.wrong(p):
                arguments = ", ".join(value if q is p else cases.good(q) for q in parameters)
                lines.append(f'  CASE("{name}", "{p.name} {what}", {error_class}, {name}({arguments}));')
        if lines:
            parts.append(f"static void test_{name}(void) {{\n" + "\n".join(lines) + "\n}\n")
            calls.append(f"  test_{name}();")
    parts.append("int main(int argc, char** argv) {\n  MPI_Init(&argc, &argv);\n  prepare();\n" + "\n".join(calls) +
                 '\n  printf("%d cases, %d wrong\\n", cases, wrong);\n  MPI_Finalize();\n  return wrong != 0;\n}\n')
    return "\n".join(parts)
