// Access to the memory of peers: reads and writes by the network; atomic operations by messages, which the owner of the
// memory carries out when it makes progress.
#include "ofi/state.h"

#include <algorithm>

namespace near::ofi {

namespace {

/// The meaning of the words in a key.
enum KeyWord { mr_key, begin_address, bytes_of, is_registered };

bool is_inside(std::uint64_t at, std::uint64_t bytes, std::uint64_t begin, std::uint64_t whole) {
  return at >= begin && at - begin <= whole && bytes <= whole - (at - begin);
}

std::uint64_t address_of(const os::Run& run) { return reinterpret_cast<std::uint64_t>(run.address); }

/// Cuts the copy between `theirs` and `mine` into pieces that are contiguous on both sides.
void cut(Copy& copy, const MemoryKey& memory, std::span<const os::Run> theirs,
         std::span<const os::Run> mine) {
  const Endpoint& endpoint = state().endpoint;
  const std::uint64_t begin = memory.words[begin_address];
  const std::uint64_t remote = endpoint.remote_address(reinterpret_cast<void*>(begin));
  std::size_t from = 0, from_at = 0, to = 0, to_at = 0;
  while (from < theirs.size() && to < mine.size()) {
    const std::size_t bytes =
        std::min({theirs[from].bytes - from_at, mine[to].bytes - to_at, endpoint.longest()});
    if (bytes != 0) {
      Copy::Piece& piece = copy.pieces.emplace_back();
      piece.mine = static_cast<std::byte*>(mine[to].address) + to_at;
      piece.theirs = remote + (address_of(theirs[from]) + from_at - begin);
      piece.bytes = bytes;
    }
    from_at += bytes;
    to_at += bytes;
    if (from_at == theirs[from].bytes) ++from, from_at = 0;
    if (to_at == mine[to].bytes) ++to, to_at = 0;
  }
}

void copy_runs(Peer& peer, const MemoryKey& memory, std::span<const os::Run> theirs,
               std::span<const os::Run> mine, Access& access, bool writes) {
  if (memory.words[is_registered] == 0) return access.done(access, MPI_ERR_UNSUPPORTED_OPERATION);
  const auto& words = memory.words;
  auto inside = [&](const os::Run& run) {
    return is_inside(address_of(run), run.bytes, words[begin_address], words[bytes_of]);
  };
  if (!std::all_of(theirs.begin(), theirs.end(), inside)) return access.done(access, MPI_ERR_RMA_RANGE);
  auto copy = std::make_unique<Copy>();
  copy->peer = &peer;
  copy->key = words[mr_key];
  copy->writes = writes;
  copy->access = &access;
  cut(*copy, memory, theirs, mine);
  ++peer.accesses;
  if (writes && state().endpoint.orders_writes()) ++peer.writes;
  begin(std::move(copy));
}

} // namespace

Result register_memory(void* address, std::size_t bytes, copy::MemoryKind kind,
                       transport::Registration& made) {
  if (!copy::can_copy(kind))
    return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "the network does not reach memory of this kind");
  State& self = state();
  made = {};
  made.key.words[begin_address] = reinterpret_cast<std::uint64_t>(address);
  made.key.words[bytes_of] = bytes;
  made.key.words[is_registered] = 1;
  if (bytes == 0) return {};
  fid_mr* memory = nullptr;
  NEAR_TRY(self.endpoint.expose(address, bytes, true, memory));
  made.handle = reinterpret_cast<std::uint64_t>(memory);
  made.key.words[mr_key] = fi_mr_key(memory);
  self.registered[made.key.words[mr_key]] = {address, bytes};
  return {};
}

void deregister_memory(const transport::Registration& registration) {
  if (registration.handle == 0) return;
  state().registered.erase(registration.key.words[mr_key]);
  Endpoint::release(reinterpret_cast<fid_mr*>(registration.handle));
}

transport::Capabilities capabilities(transport::Peer&, const MemoryKey& memory) {
  const bool registered = memory.words[is_registered] != 0;
  return {.copies = registered, .atomics = registered};
}

void get(transport::Peer& from, const MemoryKey& memory, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  copy_runs(own(from), memory, theirs, mine, access, false);
}

void put(transport::Peer& to, const MemoryKey& memory, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  copy_runs(own(to), memory, theirs, mine, access, true);
}

void apply_atomic(transport::Peer& at, const MemoryKey& memory, std::uint64_t address,
                  const AtomicOperation& operation, Access& access) {
  Peer& peer = own(at);
  if (memory.words[is_registered] == 0) return access.done(access, MPI_ERR_UNSUPPORTED_OPERATION);
  State& self = state();
  const AtomicBody body{self.next_cookie++, memory.words[mr_key], address, operation};
  self.atomics[body.cookie] = {&peer, &access, operation.before, operation.bytes};
  ++peer.accesses;
  send(peer, Message::atomic, &body, sizeof body);
}

void handle_atomic(Peer& peer, const AtomicBody& body) {
  AnswerBody answer{.cookie = body.cookie};
  const AtomicOperation& operation = body.operation;
  const auto found = state().registered.find(body.key);
  const bool whole = operation.bytes == 4 || operation.bytes == 8;
  if (found == state().registered.end() || !whole || body.address % operation.bytes != 0 ||
      !is_inside(body.address, operation.bytes, address_of(found->second), found->second.bytes)) {
    answer.error = MPI_ERR_RMA_RANGE;
  } else {
    void* word = reinterpret_cast<void*>(body.address);
    answer.before = transport::change_own_word(word, operation);
  }
  send(peer, Message::answer, &answer, sizeof answer);
}

void handle_answer(Peer& peer, const AnswerBody& body) {
  State& self = state();
  const auto found = self.atomics.find(body.cookie);
  if (found == self.atomics.end() || found->second.peer != &peer) return;
  const AtomicUnderWay ended = found->second;
  self.atomics.erase(found);
  if (body.error == MPI_SUCCESS && ended.before != nullptr)
    copy::raw(ended.before, &body.before, ended.bytes);
  --peer.accesses;
  ended.access->done(*ended.access, body.error);
}

bool flush(transport::Peer& at, int& error) {
  Peer& peer = own(at);
  error = MPI_SUCCESS; // done() reports the only errors
  if (peer.accesses != 0) return false;
  if (peer.writes_arrived == peer.writes) return true;
  // One fence is under way at a time; it answers for all writes before it.
  if (peer.writes_fenced == peer.writes_arrived) {
    peer.writes_fenced = peer.writes;
    send(peer, Message::fence, &peer.writes, sizeof peer.writes);
  }
  return false;
}

void handle_fenced(Peer& peer, std::uint64_t writes) {
  if (writes > peer.writes_arrived && writes <= peer.writes_fenced) peer.writes_arrived = writes;
}

void abandon_accesses(Peer& peer) {
  State& self = state();
  std::vector<Access*> ended;
  std::erase_if(self.atomics, [&](const auto& entry) {
    if (entry.second.peer != &peer) return false;
    ended.push_back(entry.second.access);
    return true;
  });
  for (auto& [key_of_copy, copy] : self.copies)
    if (copy->peer == &peer && copy->access != nullptr) ended.push_back(std::exchange(copy->access, nullptr));
  peer.accesses = 0;
  for (Access* access : ended) access->done(*access, MPI_ERR_PROC_ABORTED);
}

} // namespace near::ofi
