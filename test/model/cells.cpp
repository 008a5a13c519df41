// Cells: a cell is written again only when its reader is done with it, also when laps wrap round.
#include "structures.h"

#include "queue/cell_flag.h"

namespace {

using namespace near::model;
using Flag = near::queue::CellFlag<Weak>;

/// A sender with `cells` cells that sends `messages`, of which the reader keeps up to two at a time and gives
/// the younger one back first.
void cells_travel(Stage& stage, std::uint32_t cells, std::uint32_t messages, std::uint8_t first_lap) {
  std::array<Flag, 2> flags;
  std::array<std::uint32_t, 2> memory{};
  ModelQueue queue(stage, 4);
  for (std::uint32_t i = 0; i < cells; ++i) {
    stage.name(flags[i].lap, "flag " + std::to_string(i));
    flags[i].give_back(first_lap);
  }
  stage.thread("sender", [&, cells, messages, first_lap] {
    auto producer = queue.producer(0);
    std::array<std::uint8_t, 2> laps = {first_lap, first_lap};
    for (std::uint32_t number = 0; number < messages; ++number) {
      std::uint32_t cell = 0;
      until([&] {
        for (cell = 0; cell < cells; ++cell)
          if (flags[cell].is_home(laps[cell])) return true;
        return false;
      });
      ++laps[cell];
      put(&memory[cell], number);
      Claim claim;
      until([&] { return static_cast<bool>(claim = producer.claim()); });
      put(claim.body(), cell << 16 | laps[cell] << 8 | number);
      claim.commit();
    }
  });
  stage.thread("reader", [&, messages] {
    std::array<std::uint32_t, 2> kept{};
    std::uint32_t count = 0, received = 0;
    auto give_back = [&] {
      std::uint32_t message = kept[--count], cell = message >> 16;
      require(get<std::uint32_t>(&memory[cell]) == (message & 0xff),
              "a cell holds its message until it is given back");
      flags[cell].give_back(static_cast<std::uint8_t>(message >> 8));
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

MODEL_SCENARIO(cells, a_cell_is_written_again_only_when_it_is_home, {{2, 2, 1, 0}}) {
  cells_travel(stage, 2, 4, 0);
}
MODEL_SCENARIO(cells, the_laps_wrap_round, {{3, 3, 1, 0}}) { cells_travel(stage, 1, 4, 254); }

} // namespace
