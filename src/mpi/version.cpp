// Queries about this library and this machine. Source: MPI 5.0, sections 9.1 and 9.6.
#include "comm/hardware.h"
#include "mpi/impl.h"
#include "os/clock.h"
#include "os/process.h"
#include "transport/transport.h"

#include <cstring>

namespace near::mpi::impl {

namespace {

/// Copies `text` with its terminator into a user's array of `capacity` characters. Returns the length of the
/// copied text.
int copy_out(std::string_view text, char* out, std::size_t capacity) {
  std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
  return static_cast<int>(length);
}

} // namespace

Result Get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return {};
}

Result Get_library_version(char* version, int* resultlen) {
  *resultlen = copy_out("NearMPI " NEAR_VERSION " (MPI 5.0 standard ABI 1.0)", version,
                        MPI_MAX_LIBRARY_VERSION_STRING);
  return {};
}

Result Get_processor_name(char* name, int* resultlen) {
  *resultlen = copy_out(os::machine_name(), name, MPI_MAX_PROCESSOR_NAME);
  return {};
}

Result Get_hw_resource_info(Info*& hw_info) {
  hw_info = object::make_info();
  if (hw_info == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for an info object");
  // "true" if this process is restricted to one such part; MPI_Comm_split_type can split by these parts.
  hw_info->set("mpi_shared_memory", "true");
  hw_info->set(comm::machine_resource, "true");
  segment::Location location = transport::own_location();
  for (const auto& resource : comm::resources())
    hw_info->set(resource.name, location.*resource.part != segment::Location::several ? "true" : "false");
  return {};
}

double Wtime() { return static_cast<double>(os::monotonic_ns()) * 1e-9; }

double Wtick() { return 1e-9; }

Result Pcontrol(int) { return {}; }

} // namespace near::mpi::impl
