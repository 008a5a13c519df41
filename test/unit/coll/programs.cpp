// What programs (pattern/program.h) say of a call is what the library sends between machines.
#include "coll/shared/area.h"
#include "forms.h"
#include "pattern/program.h"
#include "pattern/ring.h"

#include <vector>

namespace near::coll::test {
namespace {

using pattern::Program;
using pattern::Step;
using pattern::Verb;

/// The messages of a rank in the order in which it starts them. Slices of a ring differ by an element, so their lengths are left out.
std::vector<Sent> messages_of(const Program& program) {
  std::vector<Sent> sent;
  for (const Step& step : program) {
    const bool starts =
        step.verb == Verb::send || step.verb == Verb::exchange || step.verb == Verb::start_send;
    if (starts) sent.push_back({step.to, step.out});
    if (step.verb == Verb::ring) sent.insert(sent.end(), static_cast<std::size_t>(step.count), {step.to, -1});
  }
  return sent;
}

bool has_ring(const Program& program) {
  return std::any_of(program.begin(), program.end(),
                     [](const Step& step) { return step.verb == Verb::ring; });
}

void expect_program(const object::Communicator& c, Collective collective, MPI_Count bytes, int root) {
  const Machines& machines = *static_cast<AreaExtension&>(*c.extension).machines;
  Facts facts{.collective = collective, .bytes = bytes, .size = c.size};
  pattern::add_machines(facts, machines);
  const std::vector<int> leading = collective == Collective::broadcast
                                       ? machines.leaders_with(root)
                                       : machines.leaders_with(machines.leaders()[0]);
  const Program program = pattern::program_of(facts, machines, RankList::of(leading), c.rank, root);
  auto is_here = [&](const Sent& each) { return machines.index_of(each.to) == machines.own(); };
  std::vector<Sent> expected = messages_of(program), found = sent();
  std::erase_if(expected, is_here), std::erase_if(found, is_here);
  if (has_ring(program)) {
    for (Sent& each : expected) each.bytes = -1;
    for (Sent& each : found) each.bytes = -1;
  }
  EXPECT_EQ(found, expected) << choice::name_of(collective) << " of " << bytes << " bytes, rank " << c.rank
                             << " of " << c.size << ", root " << root;
}

TEST(programs, say_what_is_sent_between_machines) {
  make_types();
  ASSERT_TRUE(configure("auto").ok());
  datatype::Datatype& type = *datatype::find_predefined(MPI_INT32_T);
  const datatype::Operation& sum = *datatype::find_operation(MPI_SUM);
  for (int size : {3, 4, 7, 16})
    for (const auto& machine_of : distributions(size)) {
      const Conditions conditions{.eager_bytes = everything, .machine_of = machine_of};
      run_ranks(size, conditions, [&](object::Communicator& c) {
        for (const MPI_Count count : {2, 2000, 50'000, 150'001}) {
          std::vector<std::int32_t> data(static_cast<std::size_t>(count)), result(data.size());
          for (int root : roots(c.size)) {
            sent().clear();
            blocking(broadcast_call(Buffer{data.data(), count, &type}, root), c);
            expect_program(c, Collective::broadcast, count * 4, root);
          }
          sent().clear();
          blocking(allreduce_call(data.data(), result.data(), count, type, sum), c);
          expect_program(c, Collective::allreduce, count * 4, 0);
        }
      });
      ASSERT_FALSE(testing::Test::HasFailure()) << size << " ranks";
    }
}

} // namespace
} // namespace near::coll::test
