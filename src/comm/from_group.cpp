// Communicators made from groups alone, matched by a string tag. Source: MPI 5.0, sections 7.4.2 and 7.6.2.
//
// There is no communicator for the first message, so the members make a temporary one. Its context is
// computed from the tag and the group, in a range of context numbers that no process uses otherwise. Repeated
// calls with the same tag and group have the same context; their messages stay in order. Two different pairs
// collide with a probability of 2^-36.
#include "comm/exchange.h"

namespace near::comm {

using object::ProcessId;

namespace {

std::uint64_t occasional_context(const Group& group, std::string_view tag) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (char letter : tag) add(static_cast<unsigned char>(letter));
  for (ProcessId member : group.members) add(std::uint64_t{member.job} << 32 | member.rank);
  return object::hashed_context(hash);
}

/// The temporary communicator of one creation.
class Occasion {
public:
  Occasion(Group* group, std::string_view tag, object::ErrorHandler& handler) {
    if (group == nullptr) return;
    std::uint64_t context = occasional_context(*group, tag);
    made_ = object::make_communicator(*object::self(), group, context);
    if (made_ == nullptr) return;
    object::release(made_->error_handler);
    made_->error_handler = keep(&handler);
  }
  Occasion(const Occasion&) = delete;
  Occasion& operator=(const Occasion&) = delete;
  ~Occasion() {
    if (made_ != nullptr) object::release(made_);
  }
  Communicator* get() const { return made_; }

private:
  Communicator* made_ = nullptr;
};

Result no_memory() { return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another communicator"); }

Result with_hints(Communicator* fresh, const Info* hints, Communicator*& made) {
  if (hints != nullptr)
    if (Result result = apply_hints(*fresh, *hints); !result.ok()) {
      discard(fresh);
      return result;
    }
  made = fresh;
  return {};
}

} // namespace

Result create_by_string(const Group& group, std::string_view tag, const Info* hints,
                        object::ErrorHandler& handler, Communicator*& made) {
  Occasion occasion(object::make_group(group.members), tag, handler);
  if (occasion.get() == nullptr) return no_memory();
  Communicator* fresh = nullptr;
  NEAR_TRY(build_on_first(*occasion.get(), group.size(), fresh));
  return with_hints(fresh, hints, made);
}

Result create_intercommunicator_by_string(const Group& local, int local_leader, const Group* remote,
                                          int remote_leader, std::string_view tag, const Info* hints,
                                          object::ErrorHandler& handler, Communicator*& made) {
  Occasion ours(object::make_group(local.members), tag, handler);
  if (ours.get() == nullptr) return no_memory();
  Group* leaders = nullptr;
  int other = 0;
  if (local.rank == local_leader) {
    ProcessId own = object::own_process(), far = remote->members[static_cast<std::size_t>(remote_leader)];
    // Both leaders must order the groups in the same way, so their process ids decide.
    bool first = std::pair(own.job, own.rank) < std::pair(far.job, far.rank);
    leaders = first ? object::make_group({own, far}) : object::make_group({far, own});
    other = first ? 1 : 0;
  }
  Occasion meeting(leaders, tag, handler);
  if (local.rank == local_leader && meeting.get() == nullptr) return no_memory();
  Communicator* fresh = nullptr;
  NEAR_TRY(create_intercommunicator(*ours.get(), local_leader, meeting.get(), other, 0, fresh));
  return with_hints(fresh, hints, made);
}

} // namespace near::comm
