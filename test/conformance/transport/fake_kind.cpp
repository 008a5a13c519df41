// Runs the suite on the fake transport of p2p's unit tests, which is sender and receiver in one process.
#include "kind.h"
#include "processes.h"

#include "fake_transport.h"

#include <vector>

namespace near::test {

namespace {

class Fake : public Kind {
public:
  std::string name() const override { return "fake"; }
  bool has_processes() const override { return false; }
  bool reaches_memory() const override { return false; }

  void run(const std::function<void(Part&)>& body, bool) override {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      require(base::read_knobs(environ).ok(), "knobs");
      require(datatype::make_predefined_types().ok(), "predefined types");
      transport::fake::reset();
      Part part{true, true, &transport::fake::world().peers[0], [] {}, [] {}};
      body(part);
      require(transport::fake::nothing_held(), "every credit and packet is given back");
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
};

Fake fake;

} // namespace

Kind& kind_of(const std::string&) { return fake; }

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"fake"};
  return names;
}

} // namespace near::test
