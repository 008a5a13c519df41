// Locks of processes on other machines: the target's Server takes and releases the lock in its region on behalf of this
// process.
#include "rma/remote.h"

#include <algorithm>
#include <utility>

namespace near::rma {

Result Remote::lock(int rank, bool exclusive) {
  Answer answer;
  return ask(rank, {.call = exclusive ? Call::lock_exclusive : Call::lock_shared}, {}, answer);
}

Result Remote::unlock(int rank, bool exclusive) {
  return send(rank, make_message({.call = exclusive ? Call::unlock_exclusive : Call::unlock_shared}, {}, 0));
}

Result Remote::try_all_shared(bool& taken, std::size_t& missing) {
  struct Question {
    Answer answer;
    p2p::Request* request = nullptr;
  };
  std::vector<Question> questions(ranks_.size());
  FirstFailure failure;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const CallHead head{.call = Call::try_shared, .answer_tag = next_tag()};
    Result begun = send(ranks_[i], make_message(head, {}, 0));
    if (begun.ok())
      begun = begin_answer(ranks_[i], head.answer_tag, questions[i].answer, questions[i].request);
    failure.note(begun);
  }
  for (Question& each : questions) {
    if (each.request == nullptr) continue;
    p2p::wait_complete(*each.request);
    MPI_Request handle = p2p::public_handle(*each.request);
    failure.note(p2p::finish(handle, *each.request, MPI_STATUS_IGNORE, false));
  }
  taken = std::all_of(questions.begin(), questions.end(),
                      [](const Question& each) { return each.answer.granted != 0; });
  if (taken) return failure.tell();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (questions[i].answer.granted == 0)
      missing = static_cast<std::size_t>(ranks_[i]);
    else
      failure.note(unlock(ranks_[i], false));
  }
  return failure.tell();
}

Result Remote::unlock_all_shared() {
  FirstFailure failure;
  for (int rank : ranks_) failure.note(unlock(rank, false));
  return failure.tell();
}

} // namespace near::rma
