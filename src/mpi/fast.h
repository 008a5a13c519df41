// The fast paths of MPI_Send, MPI_Isend, MPI_Recv and MPI_Irecv, which do what most small messages need and no more, and
// those of MPI_Pack and MPI_Unpack.
// An entry point tries its fast path first. The fast path declines, without having done anything, unless a
// few comparisons show that the call is valid and simple; the slow path then makes the call or reports the
// error.
//
// The comparisons: MPI is running, only one thread calls it, and this is not inside another call (Call::fast_line); the
// communicator is alive; the datatype is predefined and contiguous; destination or source is a rank of the communicator;
// the tag is not negative; the message fits into a slot; and p2p/fast.h accepts it. Sends have a second fast path for all
// other messages that are sent whole, and MPI_Recv has one for those that arrive whole.
#pragma once

#include "mpi/call.h"
#include "p2p/engine.h"
#include "p2p/fast.h"

namespace near::mpi::fast {

/// Whether the address may be a buffer of the program. The standard's special addresses are small numbers.
inline bool is_memory(const void* address) { return reinterpret_cast<std::uintptr_t>(address) >= 4096; }

/// Wakes a sleeping receiver, and renews the credits for fast sends. Returns MPI_SUCCESS, so that an entry
/// point can end with this call.
[[gnu::noinline]] int finish_small(transport::SendState& send_state);

/// Bounds counts, so that no multiplication by the size of a predefined datatype overflows.
inline constexpr MPI_Count most_elements = MPI_Count{1} << 48;

/// Whether the arguments of a send are valid and simple, and the message has at most `most` bytes. `size`
/// must not be 0.
template <class Count>
[[gnu::always_inline]] inline bool may_send(const void* buffer, Count count, std::uint64_t size,
                                            int destination, int tag,
                                            const object::Communicator* communicator, std::uint64_t most) {
  auto elements = static_cast<std::uint64_t>(count);
  // The product of an int and a byte cannot overflow; if the int is negative, it is a large number.
  bool overflows = sizeof count > sizeof(int) && elements > most;
  // Separate conditions: joined by ||, they compile to more instructions.
  if (communicator == nullptr) [[unlikely]]
    return false;
  if (static_cast<unsigned>(destination) >= static_cast<unsigned>(communicator->peers)) [[unlikely]]
    return false;
  if (tag < 0) [[unlikely]]
    return false;
  if (!is_memory(buffer) || overflows) [[unlikely]]
    return false;
  return elements * size <= most;
}

/// Sends the message, or makes the call by `decline()`. `request` receives the send's request; it is nullptr
/// for a blocking send. Rare cases are tail calls, so that no registers have to be saved for them.
template <class Count, class Decline>
[[gnu::always_inline]] inline int send(unsigned function, const void* buffer, Count count,
                                       MPI_Datatype datatype, int destination, int tag, MPI_Comm comm,
                                       MPI_Request* request, Decline decline) {
  segment::StateLine& line = Call::fast_line();
  if (line.function.load_relaxed() != 0) [[unlikely]]
    return decline();
  // Computed right where it is tested, so that the compiler does not merge it with anything else.
  std::uint64_t size = datatype::predefined_contiguous_size(datatype);
  if (size == 0) [[unlikely]]
    return decline();
  const object::Communicator* communicator = object::find_communicator(comm);
  std::uint64_t bytes = static_cast<std::uint64_t>(count) * size;
  if (!may_send(buffer, count, size, destination, tag, communicator, p2p::inline_bytes)) [[unlikely]]
    return decline();
  transport::SendState& send_state = p2p::states_of(*communicator, destination).send;
  if (send_state.lane.left() == 0) [[unlikely]]
    return decline();
  // Nothing fails from here on.
  if (request != nullptr) *request = p2p::sent_request;
  std::uint64_t context = communicator->context;
  int source = communicator->rank;
  line.function.store_relaxed(function);
  line.calls.bump_relaxed(1);
  Call::write_about(line, context, destination, tag, static_cast<MPI_Count>(bytes));
  p2p::send_small(send_state, context | p2p::user_channel, source, tag, buffer, bytes);
  line.function.store_relaxed(0);
  if (p2p::has_more_to_do(send_state)) [[unlikely]]
    return finish_small(send_state);
  return MPI_SUCCESS;
}

/// The committed datatype with this handle, or nullptr.
inline datatype::Datatype* find_type(MPI_Datatype handle) {
  datatype::Datatype* const type = datatype::find_datatype(handle);
  return type != nullptr && type->committed ? type : nullptr;
}

/// Marks the call as under way in the state line, and resets it even after an exception.
class Inside {
public:
  Inside(segment::StateLine& line, unsigned function) : line_(line) {
    line_.function.store_relaxed(function);
  }
  ~Inside() { line_.function.store_relaxed(0); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

private:
  segment::StateLine& line_;
};

/// The second fast path of sends, tried if the first one declines: for any message that is sent whole, over
/// any channel and with any datatype.
template <class Count>
inline bool send_whole(unsigned function, const void* buffer, Count count, MPI_Datatype datatype,
                       int destination, int tag, MPI_Comm comm, MPI_Request* request) {
  // If this process has requested a lane, only the slow path polls for the answer.
  segment::StateLine& line = Call::fast_line();
  if (line.function.load_relaxed() != 0 || transport::expects_answer()) return false;
  const object::Communicator* communicator = object::find_communicator(comm);
  datatype::Datatype* const type = find_type(datatype);
  MPI_Count bytes;
  if (type == nullptr || count < 0 ||
      __builtin_mul_overflow(static_cast<MPI_Count>(count), type->size, &bytes) ||
      !may_send(buffer, bytes, 1, destination, tag, communicator, transport::longest_eager()))
    return false;
  const Inside inside(line, function);
  Call::write_about(line, communicator->context, destination, tag, bytes);
  datatype::Buffer message{const_cast<void*>(buffer), count, type};
  transport::SendState& send_state = p2p::states_of(*communicator, destination).send;
  if (static_cast<std::uint64_t>(bytes) <= p2p::inline_bytes && send_state.lane.left() != 0) {
    p2p::send_small_by(send_state, communicator->context | p2p::user_channel, communicator->rank, tag,
                       static_cast<std::uint64_t>(bytes), [&](std::byte* to) {
                         datatype::pack_whole(const_cast<void*>(buffer), count, *type, to, bytes);
                       });
    line.calls.bump_relaxed(1);
    if (request != nullptr) *request = p2p::sent_request;
    if (p2p::has_more_to_do(send_state)) p2p::more_to_do(send_state);
    return true;
  }
  bool sent = p2p::send_at_once(message, destination, tag, *communicator);
  if (sent) [[likely]] {
    line.calls.bump_relaxed(1);
    if (request != nullptr) *request = p2p::sent_request;
  }
  return sent;
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int Send(unsigned function, const void* buf, Count count, MPI_Datatype datatype,
                                       int dest, int tag, MPI_Comm comm, Decline decline) {
  return send(function, buf, count, datatype, dest, tag, comm, nullptr, decline);
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int Isend(unsigned function, const void* buf, Count count,
                                        MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                                        MPI_Request* request, Decline decline) {
  if (request == nullptr) [[unlikely]]
    return decline();
  return send(function, buf, count, datatype, dest, tag, comm, request, decline);
}

namespace second {

template <class Count>
inline bool Send(unsigned function, const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                 MPI_Comm comm) {
  return send_whole(function, buf, count, datatype, dest, tag, comm, nullptr);
}

template <class Count>
inline bool Isend(unsigned function, const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  return request != nullptr && send_whole(function, buf, count, datatype, dest, tag, comm, request);
}

} // namespace second

template <class Count, class Decline>
[[gnu::always_inline]] inline int Irecv(unsigned function, void* buf, Count count, MPI_Datatype datatype,
                                        int source, int tag, MPI_Comm comm, MPI_Request* request,
                                        Decline decline) {
  segment::StateLine& line = Call::fast_line();
  if (request == nullptr || line.function.load_relaxed() != 0) [[unlikely]]
    return decline();
  std::uint64_t size = datatype::predefined_contiguous_size(datatype);
  if (size == 0) [[unlikely]]
    return decline();
  object::Communicator* communicator = object::find_communicator(comm);
  if (communicator == nullptr || count < 0 || count > most_elements || (tag < 0 && tag != MPI_ANY_TAG) ||
      static_cast<unsigned>(source) >= static_cast<unsigned>(communicator->peers) || !is_memory(buf))
      [[unlikely]]
    return decline();
  line.function.store_relaxed(function);
  p2p::Request* made = nullptr;
  Call::write_about(line, communicator->context, source, tag, count * static_cast<MPI_Count>(size));
  bool started = false;
  try {
    started = p2p::start_receive_inline({buf, count, datatype::find_predefined(datatype)}, source, tag,
                                        *communicator, made, object::Channel::user)
                  .ok();
  } catch (const std::exception&) {
    // Out of memory: the slow path reports it.
  }
  if (started) [[likely]] {
    line.calls.bump_relaxed(1);
    *request = p2p::public_handle(*made);
  }
  line.function.store_relaxed(0);
  return started ? MPI_SUCCESS : decline();
}

[[gnu::always_inline]] inline void set_status(MPI_Status* status, int source, int tag, std::uint64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  p2p::set_status_bytes(*status, static_cast<MPI_Count>(bytes));
  p2p::set_status_cancelled(*status, false);
}

template <class Decline>
[[gnu::always_inline]] inline int Recv(unsigned function, void* buf, MPI_Count count, MPI_Datatype datatype,
                                       int source, int tag, MPI_Comm comm, MPI_Status* status,
                                       Decline decline) {
  segment::StateLine& line = Call::fast_line();
  if (line.function.load_relaxed() != 0) [[unlikely]]
    return decline();
  std::uint64_t size = datatype::predefined_contiguous_size(datatype);
  if (size == 0) [[unlikely]]
    return decline();
  const object::Communicator* communicator = object::find_communicator(comm);
  if (communicator == nullptr || count < 0 || count > most_elements || (tag < 0 && tag != MPI_ANY_TAG) ||
      static_cast<unsigned>(source) >= static_cast<unsigned>(communicator->peers) || !is_memory(buf) ||
      !p2p::matching().idle()) [[unlikely]]
    return decline();
  line.function.store_relaxed(function);
  std::uint64_t capacity = static_cast<std::uint64_t>(count) * size;
  Call::write_about(line, communicator->context, source, tag, static_cast<MPI_Count>(capacity));
  transport::ReceiveState& receive_state = p2p::states_of(*communicator, source).receive;
  const auto* message = p2p::arrives(receive_state, communicator->context | p2p::user_channel, tag, capacity);
  if (message != nullptr) [[likely]] {
    line.calls.bump_relaxed(1);
    set_status(status, source, message->envelope.tag, message->envelope.bytes);
    p2p::receive_whole(receive_state, *message, buf);
  }
  line.function.store_relaxed(0);
  return message != nullptr ? MPI_SUCCESS : decline();
}

namespace second {

/// For a message that has arrived, or will soon arrive, into a buffer of a derived datatype.
template <class Count>
inline bool Recv(unsigned function, void* buf, Count count, MPI_Datatype datatype, int source, int tag,
                 MPI_Comm comm, MPI_Status* status) {
  segment::StateLine& line = Call::fast_line();
  // The first fast path has waited for messages of basic types.
  if (line.function.load_relaxed() != 0 || datatype::predefined_contiguous_size(datatype) != 0) return false;
  const object::Communicator* communicator = object::find_communicator(comm);
  datatype::Datatype* const type = find_type(datatype);
  MPI_Count capacity;
  if (communicator == nullptr || type == nullptr || count < 0 || (tag < 0 && tag != MPI_ANY_TAG) ||
      __builtin_mul_overflow(static_cast<MPI_Count>(count), type->size, &capacity) ||
      static_cast<unsigned>(source) >= static_cast<unsigned>(communicator->peers) || !is_memory(buf) ||
      !p2p::matching().idle())
    return false;
  const Inside inside(line, function);
  Call::write_about(line, communicator->context, source, tag, capacity);
  transport::ReceiveState& receive_state = p2p::states_of(*communicator, source).receive;
  const auto* message = p2p::arrives(receive_state, communicator->context | p2p::user_channel, tag,
                                     static_cast<std::uint64_t>(capacity));
  if (message == nullptr) return false;
  line.calls.bump_relaxed(1);
  set_status(status, source, message->envelope.tag, message->envelope.bytes);
  const datatype::Buffer buffer{buf, count, type};
  p2p::receive_whole(receive_state, *message, buffer);
  return true;
}

} // namespace second

/// The common part of MPI_Pack and MPI_Unpack: move(address, count, type, packed, bytes) moves the data between `strided` and
/// `packed`, which has `size` bytes.
template <class Count, class Byte, class Decline, class Move>
[[gnu::always_inline]] inline int repack(unsigned function, const void* strided, Count count,
                                         MPI_Datatype datatype, Byte* packed, Count size, Count* position,
                                         MPI_Comm comm, Decline decline, Move move) {
  segment::StateLine& line = Call::fast_line();
  if (line.function.load_relaxed() != 0 || position == nullptr) [[unlikely]]
    return decline();
  datatype::Datatype* const type = find_type(datatype);
  if (type == nullptr || object::find_communicator(comm) == nullptr) [[unlikely]]
    return decline();
  MPI_Count bytes = type->size;
  // One element, the common case, needs no multiplication.
  if (count != 1 && (count < 0 || __builtin_mul_overflow(static_cast<MPI_Count>(count), bytes, &bytes)))
      [[unlikely]]
    return decline();
  const Count at = *position;
  // As MPI_Count, since an int may not hold the difference. A negative size leaves no room for any bytes.
  MPI_Count room;
  if (at < 0 || __builtin_sub_overflow(MPI_Count{size}, MPI_Count{at}, &room) || bytes > room ||
      !is_memory(strided) || !is_memory(packed)) [[unlikely]]
    return decline();
  line.function.store_relaxed(function);
  line.calls.bump_relaxed(1);
  move(const_cast<void*>(strided), count, *type, packed + at, bytes);
  *position = static_cast<Count>(at + bytes);
  line.function.store_relaxed(0);
  return MPI_SUCCESS;
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int Pack(unsigned function, const void* inbuf, Count incount,
                                       MPI_Datatype datatype, void* outbuf, Count outsize, Count* position,
                                       MPI_Comm comm, Decline decline) {
  return repack(function, inbuf, incount, datatype, static_cast<std::byte*>(outbuf), outsize, position, comm,
                decline,
                [](void* address, MPI_Count count, datatype::Datatype& type, std::byte* packed,
                   MPI_Count bytes) { datatype::pack_whole(address, count, type, packed, bytes); });
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int Unpack(unsigned function, const void* inbuf, Count insize, Count* position,
                                         void* outbuf, Count outcount, MPI_Datatype datatype, MPI_Comm comm,
                                         Decline decline) {
  return repack(function, outbuf, outcount, datatype, static_cast<const std::byte*>(inbuf), insize, position,
                comm, decline,
                [](void* address, MPI_Count count, datatype::Datatype& type, const std::byte* packed,
                   MPI_Count bytes) { datatype::unpack_first(address, count, type, packed, bytes); });
}

} // namespace near::mpi::fast
