// The cold half of check.h: the messages about wrong arguments, and the checks of whole arrays.
#include "mpi/check.h"

#include "p2p/engine.h"

#include "object/communicator.h"

#include <limits>

namespace near::mpi::check {

using base::fail;
using object::describe;

namespace {

/// "count is -1", which begins most messages.
std::string value_of(MPI_Count value, const char* name) { return base::format("{} is {}", name, value); }

/// "counts[2]". Only for messages: after an element's check has failed, it runs again with this name.
std::string element(const char* name, MPI_Count index) { return base::format("{}[{}]", name, index); }

/// "an operation", "a group".
std::string one(const char* kind) {
  return base::format("{} {}", std::string_view("aeiou").find(*kind) != std::string_view::npos ? "an" : "a",
                      kind);
}

/// "communicator ocean"; describe() itself adds the word if the communicator has no name.
std::string noun(const Communicator& communicator) {
  return (communicator.name.empty() ? "" : "communicator ") + describe(communicator);
}

} // namespace

Result bad_handle(int error_class, const char* kind, const char* null_name, std::uintptr_t null_value,
                  std::uintptr_t handle, const char* name) {
  if (handle == null_value) return fail(error_class, "{} is {}, but must be {}", name, null_name, one(kind));
  if (handle == 0)
    return fail(error_class, "{} is 0, which is not a valid {} (a handle that was never set?)", name, kind);
  return fail(error_class, "{} is {:#x}, which is not a valid {} (freed already, or never made?)", name,
              handle, kind);
}

Result bad_number(int error_class, MPI_Count value, const char* name, const char* rule) {
  return fail(error_class, "{}, but {}", value_of(value, name), rule);
}

Result bad_element(int error_class, MPI_Count index, MPI_Count value, const char* name, const char* rule) {
  return fail(error_class, "{}[{}] is {}, but {}", name, index, value, rule);
}

Result too_many(MPI_Count count, MPI_Count blocks, const Datatype& type, const char* name) {
  std::string each = blocks == 1 ? "" : base::format(" for each of {} blocks", blocks);
  return fail(MPI_ERR_COUNT,
              "{}{}, and {} has {} bytes: together more than the {} bytes that MPI_Count can count",
              value_of(count, name), each, near::datatype::describe(type), type.size,
              std::numeric_limits<MPI_Count>::max());
}

Result bad_rank(int rank, const Communicator& communicator, const char* name) {
  if (rank == MPI_ANY_SOURCE) return fail(MPI_ERR_RANK, "{} is MPI_ANY_SOURCE, but must be one rank", name);
  if (rank == MPI_PROC_NULL) return fail(MPI_ERR_RANK, "{} is MPI_PROC_NULL, but must be a rank", name);
  return fail(MPI_ERR_RANK, "rank {} is outside {} of size {} (argument {})", rank, noun(communicator),
              communicator.peers, name);
}

Result bad_root(int root, const Communicator& communicator) {
  return fail(MPI_ERR_ROOT, "root {} is outside {} of size {}", root, noun(communicator), communicator.peers);
}

Result bad_group_rank(int rank, MPI_Count index, const Group& group, const char* name) {
  return fail(MPI_ERR_RANK, "{}[{}] is {}, which is outside a group of size {}", name, index, rank,
              group.size());
}

Result bad_tag(int tag, const char* name, bool receives) {
  if (tag == MPI_ANY_TAG) return fail(MPI_ERR_TAG, "{} is MPI_ANY_TAG, but must be one tag", name);
  return fail(MPI_ERR_TAG, "{} is {}, but must not be negative{}", name, tag,
              receives ? ", unless it is MPI_ANY_TAG" : "");
}

Result bad_pointer(int error_class, const char* name, const char* rule) {
  return fail(error_class, "{} {}", name, rule);
}

Result bad_buffer(const void* buffer, MPI_Count count, const Datatype& type, const char* name) {
  if (buffer == MPI_IN_PLACE)
    return fail(MPI_ERR_BUFFER, "{} is MPI_IN_PLACE, which has no meaning here", name);
  if (buffer == MPI_BUFFER_AUTOMATIC)
    return fail(MPI_ERR_BUFFER, "{} is MPI_BUFFER_AUTOMATIC, which has no meaning here", name);
  return fail(MPI_ERR_BUFFER, "{} is a null pointer, but must point to {} elements of {}", name, count,
              near::datatype::describe(type));
}

Result not_committed(const Datatype& type, const char* name) {
  return fail(MPI_ERR_TYPE, "{} is {}, which is not committed (MPI_Type_commit)", name,
              near::datatype::describe(type));
}

Result is_predefined(const char* name, const object::Object& object) {
  int error_class = MPI_ERR_ARG;
  std::string which = base::format("the predefined object {:#x}", object.handle);
  switch (object.kind) {
  case object::Kind::communicator:
    error_class = MPI_ERR_COMM;
    which = object.handle == bits(MPI_COMM_WORLD) ? "MPI_COMM_WORLD" : "MPI_COMM_SELF";
    break;
  case object::Kind::datatype:
    error_class = MPI_ERR_TYPE;
    which = near::datatype::describe(static_cast<const Datatype&>(object));
    break;
  case object::Kind::operation:
    error_class = MPI_ERR_OP;
    which = near::datatype::describe(static_cast<const Operation&>(object));
    break;
  case object::Kind::info:
    error_class = MPI_ERR_INFO;
    which = "MPI_INFO_ENV";
    break;
  default: break;
  }
  return fail(error_class, "{} is {}, which is predefined and cannot be freed", name, which);
}

Result no_topology(const Communicator& communicator) {
  return fail(MPI_ERR_TOPOLOGY, "{} {} no topology, so its processes have no neighbours",
              describe(communicator), communicator.is_inter() ? "is an intercommunicator and has" : "has");
}

Result does_not_fit(MPI_Count value, const char* name) {
  return fail(MPI_ERR_VALUE_TOO_LARGE,
              "{} would be {}, which does not fit an int; use the function's _c form", name, value);
}

Result datatypes(const MPI_Datatype* handles, MPI_Count n, const char* name, State state) {
  NEAR_TRY(array(handles, n, name));
  for (MPI_Count i = 0; i < n; ++i) {
    auto check_one = [&](const char* called) {
      Datatype* found = nullptr;
      return state == committed_only ? committed(handles[i], called, found)
                                     : datatype(handles[i], called, found);
    };
    if (!check_one(name).ok()) return check_one(element(name, i).c_str());
  }
  return {};
}

Result requests(Call& call, const MPI_Request* handles, MPI_Count n, const char* name, Null null) {
  NEAR_TRY(array(handles, n, name));
  // Programs that poll pass hundreds of requests again and again, so the loop only finds them. The last one that has a
  // communicator then decides whose error handler runs.
  MPI_Count decides = -1;
  for (MPI_Count i = 0; i < n; ++i) {
    if (const p2p::Request* found = p2p::requests().find(reinterpret_cast<std::uintptr_t>(handles[i])))
        [[likely]] {
      if (found->communicator != nullptr || handles[i] == p2p::sent_request) decides = i;
    } else if (handles[i] != MPI_REQUEST_NULL || null != allow_null) {
      if (decides >= 0) (void)request(call, handles[decides], name, null);
      return request(call, handles[i], element(name, i).c_str(), null);
    }
  }
  if (decides >= 0) (void)request(call, handles[decides], name, null);
  return {};
}

Result counts(Counts values, MPI_Count n, const char* name) {
  if (values.empty()) return array(nullptr, n, name);
  for (MPI_Count i = 0; i < n; ++i)
    if (values[i] < 0) return bad_element(MPI_ERR_COUNT, i, values[i], name, "must not be negative");
  return {};
}

Result positive_counts(Counts values, MPI_Count n, const char* name) {
  if (values.empty()) return array(nullptr, n, name);
  for (MPI_Count i = 0; i < n; ++i)
    if (values[i] <= 0) return bad_element(MPI_ERR_ARG, i, values[i], name, "must be positive");
  return {};
}

namespace {

template <class TypeAt>
Result sum_of_amounts(Counts values, MPI_Count n, TypeAt type_at, const char* name) {
  MPI_Count sum = 0;
  for (MPI_Count i = 0; i < n; ++i) {
    const Datatype& type = type_at(i);
    MPI_Count bytes = 0;
    if (base::checked_multiply(values[i], type.size, bytes) && base::checked_add(sum, bytes, sum)) continue;
    return too_many(values[i], 1, type, element(name, i).c_str());
  }
  return {};
}

} // namespace

Result amounts(Counts values, MPI_Count n, const Datatype& type, const char* name) {
  return sum_of_amounts(values, n, [at = &type](MPI_Count) -> const Datatype& { return *at; }, name);
}

Result amounts(Counts values, MPI_Count n, const MPI_Datatype* types, const char* name) {
  auto type_at = [types](MPI_Count i) -> const Datatype& { return *near::datatype::find_datatype(types[i]); };
  return sum_of_amounts(values, n, type_at, name);
}

Result group_ranks(const int* ranks, MPI_Count n, const Group& group, const char* name, Null null) {
  NEAR_TRY(array(ranks, n, name));
  for (MPI_Count i = 0; i < n; ++i)
    if (!within(ranks[i], group.size()) && !(null == allow_null && ranks[i] == MPI_PROC_NULL))
      return bad_group_rank(ranks[i], i, group, name);
  return {};
}

} // namespace near::mpi::check
