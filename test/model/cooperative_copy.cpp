// Cooperative copy: one of the two sides copies each chunk; the receiver finishes only when all have arrived.
#include "model.h"

#include "queue/cooperative_copy.h"

namespace {

using namespace near::model;
using Copy = near::queue::CooperativeCopy<Weak>;
using Word = Weak::Atomic<std::uint32_t>;

constexpr std::uint32_t most = 8;

void share(Stage& stage, std::uint32_t chunks, std::uint32_t unable) {
  Copy copy;
  Word asked{0}, finished{0};
  stage.name(asked, "asked");
  stage.name(finished, "finished");
  std::uint32_t from[most], to[most] = {};
  for (std::uint32_t i = 0; i < chunks; ++i) from[i] = i + 1;
  stage.thread("sender", [&] {
    until([&] { return asked.load_acquire() != 0; });
    for (;;) {
      if (finished.load_acquire() != 0) return; // the sender may have no time for this message
      std::uint32_t chunk = copy.claim_back(chunks);
      if (chunk == Copy::none) return;
      if (chunk == unable) {
        copy.gave_up(chunk);
        return;
      }
      put(&to[chunk], get<std::uint32_t>(&from[chunk]));
      copy.brought_one();
    }
  });
  stage.thread("receiver", [&] {
    asked.store_release(1);
    std::uint32_t mine = 0, failed = Copy::none;
    for (std::uint32_t chunk; (chunk = copy.claim_front(chunks)) != Copy::none; ++mine)
      put(&to[chunk], get<std::uint32_t>(&from[chunk]));
    until([&] { return copy.settled(chunks - mine, failed); });
    if (failed != Copy::none) put(&to[failed], get<std::uint32_t>(&from[failed]));
    for (std::uint32_t i = 0; i < chunks; ++i)
      require(get<std::uint32_t>(&to[i]) == i + 1, "every chunk is there");
    finished.store_release(1);
  });
  stage.go();
}

MODEL_SCENARIO(cooperative_copy, each_chunk_has_one_claimer, {{4, 4, 2, 0}}) { share(stage, 3, Copy::none); }
MODEL_SCENARIO(cooperative_copy, one_chunk_is_enough, {{4, 4, 2, 0}}) { share(stage, 1, Copy::none); }
MODEL_SCENARIO(cooperative_copy, what_the_sender_gives_up_the_receiver_fetches, {{4, 4, 2, 0}}) {
  share(stage, 3, 1); // after the sender has copied one chunk
}

} // namespace
