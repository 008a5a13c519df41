"""A wrong program ends with one readable line: rank, function, argument, value and error class."""

import re

import harness
import pytest

# Name of the mistake in wrong.c: (error class, number of the class, text that the line must contain).
MISTAKES = {
    "bad_rank": ("MPI_ERR_RANK", 6, r"MPI_Send: rank 7 is outside communicator MPI_COMM_WORLD of size 4"),
    "bad_count": ("MPI_ERR_COUNT", 2, r"MPI_Send: count is -1"),
    "too_many_bytes": ("MPI_ERR_COUNT", 2, r"MPI_Send_c: count is 2305843009213693953, and MPI_DOUBLE has 8 bytes"),
    "bad_tag": ("MPI_ERR_TAG", 4, r"MPI_Send: tag is -7"),
    "bad_root": ("MPI_ERR_ROOT", 8, r"MPI_Bcast: root 4 is outside communicator MPI_COMM_WORLD of size 4"),
    "null_buffer": ("MPI_ERR_BUFFER", 1, r"MPI_Send: buf is a null pointer.*MPI_INT"),
    "truncation": ("MPI_ERR_TRUNCATE", 15, r"MPI_Recv: .*16 bytes.*4 bytes"),
    "mismatched_communicator": ("MPI_ERR_COMM", 5, r"MPI_Barrier: comm is 0x209, which is not a valid communicator"),
    "null_communicator": ("MPI_ERR_COMM", 5, r"MPI_Barrier: comm is MPI_COMM_NULL"),
    "double_free_of_communicator": ("MPI_ERR_COMM", 5, r"MPI_Comm_free: comm is 0x[0-9a-f]+.*freed already"),
    "double_free_of_datatype": ("MPI_ERR_TYPE", 3, r"MPI_Type_free: datatype is 0x[0-9a-f]+.*freed already"),
    "double_wait": ("MPI_ERR_REQUEST", 7, r"MPI_Wait: request is 0x[0-9a-f]+.*freed already"),
    "uncommitted_type": ("MPI_ERR_TYPE", 3, r"MPI_Send: datatype is datatype 0x[0-9a-f]+, which is not committed"),
    "freed_predefined": ("MPI_ERR_TYPE", 3, r"MPI_Type_free: datatype is MPI_INT, which is predefined"),
    "operation_without_meaning": ("MPI_ERR_OP", 10, r"MPI_Allreduce: .*MPI_BAND.*MPI_FLOAT"),
    "null_operation": ("MPI_ERR_OP", 10, r"MPI_Allreduce: op is MPI_OP_NULL, but must be an operation"),
    "null_error_handler": ("MPI_ERR_ERRHANDLER", 61, r".*is MPI_ERRHANDLER_NULL, but must be an error handler"),
    "coordinates_of_nobody": ("MPI_ERR_RANK", 6, r"MPI_Cart_coords: rank 9 is outside communicator 0x\w+ of size 4"),
    "struct_of_nothing": ("MPI_ERR_TYPE", 3, r"MPI_Type_create_struct: array_of_types\[1\] is MPI_DATATYPE_NULL, but "
                          r"must be a datatype"),
    "freed_world": ("MPI_ERR_COMM", 5, r"MPI_Comm_free: comm is MPI_COMM_WORLD, which is predefined"),
    "freed_operation": ("MPI_ERR_OP", 10, r"MPI_Op_free: op is MPI_SUM, which is predefined"),
    "buffer_nowhere": ("MPI_ERR_BUFFER", 1, r"MPI_Buffer_attach: buffer is a null pointer, but its size is 100"),
    "negative_requests": ("MPI_ERR_COUNT", 2, r"MPI_Waitall: count is -1, but must not be negative"),
    "huge_grid": ("MPI_ERR_DIMS", 12, r"MPI_Cart_create: the grid needs more than 2147483647 processes, and "
                  r"MPI_COMM_WORLD has 4"),
    "second_init": ("MPI_ERR_OTHER", 16, r"MPI_Init: called a second time"),
    "not_there_yet": ("MPI_ERR_UNSUPPORTED_OPERATION", 55, r"MPI_Comm_accept: not part of NearMPI"),
    "unknown_thread_level": ("MPI_ERR_ARG", 13, r"MPI_Init_thread: required is 7, but must be MPI_THREAD_SINGLE"),
    "before_init": ("MPI_ERR_OTHER", 16, r"MPI_Comm_rank: called before MPI_Init"),
    "after_finalize": ("MPI_ERR_OTHER", 16, r"MPI_Barrier: called after MPI_Finalize"),
}
SOURCE = harness.ROOT / "test/surface/wrong.c"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_program_gets_one_readable_line(mistake, compile_c, mpiexec):
    name, number, says = MISTAKES[mistake]
    result = mpiexec(4, [compile_c(SOURCE), mistake], timeout=30)
    lines = result.err.splitlines()
    if mistake not in ("before_init", "unknown_thread_level"):  # without a segment, ranks cannot agree which one prints
        assert len(lines) == 1, result.report()
    assert re.match(r"near: (rank \d+: )?error: .*" + says + rf".* \({name}\)$", lines[0]), result.report()
    assert result.status == number, result.report()


def test_a_single_process_gets_the_same_line(compile_c, nothing_left):
    result = nothing_left([compile_c(SOURCE), "bad_rank"])
    assert result.status == 6, result.report()
    assert "MPI_Send: rank 4 is outside communicator MPI_COMM_WORLD of size 1" in result.err, result.report()
