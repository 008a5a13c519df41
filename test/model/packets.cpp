// Packets: a packet is reused only when its reader is done with it, also when generations wrap round.
#include "structures.h"

#include "queue/packet_flag.h"

namespace {

using namespace near::model;
using Flag = near::queue::PacketFlag<Weak>;

/// A sender with `packets` packets sends `messages`; the reader keeps up to two packets at a time and gives
/// the newer one back first.
void packets_travel(Stage& stage, std::uint32_t packets, std::uint32_t messages,
                    std::uint8_t first_generation) {
  std::array<Flag, 2> flags;
  std::array<std::uint32_t, 2> memory{};
  ModelQueue queue(stage, 4);
  for (std::uint32_t i = 0; i < packets; ++i) {
    stage.name(flags[i].generation, "flag " + std::to_string(i));
    flags[i].give_back(first_generation);
  }
  stage.thread("sender", [&, packets, messages, first_generation] {
    auto producer = queue.producer(0);
    std::array<std::uint8_t, 2> generations = {first_generation, first_generation};
    for (std::uint32_t number = 0; number < messages; ++number) {
      std::uint32_t packet = 0;
      until([&] {
        for (packet = 0; packet < packets; ++packet)
          if (flags[packet].is_home(generations[packet])) return true;
        return false;
      });
      ++generations[packet];
      put(&memory[packet], number);
      Claim claim;
      until([&] { return static_cast<bool>(claim = producer.claim()); });
      put(claim.body(), packet << 16 | generations[packet] << 8 | number);
      claim.commit();
    }
  });
  stage.thread("reader", [&, messages] {
    std::array<std::uint32_t, 2> kept{};
    std::uint32_t count = 0, received = 0;
    auto give_back = [&] {
      std::uint32_t message = kept[--count], packet = message >> 16;
      require(get<std::uint32_t>(&memory[packet]) == (message & 0xff),
              "a packet holds its message until it is given back");
      flags[packet].give_back(static_cast<std::uint8_t>(message >> 8));
    };
    auto take = [&] {
      auto entry = queue.consumer.front([](std::uint32_t) { return false; });
      if (entry.body == nullptr) return false;
      kept[count++] = get<std::uint32_t>(entry.body);
      queue.consumer.pop();
      ++received;
      return true;
    };
    while (received < messages) {
      if (count != 0 && (count == kept.size() || !take())) give_back();
      if (count == 0) until(take);
    }
    while (count > 0) give_back();
  });
  stage.go();
}

/// A packet goes to the reader, back to its owner in the answer, and to the reader again, who returns it. Its owner then
/// takes it for another message.
void a_packet_goes_back_and_forth(Stage& stage) {
  Flag flag;
  std::uint32_t memory = 0;
  ModelQueue questions(stage, 4), answers(stage, 4);
  stage.name(flag.generation, "flag");
  auto send = [&memory](auto& producer, std::uint32_t content) {
    put(&memory, content);
    Claim claim;
    until([&] { return static_cast<bool>(claim = producer.claim()); });
    put(claim.body(), content);
    claim.commit();
  };
  auto receive = [&memory](ModelQueue& queue, std::uint32_t content) {
    until([&] {
      auto entry = queue.consumer.front([](std::uint32_t) { return false; });
      if (entry.body == nullptr) return false;
      require(get<std::uint32_t>(entry.body) == content, "messages arrive in order");
      queue.consumer.pop();
      return true;
    });
    require(get<std::uint32_t>(&memory) == content, "a packet holds what was sent in it last");
  };
  stage.thread("owner", [&] {
    auto producer = questions.producer(0);
    send(producer, 1);
    receive(answers, 2);
    send(producer, 3); // in the packet that has come back
    until([&] { return flag.is_home(1); });
    send(producer, 4);
    receive(answers, 5);
    flag.give_back(2); // the owner returns it itself
    require(flag.is_home(2), "the owner sees that the packet is home");
  });
  stage.thread("reader", [&] {
    auto producer = answers.producer(0);
    receive(questions, 1);
    send(producer, 2);
    receive(questions, 3);
    flag.give_back(1);
    receive(questions, 4);
    send(producer, 5);
  });
  stage.go();
}

MODEL_SCENARIO(packets, a_packet_travels_back_in_an_answer, {{2, 2, 1, 0}}) {
  a_packet_goes_back_and_forth(stage);
}
MODEL_SCENARIO(packets, a_packet_is_written_again_only_when_it_is_home, {{2, 2, 1, 0}}) {
  packets_travel(stage, 2, 4, 0);
}
MODEL_SCENARIO(packets, the_generations_wrap_round, {{3, 3, 1, 0}}) { packets_travel(stage, 1, 4, 254); }

} // namespace
