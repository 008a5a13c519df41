// Conversion between handles and integers. A cast suffices, since every handle is a number that fits in a
// positive int (object/handle.h). Source: MPI 5.0, section 20.4, and 19.3.4 for MPI_File_c2f and
// MPI_File_f2c.
#include "mpi/impl.h"

namespace near::mpi::impl {

namespace {

template <class H>
int number_of(H handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
}

/// A negative number becomes a handle that belongs to no object, so that its use is detected.
template <class H>
H handle_of(int number) {
  return reinterpret_cast<H>(static_cast<std::uintptr_t>(static_cast<unsigned>(number)));
}

} // namespace

int Comm_toint(MPI_Comm comm) { return number_of(comm); }
MPI_Comm Comm_fromint(int comm) { return handle_of<MPI_Comm>(comm); }

int Errhandler_toint(MPI_Errhandler errhandler) { return number_of(errhandler); }
MPI_Errhandler Errhandler_fromint(int errhandler) { return handle_of<MPI_Errhandler>(errhandler); }

int File_toint(MPI_File file) { return number_of(file); }
MPI_File File_fromint(int file) { return handle_of<MPI_File>(file); }

int Group_toint(MPI_Group group) { return number_of(group); }
MPI_Group Group_fromint(int group) { return handle_of<MPI_Group>(group); }

int Info_toint(MPI_Info info) { return number_of(info); }
MPI_Info Info_fromint(int info) { return handle_of<MPI_Info>(info); }

int Message_toint(MPI_Message message) { return number_of(message); }
MPI_Message Message_fromint(int message) { return handle_of<MPI_Message>(message); }

int Op_toint(MPI_Op op) { return number_of(op); }
MPI_Op Op_fromint(int op) { return handle_of<MPI_Op>(op); }

int Request_toint(MPI_Request request) { return number_of(request); }
MPI_Request Request_fromint(int request) { return handle_of<MPI_Request>(request); }

int Session_toint(MPI_Session session) { return number_of(session); }
MPI_Session Session_fromint(int session) { return handle_of<MPI_Session>(session); }

int Type_toint(MPI_Datatype datatype) { return number_of(datatype); }
MPI_Datatype Type_fromint(int datatype) { return handle_of<MPI_Datatype>(datatype); }

int Win_toint(MPI_Win win) { return number_of(win); }
MPI_Win Win_fromint(int win) { return handle_of<MPI_Win>(win); }

MPI_Fint File_c2f(MPI_File file) { return number_of(file); }
MPI_File File_f2c(MPI_Fint file) { return handle_of<MPI_File>(file); }

} // namespace near::mpi::impl
