// Runs the suite on the network transport, between two processes on this machine that share nothing.
#include "kind.h"
#include "processes.h"

#include "base/atomic.h"
#include "ofi/ofi.h"

#include <cstdlib>
#include <sched.h>
#include <sys/mman.h>
#include <vector>

namespace near::test {

namespace {

/// What the launcher would tell: the addresses of both processes, in a page that they share.
struct Page {
  struct Entry {
    base::Atomic<std::uint32_t> address_bytes{0};
    base::Atomic<std::uint32_t> dead{0};
    base::Atomic<std::uint32_t> leaves{0};
    std::byte address[256];
  };
  Entry of[2];
};

class FromPage : public ofi::Directory {
public:
  FromPage(Page& page, std::uint32_t self) : page_(page), self_(self) {}
  ofi::Result address_of(object::ProcessId process, std::vector<std::byte>& address) override {
    Page::Entry& entry = page_.of[process.rank];
    std::uint32_t bytes = 0;
    while ((bytes = entry.address_bytes.load_acquire()) == 0) usleep(100);
    address.assign(entry.address, entry.address + bytes);
    return {};
  }
  bool is_elsewhere(object::ProcessId process) override { return process.job == 0; }
  std::uint32_t deaths() override {
    return page_.of[0].dead.load_acquire() + page_.of[1].dead.load_acquire();
  }
  std::vector<object::ProcessId> processes_elsewhere() override { return {{.rank = 1 - self_}}; }
  bool has_died(object::ProcessId process) override {
    return page_.of[process.rank].dead.load_acquire() != 0;
  }

  bool all_leave() override {
    page_.of[self_].leaves.store_release(1);
    Page::Entry& other = page_.of[1 - self_];
    return other.leaves.load_acquire() != 0 || other.dead.load_acquire() != 0;
  }

private:
  Page& page_;
  std::uint32_t self_;
};

/// Exchanges a message. A connection is made by progress; once it is there, messages leave without.
void connect_to(transport::Peer& other) {
  static bool arrived, left;
  transport::set_handler(transport::Handler::p2p_eager, [](transport::Arrival& arrival) {
    arrived = true;
    transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
  });
  transport::Buffer nothing{nullptr, 0, datatype::find_datatype(MPI_BYTE)};
  transport::Transfer first;
  first.done = [](transport::Transfer&, int) { left = true; };
  require(!transport::try_send_eager(other, {}, nothing), "a first message has to be waited for");
  require(transport::send_eager(other, {}, nothing, &first) == transport::Eager::waits,
          "a first message can be sent");
  transport::wait_until([](void*) { return arrived && left; }, nullptr);
}

class Network : public Kind {
public:
  struct Traits {
    bool writes_ordered = true;      ///< messages arrive after earlier writes
    bool reordered = false;          ///< messages are reported in another order than they were sent in
    const char* rxm_bytes = nullptr; ///< up to which tcp;ofi_rxm keeps messages in order
  };
  Network(const char* name, const char* provider, Traits traits)
      : name_(name), provider_(provider), traits_(traits) {}
  std::string name() const override { return name_; }
  bool writes_wait() const override { return !traits_.writes_ordered; }
  bool has_window() const override { return true; }
  bool fails_alone() const override { return true; }
  bool acts_alone() const override { return false; }
  int most_unreleased() const override { return 2048; }
  bool uses_all_credits() const override { return true; }
  bool needs_polls() const override { return true; }

  void run(const std::function<void(Part&)>& body, bool receiver_dies) override {
    auto* page = static_cast<Page*>(
        mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(page, MAP_FAILED);
    Meeting meeting;
    run_two(
        meeting, receiver_dies ? 1 : -1,
        [&](std::uint32_t rank) {
          static FromPage directory(*page, rank);
          if (traits_.rxm_bytes != nullptr) setenv("FI_OFI_RXM_BUFFER_SIZE", traits_.rxm_bytes, 1);
          const ofi::Result opened = ofi::open({.provider = provider_,
                                                .domain = "lo",
                                                .order_writes = traits_.writes_ordered,
                                                .reorder = traits_.reordered});
          require(opened.ok(), std::string(base::failure_text()).c_str());
          ofi::Settings settings;
          settings.self = {.rank = rank};
          settings.secret = 0x5eed'0000'0000'0001;
          settings.directory = &directory;
          settings.window = 192;
          ofi::start(settings);
          const auto address = ofi::own_address();
          require(address.size() <= sizeof page->of[rank].address, "an address is short");
          std::copy(address.begin(), address.end(), page->of[rank].address);
          page->of[rank].address_bytes.store_release(static_cast<std::uint32_t>(address.size()));
          Part part{rank == 0, rank == 1, &transport::peer_at({.rank = 1 - rank}),
                    [&] { meeting.meet(rank); }, [&] { meeting.wait_for_end(rank); }};
          require(std::string_view(part.other->operations->name) == "ofi", "who reaches it");
          require(!transport::reaches_memory_of(*part.other), "private memory is out of reach");
          connect_to(*part.other);
          part.meet();
          body(part);
          transport::stop();
        },
        [&](std::uint32_t rank, int status) {
          // Nobody tells of a process that ends as it should: its peers must know by its messages.
          if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) page->of[rank].dead.store_release(1);
        });
    munmap(page, sizeof(Page));
  }

private:
  const char* name_;
  const char* provider_;
  Traits traits_;
};

Network tcp("ofi_tcp", "tcp", {}), unordered("ofi_tcp_unordered", "tcp", {.writes_ordered = false}),
    short_buffers("ofi_tcp_short_buffers", "tcp", {.rxm_bytes = "1024"}),
    reordered("ofi_tcp_reordered", "tcp", {.reordered = true}), net("ofi_net", "net", {}),
    net_reordered("ofi_net_reordered", "net", {.reordered = true});

const std::vector<Network*>& networks() {
  static const std::vector<Network*> all{&tcp, &unordered, &short_buffers, &reordered, &net, &net_reordered};
  return all;
}

} // namespace

Kind& kind_of(const std::string& name) {
  for (Network* kind : networks())
    if (kind->name() == name) return *kind;
  std::abort();
}

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const Network* kind : networks()) made.push_back(kind->name());
    return made;
  }();
  return names;
}

} // namespace near::test
