// Validators for each kind of argument, called by the generated entry points before the implementation. The
// check itself is inline; a cold function writes the message, without the name of the MPI function, which
// Call::raise adds. Each takes the value, then the parameter's name in the standard.
#pragma once

#include "base/checked.h"
#include "datatype/counts.h"
#include "datatype/operation.h"
#include "mpi/call.h"
#include "p2p/p2p.h"

namespace near::mpi::check {

using datatype::Counts;
using datatype::Datatype;
using datatype::Operation;
using object::Communicator;
using object::ErrorHandler;
using object::Group;
using object::Info;
using object::Window;

enum Null : bool { refuse_null = false, allow_null = true };
enum State : bool { any_state = false, committed_only = true };

// Messages. `handle` is passed as a number.
[[gnu::cold]] Result bad_handle(int error_class, const char* kind, const char* null_name,
                                std::uintptr_t null_value, std::uintptr_t handle, const char* name);
[[gnu::cold]] Result bad_number(int error_class, MPI_Count value, const char* name, const char* rule);
[[gnu::cold]] Result bad_element(int error_class, MPI_Count index, MPI_Count value, const char* name,
                                 const char* rule);
[[gnu::cold]] Result too_many(MPI_Count count, MPI_Count blocks, const Datatype& type, const char* name);
[[gnu::cold]] Result bad_rank(int rank, const Communicator& communicator, const char* name);
[[gnu::cold]] Result bad_root(int root, const Communicator& communicator);
[[gnu::cold]] Result bad_group_rank(int rank, MPI_Count index, const Group& group, const char* name);
[[gnu::cold]] Result bad_tag(int tag, const char* name, bool receives);
[[gnu::cold]] Result bad_pointer(int error_class, const char* name, const char* rule);
[[gnu::cold]] Result bad_buffer(const void* buffer, MPI_Count count, const Datatype& type, const char* name);
[[gnu::cold]] Result not_committed(const Datatype& type, const char* name);
[[gnu::cold]] Result is_predefined(const char* name, const object::Object& object);
[[gnu::cold]] Result no_topology(const Communicator& communicator);
[[gnu::cold]] Result does_not_fit(MPI_Count value, const char* name);

template <class H>
std::uintptr_t bits(H handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

// Handles to objects

inline Result communicator(MPI_Comm handle, const char* name, Communicator*& found) {
  found = object::find_communicator(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_COMM, "communicator", "MPI_COMM_NULL", bits(MPI_COMM_NULL), bits(handle), name);
}
inline Communicator* communicator_or_null(MPI_Comm handle) { return object::find_communicator(handle); }

inline Result group(MPI_Group handle, const char* name, Group*& found) {
  found = object::find_group(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_GROUP, "group", "MPI_GROUP_NULL", bits(MPI_GROUP_NULL), bits(handle), name);
}

inline Group* group_or_null(MPI_Group handle) { return object::find_group(handle); }

inline Result datatype(MPI_Datatype handle, const char* name, Datatype*& found) {
  found = near::datatype::find_datatype(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_TYPE, "datatype", "MPI_DATATYPE_NULL", bits(MPI_DATATYPE_NULL), bits(handle),
                    name);
}
inline Result committed(MPI_Datatype handle, const char* name, Datatype*& found) {
  if (Result bad = datatype(handle, name, found); !bad.ok()) [[unlikely]]
    return bad;
  if (found->committed) [[likely]]
    return {};
  return not_committed(*found, name);
}
/// A committed datatype of a message. Accepts MPI_DATATYPE_NULL if the message has no elements and goes to
/// MPI_PROC_NULL (`to_nobody`), as other libraries do.
inline Result committed_or_null(MPI_Datatype handle, bool to_nobody, const char* name, Datatype*& found) {
  Result bad = committed(handle, name, found);
  if (bad.ok()) [[likely]]
    return {};
  if (!to_nobody || handle != MPI_DATATYPE_NULL) return bad;
  found = near::datatype::find_datatype(MPI_BYTE);
  return {};
}
/// Checks each of `n` datatypes; also fails if the array is missing.
Result datatypes(const MPI_Datatype* handles, MPI_Count n, const char* name, State state);

inline Result operation(MPI_Op handle, const char* name, Operation*& found) {
  found = near::datatype::find_operation(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_OP, "operation", "MPI_OP_NULL", bits(MPI_OP_NULL), bits(handle), name);
}

inline Result error_handler(MPI_Errhandler handle, const char* name, ErrorHandler*& found) {
  found = object::find_error_handler(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_ERRHANDLER, "error handler", "MPI_ERRHANDLER_NULL", bits(MPI_ERRHANDLER_NULL),
                    bits(handle), name);
}

inline Result window(MPI_Win handle, const char* name, Window*& found) {
  found = object::find_window(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_WIN, "window", "MPI_WIN_NULL", bits(MPI_WIN_NULL), bits(handle), name);
}

inline Result info(MPI_Info handle, const char* name, Info*& found) {
  found = object::find_info(handle);
  if (found != nullptr) [[likely]]
    return {};
  return bad_handle(MPI_ERR_INFO, "info object", "MPI_INFO_NULL", bits(MPI_INFO_NULL), bits(handle), name);
}
inline Result info_or_null(MPI_Info handle, const char* name, Info*& found) {
  if (handle == MPI_INFO_NULL) return {};
  return info(handle, name, found);
}

/// Also makes failures run the error handler of the request's communicator.
inline Result request(Call& call, MPI_Request handle, const char* name, Null null) {
  if (p2p::Request* found = p2p::find_request(handle)) [[likely]] {
    if (found->communicator != nullptr)
      call.on(*found->communicator);
    else if (handle == p2p::sent_request) // nothing keeps the communicator of such a send
      call.on_valid(MPI_COMM_WORLD);
    return {};
  }
  if (handle == MPI_REQUEST_NULL && null == allow_null) return {};
  return bad_handle(MPI_ERR_REQUEST, "request", "MPI_REQUEST_NULL", bits(MPI_REQUEST_NULL), bits(handle),
                    name);
}
Result requests(Call& call, const MPI_Request* handles, MPI_Count n, const char* name, Null null);

/// Also makes failures run the error handler of the message's communicator.
inline Result message(Call& call, MPI_Message handle, const char* name) {
  if (p2p::Message* found = p2p::find_message(handle)) [[likely]] {
    call.on(*found->communicator);
    return {};
  }
  if (handle == MPI_MESSAGE_NO_PROC) return {};
  return bad_handle(MPI_ERR_REQUEST, "message", "MPI_MESSAGE_NULL", bits(MPI_MESSAGE_NULL), bits(handle),
                    name);
}

inline Result not_predefined(const object::Object& object, const char* name) {
  if (!object.predefined) [[likely]]
    return {};
  return is_predefined(name, object);
}

/// The public handle of a new object, or the null handle.
template <class T, class H>
H publish(const T* made, H null) {
  return made != nullptr ? public_handle(*made) : null;
}

// Numbers

inline Result count(MPI_Count value, const char* name) {
  if (value >= 0) [[likely]]
    return {};
  return bad_number(MPI_ERR_COUNT, value, name, "must not be negative");
}
inline Result size(MPI_Count value, const char* name) {
  if (value >= 0) [[likely]]
    return {};
  return bad_number(MPI_ERR_ARG, value, name, "must not be negative");
}
inline Result positive(MPI_Count value, const char* name) {
  if (value > 0) [[likely]]
    return {};
  return bad_number(MPI_ERR_ARG, value, name, "must be positive");
}
inline Result color(int value, const char* name) {
  if (value >= 0 || value == MPI_UNDEFINED) [[likely]]
    return {};
  return bad_number(MPI_ERR_ARG, value, name, "must not be negative, unless it is MPI_UNDEFINED");
}
/// Checks each of `n` counts; also fails if the array is missing.
Result counts(Counts values, MPI_Count n, const char* name);
Result positive_counts(Counts values, MPI_Count n, const char* name);

/// Checks that MPI_Count can hold the size of `n` elements in bytes. Later multiplications rely on this.
inline Result amount(MPI_Count n, const Datatype& type, const char* name) {
  if (MPI_Count bytes = 0; base::checked_multiply(n, type.size, bytes)) [[likely]]
    return {};
  return too_many(n, 1, type, name);
}
/// Like amount(), for `blocks` times `n` elements.
inline Result amount(MPI_Count n, MPI_Count blocks, const Datatype& type, const char* name) {
  if (MPI_Count bytes = 0;
      base::checked_multiply(n, type.size, bytes) && base::checked_multiply(bytes, blocks, bytes)) [[likely]]
    return {};
  return too_many(n, blocks, type, name);
}
/// Like amount(), for each of `n` counts and for their sum. Counts and datatypes must have been checked
/// before.
Result amounts(Counts values, MPI_Count n, const Datatype& type, const char* name);
Result amounts(Counts values, MPI_Count n, const MPI_Datatype* types, const char* name);

inline bool within(int rank, int size) { return static_cast<unsigned>(rank) < static_cast<unsigned>(size); }

inline Result destination(int rank, const Communicator& communicator, const char* name) {
  if (within(rank, communicator.peers) || rank == MPI_PROC_NULL) [[likely]]
    return {};
  return bad_rank(rank, communicator, name);
}
inline Result source(int rank, const Communicator& communicator, const char* name) {
  if (within(rank, communicator.peers) || rank == MPI_PROC_NULL || rank == MPI_ANY_SOURCE) [[likely]]
    return {};
  return bad_rank(rank, communicator, name);
}
inline Result member(int rank, const Communicator& communicator, const char* name) {
  if (within(rank, communicator.size)) [[likely]]
    return {};
  return bad_rank(rank, communicator, name);
}
/// A root: a rank, or, on an intercommunicator, MPI_ROOT, MPI_PROC_NULL or a rank of the other group.
inline Result root(int rank, const Communicator& communicator, const char*) {
  if (within(rank, communicator.peers)) [[likely]]
    return {};
  if (communicator.is_inter() && (rank == MPI_ROOT || rank == MPI_PROC_NULL)) return {};
  return bad_root(rank, communicator);
}
Result group_ranks(const int* ranks, MPI_Count n, const Group& group, const char* name, Null null);

inline Result send_tag(int tag, const char* name) {
  if (tag >= 0) [[likely]]
    return {};
  return bad_tag(tag, name, false);
}
inline Result receive_tag(int tag, const char* name) {
  if (tag >= 0 || tag == MPI_ANY_TAG) [[likely]]
    return {};
  return bad_tag(tag, name, true);
}

// Which side of a collective this process is on

/// Whether this process is one of those that send to (or receive from) the root. The root itself is one,
/// unless its buffer is MPI_IN_PLACE.
inline bool leaf_side(int root, const Communicator& communicator, const void* buffer) {
  if (communicator.is_inter()) return root >= 0;
  return !(root == communicator.rank && buffer == MPI_IN_PLACE);
}
/// Whether this process is the root.
inline bool root_side(int root, const Communicator& communicator) {
  return communicator.is_inter() ? root == MPI_ROOT : root == communicator.rank;
}

/// Whether the communicator has a topology of any kind.
inline Result topology(const Communicator& communicator) {
  if (communicator.topology != nullptr) [[likely]]
    return {};
  return no_topology(communicator);
}
/// The number of neighbours of this process in the communicator's topology.
inline MPI_Count in_degree(const Communicator& communicator) {
  return std::ssize(communicator.topology->sources);
}
inline MPI_Count out_degree(const Communicator& communicator) {
  return std::ssize(communicator.topology->destinations);
}

// Pointers

inline Result output(const void* pointer, const char* name) {
  if (pointer != nullptr) [[likely]]
    return {};
  return bad_pointer(MPI_ERR_ARG, name, "must not be a null pointer");
}
inline Result string(const char* pointer, const char* name) { return output(pointer, name); }
template <class F>
Result function(F* pointer, const char* name) {
  if (pointer != nullptr) [[likely]]
    return {};
  return bad_pointer(MPI_ERR_ARG, name, "must not be a null pointer");
}
inline Result array(const void* pointer, MPI_Count n, const char* name) {
  if (pointer != nullptr || n <= 0) [[likely]]
    return {};
  return bad_pointer(MPI_ERR_ARG, name, "must not be a null pointer when it has elements");
}

/// A message buffer. A null address is MPI_BOTTOM, which is valid only with a derived datatype of absolute
/// addresses.
inline Result buffer(const void* address, MPI_Count n, const Datatype& type, const char* name) {
  if (bits(address) > bits(MPI_BUFFER_AUTOMATIC)) [[likely]]
    return {};
  if (address == nullptr && (n == 0 || type.size == 0 || !type.predefined)) return {};
  return bad_buffer(address, n, type, name);
}
inline Result buffer_or_in_place(const void* address, MPI_Count n, const Datatype& type, const char* name) {
  return address == MPI_IN_PLACE ? Result() : buffer(address, n, type, name);
}
/// A buffer with an array of counts: the only error that can be detected is an MPI_IN_PLACE that is not
/// allowed.
inline Result placed(const void* address, const char* name) {
  if (address != MPI_IN_PLACE) [[likely]]
    return {};
  return bad_pointer(MPI_ERR_BUFFER, name, "must not be MPI_IN_PLACE here");
}
/// A buffer of `n` bytes.
inline Result bytes(const void* address, MPI_Count n, const char* name) {
  if (bits(address) > bits(MPI_BUFFER_AUTOMATIC) || (address == nullptr && n == 0)) [[likely]]
    return {};
  return bad_pointer(MPI_ERR_BUFFER, name, "is not the address of a buffer");
}

// Results of the int forms

inline Result narrow(MPI_Count value, const char* name, int& result) {
  result = static_cast<int>(value);
  if (result == value) [[likely]]
    return {};
  return does_not_fit(value, name);
}
inline int narrow_or_undefined(MPI_Count value) {
  return static_cast<int>(value) == value ? static_cast<int>(value) : MPI_UNDEFINED;
}

} // namespace near::mpi::check
