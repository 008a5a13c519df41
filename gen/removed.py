"""The functions that MPI 3.0 removed, as inline functions of mpi.h.

Old programs still call them (HPL's HPL_packL, for example), and MPICH and Open MPI still have them. They are not in
the standard ABI, so the library exports none of them: each calls its replacement, and the program that results runs
with every library of the ABI. A program that defines one as a macro before it includes mpi.h keeps its own; one that
defines functions of these names itself says NEAR_NO_REMOVED_FUNCTIONS before.
"""

# Name, parameters, and what it returns.
CALLS = [
    ("MPI_Address", "const void* location, MPI_Aint* address", "MPI_Get_address(location, address)"),
    ("MPI_Errhandler_create", "MPI_Handler_function* function, MPI_Errhandler* errhandler",
     "MPI_Comm_create_errhandler(function, errhandler)"),
    ("MPI_Errhandler_get", "MPI_Comm comm, MPI_Errhandler* errhandler", "MPI_Comm_get_errhandler(comm, errhandler)"),
    ("MPI_Errhandler_set", "MPI_Comm comm, MPI_Errhandler errhandler", "MPI_Comm_set_errhandler(comm, errhandler)"),
    ("MPI_Type_hindexed",
     "int count, const int lengths[], const MPI_Aint displacements[], MPI_Datatype oldtype, MPI_Datatype* newtype",
     "MPI_Type_create_hindexed(count, lengths, displacements, oldtype, newtype)"),
    ("MPI_Type_hvector", "int count, int length, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype",
     "MPI_Type_create_hvector(count, length, stride, oldtype, newtype)"),
    ("MPI_Type_struct",
     "int count, const int lengths[], const MPI_Aint displacements[], const MPI_Datatype types[], MPI_Datatype* newtype",
     "MPI_Type_create_struct(count, lengths, displacements, types, newtype)"),
]

# Name, the part of the extent that it returns in its argument of that name, and that part's value.
PARTS_OF_EXTENTS = [
    ("MPI_Type_extent", "extent", "whole"),
    ("MPI_Type_lb", "displacement", "lower"),
    ("MPI_Type_ub", "displacement", "lower + whole"),
]


def inline_function(name, parameters, body):
    return [f"#ifndef {name}", f"static __inline__ int {name}({parameters}) {{", *(f"  {line}" for line in body), "}",
            "#endif"]


def block():
    lines = ["/* Removed in MPI 3.0; not in the ABI, so each calls its replacement. Programs that define functions of these",
             "   names themselves can define NEAR_NO_REMOVED_FUNCTIONS. */",
             "#ifndef NEAR_NO_REMOVED_FUNCTIONS",
             "#ifndef MPI_Handler_function", "typedef MPI_Comm_errhandler_function MPI_Handler_function;", "#endif"]
    for name, parameters, call in CALLS:
        lines += inline_function(name, parameters, [f"return {call};"])
    for name, argument, value in PARTS_OF_EXTENTS:
        lines += inline_function(name, f"MPI_Datatype datatype, MPI_Aint* {argument}", [
            "MPI_Aint lower = 0, whole = 0;",
            "int error = MPI_Type_get_extent(datatype, &lower, &whole);",
            f"if (error == MPI_SUCCESS) *{argument} = {value};",
            "return error;"])
    lines.append("#endif")
    return lines
