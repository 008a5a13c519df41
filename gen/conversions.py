"""The conversions between handles and Fortran's integers, MPI_Comm_c2f and so on, as inline functions of mpi.h.

Programs in C call them where Fortran may call them (LAMMPS and PETSc, for example). The standard ABI leaves them to a Fortran
library, but has the same conversions between handles and int, so each calls one of these, and the program that results runs
with every library of the ABI. Those of files are in the ABI. A program that defines one as a macro before it includes mpi.h
keeps its own; one that defines functions of these names itself says NEAR_NO_FORTRAN_CONVERSIONS before.

Source: MPI 5.0, section 19.3.4, by which they may be macros, and 20.4.
"""

# The word in the functions' names, and the type of the handle.
HANDLES = [(name, f"MPI_{name}") for name in ("Comm", "Errhandler", "Group", "Info", "Message", "Op", "Request", "Session")]
HANDLES += [("Type", "MPI_Datatype"), ("Win", "MPI_Win")]


def block():
    lines = ["/* Handles and integers of Fortran. Not in the ABI, so each calls a conversion that is. Programs that define functions",
             "   of these names themselves can define NEAR_NO_FORTRAN_CONVERSIONS. */",
             "#ifndef NEAR_NO_FORTRAN_CONVERSIONS"]
    for name, handle in HANDLES:
        for form in ("MPI", "PMPI"):
            lines += [f"#ifndef {form}_{name}_c2f",
                      f"static __inline__ MPI_Fint {form}_{name}_c2f({handle} handle) {{ return {form}_{name}_toint(handle); }}", "#endif",
                      f"#ifndef {form}_{name}_f2c",
                      f"static __inline__ {handle} {form}_{name}_f2c(MPI_Fint handle) {{ return {form}_{name}_fromint(handle); }}", "#endif"]
    lines.append("#endif")
    return lines
