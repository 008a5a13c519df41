// Access to memory over the plain transport: requests that the owner of the memory carries out when it makes progress.
//
//   origin                                              owner
//   put:    done; request with the bytes  ----------->  writes them
//   get, atomic:  request  --------------------------->  reads, or changes a word
//   get, atomic:  done; flush() may be true  <---------  answer: error class, bytes that were read
//
// So, as on a network, puts complete at the origin before they complete at the target, gets complete after
// their calls have returned, and memory must be registered.
#include "socket_state.h"

#include <algorithm>

namespace near::test::sockets {

namespace {

using transport::Access;
using transport::AtomicOperation;
using transport::MemoryKey;

/// The head of a request's payload, followed by `runs` runs of the owner's memory and the bytes of a put.
struct Request {
  std::uint64_t registration = 0; ///< its number at the owner
  std::uint64_t runs = 0;
  AtomicOperation operation;
};

std::size_t total(std::span<const os::Run> runs) {
  std::size_t bytes = 0;
  for (const os::Run& run : runs) bytes += run.bytes;
  return bytes;
}

void append(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  to.insert(to.end(), begin, begin + bytes);
}

std::vector<std::byte> gather(std::span<const os::Run> runs) {
  std::vector<std::byte> bytes;
  for (const os::Run& run : runs) append(bytes, run.address, run.bytes);
  return bytes;
}

void scatter(std::span<const os::Run> runs, const std::byte* bytes) {
  for (const os::Run& run : runs) {
    std::memcpy(run.address, bytes, run.bytes);
    bytes += run.bytes;
  }
}

/// Sends a request; its answer completes `under_way`.
void ask(Peer& peer, What what, const MemoryKey& key, std::span<const os::Run> theirs,
         const AtomicOperation& operation, std::span<const os::Run> bytes, AccessUnderWay under_way) {
  const Request request{key.words[0], theirs.size(), operation};
  std::vector<std::byte> payload;
  append(payload, &request, sizeof request);
  append(payload, theirs.data(), theirs.size_bytes());
  for (const os::Run& run : bytes) append(payload, run.address, run.bytes);
  const std::uint64_t number = peer.next_access++;
  peer.accesses[number] = std::move(under_way);
  put_frame(peer, {what, static_cast<std::uint32_t>(payload.size()), {}, number}, payload);
  write_out(peer);
}

/// Returns whether an access to this peer's memory can begin; otherwise completes it with an error.
bool can_begin(const Peer& peer, const MemoryKey& key, Access& access) {
  const bool registered = key.words[0] != 0, there = !peer.closed && !peer.deaf;
  if (registered && there) return true;
  access.done(access, registered ? MPI_ERR_PROC_ABORTED : MPI_ERR_UNSUPPORTED_OPERATION);
  return false;
}

bool is_registered(std::uint64_t number, std::span<const os::Run> runs) {
  const auto found = state().registered.find(number);
  if (found == state().registered.end()) return false;
  const os::Run& whole = found->second;
  return std::all_of(runs.begin(), runs.end(), [&](const os::Run& run) {
    const std::size_t at = static_cast<std::size_t>(static_cast<std::byte*>(run.address) -
                                                    static_cast<std::byte*>(whole.address));
    return at <= whole.bytes && run.bytes <= whole.bytes - at;
  });
}

/// Carries out a request for access to this process's memory and stores the bytes that were read in `answer`.
int serve(What what, const std::byte* payload, std::vector<std::byte>& answer) {
  Request request;
  std::memcpy(&request, payload, sizeof request);
  std::vector<os::Run> runs(request.runs);
  std::memcpy(runs.data(), payload + sizeof request, request.runs * sizeof(os::Run));
  if (!is_registered(request.registration, runs)) return MPI_ERR_RMA_RANGE;
  if (what == What::put) {
    scatter(runs, payload + sizeof request + request.runs * sizeof(os::Run));
  } else if (what == What::get) {
    answer = gather(runs);
  } else {
    const std::uint64_t before = transport::change_own_word(runs[0].address, request.operation);
    append(answer, &before, request.operation.bytes);
  }
  return MPI_SUCCESS;
}

} // namespace

Result register_memory(void* address, std::size_t bytes, copy::MemoryKind kind,
                       transport::Registration& made) {
  if (!copy::can_copy(kind)) return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "not memory of this kind");
  const std::uint64_t number = state().next_registration++;
  state().registered[number] = {address, bytes};
  made = {.key = {{number}}, .handle = number};
  return {};
}

void deregister_memory(const transport::Registration& registration) {
  state().registered.erase(registration.handle);
}

transport::Capabilities capabilities(transport::Peer&, const MemoryKey& key) {
  const bool registered = key.words[0] != 0;
  return {.copies = registered, .atomics = registered};
}

void get(transport::Peer& from, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  if (can_begin(own(from), key, access))
    ask(own(from), What::get, key, theirs, {}, {}, {&access, {mine.begin(), mine.end()}});
}

void put(transport::Peer& to, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  if (!can_begin(own(to), key, access)) return;
  ask(own(to), What::put, key, theirs, {}, mine, {});
  access.done(access, MPI_SUCCESS); // the bytes have been packed
}

void apply_atomic(transport::Peer& at, const MemoryKey& key, std::uint64_t address,
                  const AtomicOperation& operation, Access& access) {
  if (!can_begin(own(at), key, access)) return;
  const os::Run word{reinterpret_cast<void*>(address), operation.bytes};
  AccessUnderWay under_way{&access, {}};
  if (operation.before != nullptr) under_way.into.push_back({operation.before, operation.bytes});
  ask(own(at), What::atomic, key, {&word, 1}, operation, {}, std::move(under_way));
}

bool flush(transport::Peer& at, int& error) {
  Peer& peer = own(at);
  if (!peer.accesses.empty()) return false;
  error = std::exchange(peer.late_error, MPI_SUCCESS);
  return true;
}

void handle_memory(Peer& peer, const Frame& frame, const std::byte* payload) {
  if (frame.what != What::answer) {
    std::vector<std::byte> read;
    const int error = serve(frame.what, payload, read);
    put_frame(peer,
              {What::answer,
               static_cast<std::uint32_t>(read.size()),
               {},
               frame.sender_cookie,
               static_cast<std::uint64_t>(error)},
              read);
    return write_out(peer);
  }
  const auto found = peer.accesses.find(frame.sender_cookie);
  if (found == peer.accesses.end()) return; // it was abandoned
  const AccessUnderWay ended = std::move(found->second);
  peer.accesses.erase(found);
  const int error = static_cast<int>(frame.receiver_cookie);
  if (error == MPI_SUCCESS && total(ended.into) != 0) scatter(ended.into, payload);
  if (ended.access != nullptr)
    ended.access->done(*ended.access, error);
  else if (peer.late_error == MPI_SUCCESS)
    peer.late_error = error;
}

void abandon_accesses(Peer& peer) {
  std::map<std::uint64_t, AccessUnderWay> all;
  all.swap(peer.accesses);
  for (const auto& [number, each] : all)
    if (each.access != nullptr) each.access->done(*each.access, MPI_ERR_PROC_ABORTED);
}

} // namespace near::test::sockets
