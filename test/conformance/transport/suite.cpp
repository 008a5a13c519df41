// What every transport must do, tested through transport/transport.h only. Each test runs on every kind that
// the program is linked with (kinds.cpp).
#include "suite.h"

namespace near::test {
namespace {

TEST_P(Conformance, messages_of_all_lengths_arrive_whole_and_in_order) {
  run([](Part& part) {
    constexpr int count = 300;
    const std::size_t most = transport::eager_limit();
    auto length = [&](int i) { return static_cast<std::size_t>(i) * 977 % (most + 1); };
    if (part.sends)
      for (int i = 0; i < count; ++i)
        send_eager(*part.other, i, pattern(length(i), static_cast<unsigned>(i)));
    if (part.receives)
      for (int i = 0; i < count; ++i) {
        const Arrived message = next();
        require(message.envelope.context == 5 && message.envelope.tag == i, "messages arrive in order");
        require(!message.is_rts && message.envelope.bytes == length(i), "with their lengths");
        require(message.data == pattern(length(i), static_cast<unsigned>(i)), "and their bytes");
      }
  });
}

TEST_P(Conformance, an_rts_keeps_its_place_among_eager_messages) {
  run([](Part& part) {
    constexpr int count = 60;
    Bytes large = pattern(50'000, 3);
    std::deque<Side> sides(count);
    if (part.sends)
      for (int i = 0; i < count; ++i) {
        if (i % 3 == 0)
          announce(*part.other, i, buffer_of(large.data(), large.size()), sides[static_cast<std::size_t>(i)]);
        else
          send_eager(*part.other, i, pattern(8, 1));
      }
    if (part.receives) {
      std::deque<Side> moving;
      Bytes in(large.size());
      for (int i = 0; i < count; ++i) {
        const Arrived message = next();
        require(message.envelope.tag == i, "messages arrive in order");
        require(message.is_rts == (i % 3 == 0), "each as what it was sent");
        if (!message.is_rts) continue;
        Side& side = moving.emplace_back();
        std::fill(in.begin(), in.end(), 0);
        take(message, buffer_of(in.data(), in.size()), side);
        wait_for([&] { return side.finished; });
        require(in == large, "and arrive whole");
      }
    }
    if (part.sends)
      wait_for([&] {
        return std::all_of(sides.begin(), sides.end(),
                           [](const Side& side) { return side.finished || !side.busy; });
      });
  });
}

TEST_P(Conformance, a_sender_without_credit_is_refused_until_messages_are_released) {
  const int most = kind().most_unreleased();
  if (most == 0) GTEST_SKIP() << "this transport never refuses an eager message";
  run([most, uses_all = kind().uses_all_credits()](Part& part) {
    Bytes word = pattern(8, 1);
    const Buffer buffer = buffer_of(word.data(), word.size());
    hold_credits = true;
    if (part.sends) {
      // The receiver takes all messages, so none is refused because of a full channel.
      int sent = 0;
      std::deque<Side> waiting;
      for (int refused = 0; refused < 3000 && sent <= most;) {
        const Eager done =
            transport::send_eager(*part.other, {5, 0, sent, 8}, buffer, &waiting.emplace_back());
        if (done != Eager::waits) waiting.pop_back();
        if (done == Eager::waits) wait_for([&] { return waiting.back().finished; });
        if (done != Eager::refused) {
          ++sent;
          refused = 0;
        } else {
          transport::progress();
          usleep(10);
          ++refused;
        }
      }
      require(sent > 0 && sent <= most, "unreleased messages are bounded");
      require(sent == most || !uses_all, "and as many leave as there are credits");
      Side side;
      announce(*part.other, -2, buffer, side);
      wait_for([&] { return side.finished; });
      send_eager(*part.other, -3, word); // credits have been returned
    }
    if (part.receives) {
      Arrived last;
      std::vector<Peer*> held;
      while (!(last = next()).is_rts) held.push_back(last.from);
      require(!held.empty(), "messages came before");
      Side side;
      Bytes in(8);
      take(last, buffer_of(in.data(), in.size()), side);
      wait_for([&] { return side.finished; });
      require(in == word, "an RTS needs no credit");
      hold_credits = false;
      for (Peer* from : held) transport::give_back_credit(*from, word.size());
      require(next().envelope.tag == -3, "and one came after they were released");
    }
  });
}

TEST_P(Conformance, kept_packets_stay_valid_until_they_are_given_back) {
  run([](Part& part) {
    constexpr int count = 8;
    keep_packets = true;
    auto data = [](int i) { return pattern(transport::eager_limit(), static_cast<unsigned>(i)); };
    if (part.sends)
      for (int i = 0; i < count; ++i) send_eager(*part.other, i, data(i));
    if (part.receives) {
      std::vector<Arrived> all;
      while (all.size() < count) all.push_back(next());
      for (const Arrived& message : all) {
        const Bytes expected = data(message.envelope.tag);
        require(message.data == expected, "the payload was right when it came");
        require(message.packet == 0 || std::memcmp(message.kept, expected.data(), expected.size()) == 0,
                "and a kept one does not change");
        if (message.packet != 0) transport::give_back_packet(*message.from, message.packet);
      }
    }
  });
}

TEST_P(Conformance, large_messages_arrive_whole) {
  run([](Part& part) {
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{9000}, std::size_t{65537},
                              std::size_t{1} << 20, (std::size_t{5} << 20) + 3}) {
      Bytes out = pattern(bytes, 9), in(bytes);
      Side sending, receiving;
      if (part.sends) announce(*part.other, 1, buffer_of(out.data(), bytes), sending);
      if (part.receives) {
        take(next(), buffer_of(in.data(), bytes), receiving);
        wait_for([&] { return receiving.finished; });
        require(receiving.error == MPI_SUCCESS && in == out, "the bytes are there when done() is called");
      }
      if (part.sends) wait_for([&] { return sending.finished; });
    }
  });
}

TEST_P(Conformance, many_large_messages_in_both_directions_do_not_block_each_other) {
  if (!kind().has_processes()) GTEST_SKIP() << "one process is both ends";
  run([](Part& part) {
    constexpr std::size_t count = 12, bytes = 300'000;
    std::deque<Side> sending(count), receiving(count);
    std::vector<Bytes> out, in(count, Bytes(bytes));
    for (std::size_t i = 0; i < count; ++i) out.push_back(pattern(bytes, static_cast<unsigned>(i)));
    for (std::size_t i = 0; i < count; ++i)
      announce(*part.other, static_cast<int>(i), buffer_of(out[i].data(), bytes), sending[i]);
    for (std::size_t i = 0; i < count; ++i) {
      const Arrived message = next();
      take(message, buffer_of(in[i].data(), bytes), receiving[i]);
    }
    auto all_finished = [](const std::deque<Side>& sides) {
      return std::all_of(sides.begin(), sides.end(), [](const Side& side) { return side.finished; });
    };
    wait_for([&] { return all_finished(sending) && all_finished(receiving); });
    require(in == out, "all arrived whole");
  });
}

TEST_P(Conformance, messages_with_gaps_are_packed_and_unpacked) {
  run([](Part& part) {
    for (int way = 0; way < 8; ++way) {
      const bool gaps_out = (way & 1) != 0, gaps_in = (way & 2) != 0;
      const std::size_t blocks = (way & 4) != 0 ? 60'000 : 2000, packed = blocks * 50, spread = blocks * 100;
      datatype::Datatype* every_second = nullptr;
      require(datatype::make_vector(static_cast<MPI_Count>(blocks), 50, 100, false,
                                    *datatype::find_datatype(MPI_BYTE), every_second)
                  .ok(),
              "type");
      Bytes out = pattern(spread, 4), in(spread, 0x55);
      Side sending, receiving;
      if (part.sends)
        announce(*part.other, 1,
                 gaps_out ? Buffer{out.data(), 1, every_second} : buffer_of(out.data(), packed), sending);
      if (part.receives) {
        take(next(), gaps_in ? Buffer{in.data(), 1, every_second} : buffer_of(in.data(), packed), receiving);
        wait_for([&] { return receiving.finished; });
        auto at = [](bool gaps, std::size_t i) { return gaps ? i / 50 * 100 + i % 50 : i; };
        for (std::size_t i = 0; i < packed; ++i)
          require(in[at(gaps_in, i)] == out[at(gaps_out, i)], "each byte is in its place");
        for (std::size_t i = 0; gaps_in && i < blocks - 1; ++i)
          require(in[i * 100 + 50] == 0x55, "gaps are left alone");
      }
      if (part.sends) wait_for([&] { return sending.finished; });
    }
  });
}

TEST_P(Conformance, a_receiver_takes_as_much_as_it_has_space_for) {
  run([](Part& part) {
    for (std::size_t space : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{150'000}}) {
      Bytes out = pattern(200'000, 6), in(200'000, 0x55);
      Side sending, receiving;
      if (part.sends) announce(*part.other, 1, buffer_of(out.data(), out.size()), sending);
      if (part.receives) {
        const Arrived message = next();
        require(message.envelope.bytes == out.size(), "the envelope says how much there is");
        take(message, buffer_of(in.data(), space), receiving);
        wait_for([&] { return receiving.finished; });
        require(std::equal(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(space), out.begin()),
                "what fits");
        require(std::all_of(in.begin() + static_cast<std::ptrdiff_t>(space), in.end(),
                            [](auto c) { return c == 0x55; }),
                "and no more");
      }
      if (part.sends) {
        wait_for([&] { return sending.finished; });
        require(sending.error == MPI_SUCCESS, "it is not the sender's error");
      }
    }
  });
}

TEST_P(Conformance, an_unmatched_message_is_cancelled_or_stays_receivable) {
  const bool cancels = kind().cancels();
  run([cancels](Part& part) {
    Bytes out = pattern(100'000, 2);
    Side first, second;
    if (part.sends) {
      announce(*part.other, 1, buffer_of(out.data(), out.size()), first);
      require(transport::cancel_rts(first) == cancels, "an RTS that nobody matched");
      announce(*part.other, 2, buffer_of(out.data(), out.size()), second);
    }
    if (part.receives) {
      const Arrived one = next(), two = next();
      Bytes in(out.size());
      Side lost, found;
      require(transport::rts_is_live(*one.from, one.rts) != cancels, "is it live?");
      const Buffer buffer = buffer_of(in.data(), in.size());
      require(transport::accept(*one.from, one.rts, out.size(), buffer, lost) != cancels,
              "can it be accepted?");
      if (!cancels) wait_for([&] { return lost.finished; });
      std::fill(in.begin(), in.end(), 0);
      take(two, buffer, found);
      wait_for([&] { return found.finished; });
      require(in == out, "the next message is not concerned");
    }
    if (part.sends) wait_for([&] { return second.finished && (cancels || first.finished); });
  });
}

TEST_P(Conformance, a_message_to_a_peer_that_ends_is_cancelled_or_dropped) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can end";
  run([cancels = kind().cancels()](Part& part) {
    static Bytes out = pattern(100'000, 2);
    static Side side;
    if (part.receives) send_eager(*part.other, 1, {}); // and ends
    if (part.sends) {
      (void)next();
      wait_for([&] { return transport::has_ended(*part.other); });
      for (int i = 0; i < 3000; ++i) transport::progress(), usleep(10);
      announce(*part.other, 1, buffer_of(out.data(), out.size()), side);
      const bool cancelled = transport::cancel_rts(side);
      require(!cancels || cancelled || side.finished, "nobody can match it any more");
    }
  });
}

TEST_P(Conformance, a_claimed_message_cannot_be_cancelled) {
  run([acts_alone = kind().acts_alone()](Part& part) {
    Bytes out = pattern(70'000, 8), in(70'000);
    Side sending, receiving;
    if (part.sends) announce(*part.other, 1, buffer_of(out.data(), out.size()), sending);
    Arrived message;
    if (part.receives) {
      message = next();
      require(transport::claim_rts(*message.from, message.rts), "an RTS can be claimed");
    }
    part.meet();
    if (part.sends) {
      require(!transport::cancel_rts(sending), "the receiver was faster");
      if (!acts_alone) send_eager(*part.other, 2, {});
    }
    if (part.receives && !acts_alone) require(next().envelope.tag == 2, "the sender was told");
    part.meet();
    if (part.receives) {
      take(message, buffer_of(in.data(), in.size()), receiving);
      wait_for([&] { return receiving.finished; });
      require(in == out, "it arrives");
    }
    if (part.sends) wait_for([&] { return sending.finished; });
  });
}

TEST_P(Conformance, a_rendezvous_is_not_over_before_it_is_accepted) {
  run([](Part& part) {
    Bytes out = pattern(20'000, 1), in(20'000);
    Side sending, receiving;
    if (part.sends) {
      announce(*part.other, 1, buffer_of(out.data(), out.size()), sending);
      for (int i = 0; i < 1000; ++i) transport::progress();
      require(!sending.finished, "nobody has accepted it");
    }
    part.meet();
    if (part.receives) {
      take(next(), buffer_of(in.data(), in.size()), receiving);
      wait_for([&] { return receiving.finished; });
    }
    if (part.sends) wait_for([&] { return sending.finished; });
  });
}

TEST_P(Conformance, a_process_ends_although_nobody_receives_its_last_message) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can end";
  run([](Part& part) {
    static Bytes out = pattern(100'000, 5);
    static Side side;
    if (part.sends) announce(*part.other, 1, buffer_of(out.data(), out.size()), side);
    transport::receive_no_more();
    wait_for([] { return transport::sends_settled(); });
  });
}

TEST_P(Conformance, messages_of_a_process_that_has_ended_arrive) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can end";
  run([acts_alone = kind().acts_alone()](Part& part) {
    if (part.sends) {
      send_eager(*part.other, 1, pattern(8, 1));
      part.meet();
      send_eager(*part.other, 2, pattern(8, 2));
    }
    if (part.receives) {
      hold_credits = true;
      const Arrived first = next();
      part.meet();
      if (acts_alone)
        part.wait_for_end();
      else
        wait_for([&] { return transport::has_ended(*first.from); });
      transport::give_back_credit(*first.from, first.envelope.bytes); // the sender can no longer take it
      require(next().envelope.tag == 2, "the last message arrives");
    }
  });
}

TEST_P(Conformance, a_process_that_ends_long_before_its_peer_ends_as_well) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can end";
  run([](Part& part) {
    if (part.sends) send_eager(*part.other, 1, pattern(8, 1));
    if (part.receives) {
      (void)next();
      usleep(300'000); // the other one has announced its end by now
    }
  });
}

TEST_P(Conformance, a_peer_that_dies_ends_what_is_under_way_to_it) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can die";
  const bool fails_alone = kind().fails_alone();
  run(
      [fails_alone](Part& part) {
        static Bytes out = pattern(1 << 20, 5);
        static Side side;
        static std::vector<Peer*> failures;
        transport::set_failure_handler([](Peer& peer) { failures.push_back(&peer); });
        part.meet();
        if (part.receives) {
          (void)next();
          raise(SIGKILL);
        }
        announce(*part.other, 1, buffer_of(out.data(), out.size()), side);
        wait_for([&] { return transport::has_ended(*part.other); });
        if (fails_alone) {
          require(side.finished && side.error == MPI_ERR_PROC_ABORTED, "what was under way fails");
          require(failures == std::vector<Peer*>{part.other}, "the failure is reported, once");
          Side later;
          const Buffer buffer = buffer_of(out.data(), out.size());
          require(!transport::try_send_eager(*part.other, {5, 0, 2, 8}, buffer_of(out.data(), 8)),
                  "nothing is sent to it");
          require(transport::send_rts(*part.other, {5, 0, 2, out.size()}, buffer, later).code() ==
                      MPI_ERR_PROC_ABORTED,
                  "and the error says why");
        }
        transport::receive_no_more();
        wait_for([] { return transport::sends_settled(); });
      },
      true);
}

INSTANTIATE_TEST_SUITE_P(Transport, Conformance, testing::ValuesIn(kind_names()),
                         [](const auto& each) { return each.param; });

} // namespace
} // namespace near::test
