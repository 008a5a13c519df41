// Queries about datatypes and how they were made; commit and free. Source: MPI 5.0, sections 5.1.5 to 5.1.13.
#include "mpi/impl.h"

#include <algorithm>

namespace near::mpi::impl {
namespace {

Result check_capacity(const char* what, MPI_Count capacity, std::size_t needed) {
  if (capacity >= 0 && static_cast<std::size_t>(capacity) >= needed) return {};
  return base::fail(MPI_ERR_ARG, "{} is {}, but the datatype has {}", what, capacity, needed);
}

/// Fails if the type was constructed with large counts, which the int forms cannot return (MPI 5.0, 5.1.13).
Result check_form(const Datatype& type, bool large) {
  if (large || type.envelope.counts.empty()) return {};
  return base::fail(MPI_ERR_TYPE, "{} was made with large counts; use the _c form of this function",
                    describe(type));
}

} // namespace

Result Type_commit(Datatype& datatype) { return commit(datatype); }

Result Type_free(Datatype& datatype) { return free_type(datatype); }

Result Type_size(Datatype& datatype, MPI_Count& size) {
  size = datatype.size;
  return {};
}

Result Type_size_x(Datatype& datatype, MPI_Count* size) {
  *size = datatype.size;
  return {};
}

Result Type_get_extent(Datatype& datatype, MPI_Count& lb, MPI_Count& extent) {
  lb = datatype.lb;
  extent = datatype.extent;
  return {};
}

Result Type_get_extent_x(Datatype& datatype, MPI_Count* lb, MPI_Count* extent) {
  return Type_get_extent(datatype, *lb, *extent);
}

Result Type_get_true_extent(Datatype& datatype, MPI_Count& true_lb, MPI_Count& true_extent) {
  true_lb = datatype.true_lb;
  true_extent = datatype.true_extent;
  return {};
}

Result Type_get_true_extent_x(Datatype& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return Type_get_true_extent(datatype, *true_lb, *true_extent);
}

Result Type_get_envelope(Datatype& datatype, MPI_Count& num_integers, MPI_Count& num_addresses,
                         MPI_Count& num_large_counts, MPI_Count& num_datatypes, int* combiner, bool large) {
  NEAR_TRY(check_form(datatype, large));
  const datatype::Envelope& envelope = datatype.envelope;
  num_integers = static_cast<MPI_Count>(envelope.integers.size());
  num_addresses = static_cast<MPI_Count>(envelope.addresses.size());
  num_large_counts = static_cast<MPI_Count>(envelope.counts.size());
  num_datatypes = static_cast<MPI_Count>(envelope.types.size());
  *combiner = envelope.combiner;
  return {};
}

Result Type_get_contents(Datatype& datatype, MPI_Count max_integers, MPI_Count max_addresses,
                         MPI_Count max_large_counts, MPI_Count max_datatypes, int* array_of_integers,
                         MPI_Aint* array_of_addresses, MPI_Count* array_of_large_counts,
                         MPI_Datatype* array_of_datatypes, bool large) {
  const datatype::Envelope& envelope = datatype.envelope;
  if (envelope.combiner == MPI_COMBINER_NAMED)
    return base::fail(MPI_ERR_TYPE, "{} is predefined and has no contents", describe(datatype));
  NEAR_TRY(check_form(datatype, large));
  NEAR_TRY(check_capacity("max_integers", max_integers, envelope.integers.size()));
  NEAR_TRY(check_capacity("max_addresses", max_addresses, envelope.addresses.size()));
  if (large) NEAR_TRY(check_capacity("max_large_counts", max_large_counts, envelope.counts.size()));
  NEAR_TRY(check_capacity("max_datatypes", max_datatypes, envelope.types.size()));
  std::copy(envelope.integers.begin(), envelope.integers.end(), array_of_integers);
  std::copy(envelope.addresses.begin(), envelope.addresses.end(), array_of_addresses);
  if (large) std::copy(envelope.counts.begin(), envelope.counts.end(), array_of_large_counts);
  for (std::size_t i = 0; i < envelope.types.size(); ++i)
    array_of_datatypes[i] = public_handle(*give_handle(*envelope.types[i]));
  return {};
}

Result Get_count(const MPI_Status* status, Datatype& datatype, MPI_Count& count) {
  MPI_Count bytes = p2p::status_bytes(*status);
  if (datatype.size == 0)
    count = bytes == 0 ? 0 : MPI_UNDEFINED;
  else
    count = bytes % datatype.size == 0 ? bytes / datatype.size : MPI_UNDEFINED;
  return {};
}

Result Get_elements(const MPI_Status* status, Datatype& datatype, MPI_Count& count) {
  count = elements_in(datatype, p2p::status_bytes(*status));
  return {};
}

Result Get_elements_x(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
  return Get_elements(status, datatype, *count);
}

} // namespace near::mpi::impl
