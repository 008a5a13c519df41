// Round trips of short messages. The second process has the clock and decides what follows:
//
//   process 0                          process 1
//   message  ----------------------->  scatters it, and sends its own,
//   scatters it  <-------------------  whose tag says: again, another size, or stop
#include "calibrate/placed.h"
#include "calibrate/run.h"

#include "os/clock.h"
#include "profile/messages.h"

#include <algorithm>
#include <memory>

namespace near::calibrate {

namespace {

enum NextRound : std::int32_t { again, another, stop };

/// The first batch opens the pair's lane and finds cold memory. Each size is measured at least twice, however busy the machine is.
constexpr int round_trips = 100, batches = 9, fewest_batches = 2;

/// What arrivals set.
struct LastMessage {
  bool message = false;
  std::int32_t tag = 0;
  transport::Buffer into;
};
LastMessage& last_message() {
  static LastMessage one;
  return one;
}

void receive() {
  transport::wait_until([](void*) { return last_message().message; }, nullptr);
  last_message().message = false;
}

struct Sent {
  transport::Peer& to;
  transport::Envelope envelope;
  transport::Buffer buffer;
};
void send(Sent message) {
  transport::wait_until(
      [](void* argument) {
        const auto& waiting = *static_cast<const Sent*>(argument);
        return transport::try_send_eager(waiting.to, waiting.envelope, waiting.buffer);
      },
      &message);
}

/// The buffers of one size.
struct Buffers {
  transport::Buffer out, in;
};
Buffers buffers_of(const Run& run, std::size_t size, std::byte* out, std::byte* in) {
  if (run.type != nullptr) return {placed_in(out, *run.type, run.count), placed_in(in, *run.type, run.count)};
  datatype::Datatype* const byte = datatype::find_datatype(MPI_BYTE);
  const MPI_Count bytes = profile::short_sizes[size];
  return {{out, bytes, byte}, {in, bytes, byte}};
}

/// Picoseconds for half a round trip.
std::uint32_t half_of(std::uint64_t took_ns) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(took_ns * 500 / std::uint64_t{round_trips}, 1, UINT32_MAX));
}

} // namespace

void on_short_message(transport::Arrival& arrival) {
  LastMessage& here = last_message();
  datatype::unpack_arrived(here.into, 0, arrival.payload, static_cast<MPI_Count>(arrival.envelope.bytes));
  here.tag = arrival.envelope.tag;
  here.message = true;
  transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
}

void exchange_short_messages(const Run& run, std::uint32_t rank, int results) {
  const std::size_t memory =
      run.type == nullptr ? profile::longest_whole : static_cast<std::size_t>(span_of(*run.type, run.count));
  const auto out = std::make_unique<std::byte[]>(memory), in = std::make_unique<std::byte[]>(memory);
  std::fill_n(out.get(), memory, std::byte{1});
  transport::Peer& other = transport::peer_at({0, 1 - rank});
  const std::size_t sizes = run.type == nullptr ? profile::short_sizes.size() : 1;
  for (std::size_t size = 0; size < sizes; ++size) {
    const Buffers buffers = buffers_of(run, size, out.get(), in.get());
    last_message().into = buffers.in;
    const auto send_one = [&](std::int32_t tag) {
      send({other, {0, 0, tag, static_cast<std::uint64_t>(buffers.out.bytes())}, buffers.out});
    };
    if (rank == 0) {
      do {
        send_one(again);
        receive();
      } while (last_message().tag == again);
      if (last_message().tag == stop) return;
      continue;
    }
    Measurement measurement{.size_class = static_cast<std::uint32_t>(size)};
    const std::uint64_t now = os::monotonic_ns(),
                        until = now + (run.end_ns - std::min(now, run.end_ns)) / (sizes - size);
    bool is_last = false;
    for (int batch = 0; !is_last; ++batch) {
      const std::uint64_t began = os::monotonic_ns();
      is_last = batch + 1 == batches || (batch + 1 >= fewest_batches && began > until);
      for (int i = 0; i < round_trips; ++i) {
        receive();
        const bool ends = is_last && i + 1 == round_trips;
        send_one(!ends ? again : size + 1 == sizes ? stop : another);
      }
      const std::uint32_t half = half_of(os::monotonic_ns() - began);
      if (batch != 0) measurement.cost = measurement.cost == 0 ? half : std::min(measurement.cost, half);
    }
    report(results, measurement);
  }
}

} // namespace near::calibrate
