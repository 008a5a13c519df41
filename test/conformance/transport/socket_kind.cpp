// Runs the suite on the plain transport: between two processes in separate user namespaces, without a
// segment; and, together with the node transport, between processes of two jobs.
#include "kind.h"
#include "processes.h"
#include "socket_transport.h"

#include "memory/space.h"
#include "shm/shm.h"

#include <sched.h>
#include <sys/socket.h>

namespace near::test {

namespace {

class Sockets : public Kind {
public:
  explicit Sockets(bool beside_shm) : beside_shm_(beside_shm) {}
  std::string name() const override { return beside_shm_ ? "sockets_beside_shm" : "sockets"; }
  bool cancels() const override { return false; }
  bool fails_alone() const override { return true; }
  int most_unreleased() const override { return 32; }
  bool queues_eager() const override { return true; }

  void run(const std::function<void(Part&)>& body, bool receiver_dies) override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    // Small buffers in the kernel, so that messages wait for space.
    const int bytes = 4096;
    for (const int end : ends) ASSERT_EQ(setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    Meeting meeting;
    run_two(
        meeting, receiver_dies ? 1 : -1,
        [&](std::uint32_t rank) {
          close(ends[1 - rank]);
          const object::ProcessId other{.job = beside_shm_ ? 1u : 0u, .rank = 1 - rank};
          if (beside_shm_) {
            require(shm::start({}).ok(), "a job of one process");
          } else {
            // Now neither may read the other's memory. If unshare() is forbidden, so are such reads.
            (void)unshare(CLONE_NEWUSER);
            require(!memory::space().segment.mapped(), "there is no shared memory");
          }
          sockets::start(ends[rank], other);
          Part part{rank == 0, rank == 1, &transport::peer_at(other), [&] { meeting.meet(rank); },
                    [&] { meeting.wait_for_end(rank); }};
          require(std::string_view(part.other->operations->name) == "sockets", "who reaches it");
          require(!transport::reaches_memory_of(*part.other), "private memory is out of reach");
          if (beside_shm_)
            require(std::string_view(transport::peer_at({}).operations->name) == "shm",
                    "this process itself");
          body(part);
          transport::stop();
        },
        [&](std::uint32_t rank, int) { close(ends[rank]); });
  }

private:
  bool beside_shm_;
};

Sockets alone(false), beside(true);

} // namespace

Kind& socket_kind(bool beside_shm) { return beside_shm ? beside : alone; }

} // namespace near::test
