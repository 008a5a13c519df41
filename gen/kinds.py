"""Tables of parameter kinds: how the implementation declares a parameter of each kind, which validator of
src/mpi/check.h checks it, what is passed on, and what is written back after success."""

# Handles that refer to objects: C++ class, validator, null handle.
OBJECTS = {
    "COMMUNICATOR": ("Communicator", "communicator", "MPI_COMM_NULL"),
    "GROUP": ("Group", "group", "MPI_GROUP_NULL"),
    "DATATYPE": ("Datatype", "datatype", "MPI_DATATYPE_NULL"),
    "OPERATION": ("Operation", "operation", "MPI_OP_NULL"),
    "ERRHANDLER": ("ErrorHandler", "error_handler", "MPI_ERRHANDLER_NULL"),
    "INFO": ("Info", "info", "MPI_INFO_NULL"),
    "REQUEST": ("p2p::Request", "request", "MPI_REQUEST_NULL"),
    "MESSAGE": ("p2p::Message", "message", "MPI_MESSAGE_NULL"),
    "WINDOW": ("Window", "window", "MPI_WIN_NULL"),
}
# Handles whose objects are not implemented yet, with their null handles. They are passed unchanged.
BARE_HANDLES = {"FILE": "MPI_FILE_NULL", "SESSION": "MPI_SESSION_NULL"}

# Counts of elements (MPI_ERR_COUNT) and sizes (MPI_ERR_ARG) that must not be negative.
COUNT_KINDS = {"POLYXFER_NUM_ELEM_NNI", "POLYXFER_NUM_ELEM", "POLYDTYPE_NUM_ELEM_NNI", "POLYDTYPE_NUM_ELEM",
               "XFER_NUM_ELEM_NNI", "XFER_NUM_ELEM"}
SIZE_KINDS = {"ARRAY_LENGTH", "ARRAY_LENGTH_NNI", "POLYNUM_BYTES_NNI", "POLYNUM_PARAM_VALUES",
              "POLYDTYPE_PACK_SIZE", "ALLOC_MEM_NUM_BYTES", "INFO_VALUE_LENGTH", "NUM_DIMS", "DEGREE", "PARTITION"}
POSITIVE_KINDS = {"ARRAY_LENGTH_PI", "COMM_SIZE_PI"}
# Collectives with a block of `count` elements for each process (or neighbour), and the sides that have blocks.
BLOCKS = {"Gather": {"recv"}, "Scatter": {"send"}, "Allgather": {"recv"}, "Alltoall": {"send", "recv"},
          "Reduce_scatter_block": {"recv"}, "Neighbor_allgather": {"recv"}, "Neighbor_alltoall": {"send", "recv"}}
# With MPI_NO_OP the origin buffer, count and datatype are ignored (MPI 5.0, 12.3.4).
UNUSED_BY_NO_OP = {"Get_accumulate", "Rget_accumulate"}
# Signed element counts: a stride may be negative.
SIGNED = {("Type_vector", "stride")}

RECEIVING = {"source", "recvtag", "sendtag"}


def base_name(short):
    """The blocking form of a nonblocking or persistent collective: Igather, Gather_init -> Gather."""
    name = short.removesuffix("_init")
    if name.startswith("I") and name[1:2].islower():
        name = name[1].upper() + name[2:]
    return name
