// Names of datatypes; those of communicators are in communicator.cpp. Source: MPI 5.0, section 7.8.
#include "mpi/name.h"

#include "mpi/impl.h"

namespace near::mpi::impl {

Result Type_get_name(Datatype* datatype, char* type_name, int* resultlen) {
  give_name(datatype != nullptr ? datatype->name : "MPI_DATATYPE_NULL", type_name, resultlen);
  return {};
}

Result Type_set_name(Datatype& datatype, const char* type_name) {
  keep_name(datatype.name, type_name);
  return {};
}

} // namespace near::mpi::impl
