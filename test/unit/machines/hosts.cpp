// Lists of machines, as users, other launchers and Slurm write them.
#include "machines/hosts.h"

#include <gtest/gtest.h>

namespace near::machines {
namespace {

std::string text_of(const Result& result, const std::vector<Host>& hosts) {
  if (!result.ok()) return "refused: " + std::string(base::failure_text());
  std::string text;
  for (const Host& host : hosts)
    text += (text.empty() ? "" : " ") + host.name + ":" + std::to_string(host.slots);
  return text;
}

std::string list(std::string_view written) {
  std::vector<Host> hosts;
  const Result result = parse_hosts(written, "--hosts", hosts);
  return text_of(result, hosts);
}

std::string file(std::string_view written) {
  std::vector<Host> hosts;
  const Result result = parse_host_file(written, "machines", hosts);
  return text_of(result, hosts);
}

std::string slurm(std::string_view nodes, std::string_view tasks) {
  std::vector<Host> hosts;
  const Result result = parse_slurm_nodes(nodes, tasks, hosts);
  return text_of(result, hosts);
}

TEST(Hosts, a_list_names_machines_and_their_slots) {
  EXPECT_EQ(list("a"), "a:0");
  EXPECT_EQ(list("a:4,b:2"), "a:4 b:2");
  EXPECT_EQ(list("a,user@b.example.org:3,"), "a:0 user@b.example.org:3");
  EXPECT_EQ(list("a,b,a"), "a:2 b:0") << "a name counts as often as it is written";
  EXPECT_EQ(list("a:2,a:3"), "a:5");
  EXPECT_EQ(list("fe80::1,[fe80::2]:4"), "fe80::1:0 [fe80::2]:4");
}

TEST(Hosts, other_lists_are_refused) {
  for (const char* written :
       {"", ",", "a:", "a:0", "a:x", "a:4x", "a:99999", "-oProxyCommand=x", "a b", "a;b", "$a", "a\nb"})
    EXPECT_EQ(list(written).substr(0, 8), "refused:") << written;
  EXPECT_NE(list("a:0").find("a:0: expected the number of slots"), std::string::npos) << list("a:0");
}

TEST(Hosts, a_file_has_a_machine_on_each_line) {
  EXPECT_EQ(file("a\nb:4\n"), "a:0 b:4");
  EXPECT_EQ(file("# all of them\n\n a slots=4 max_slots=8 # the first\r\nb slots=2\nb slots=1"), "a:4 b:3");
  EXPECT_NE(file("a\nb slots=none\n").find("machines:2"), std::string::npos) << file("a\nb slots=none\n");
  EXPECT_EQ(file("\n# nothing\n").substr(0, 8), "refused:");
}

TEST(Hosts, slurm_writes_ranges) {
  EXPECT_EQ(slurm("n1", ""), "n1:0");
  EXPECT_EQ(slurm("n[1-3]", "2(x2),5"), "n1:2 n2:2 n3:5");
  EXPECT_EQ(slurm("node[08-11,20],login", "4"), "node08:4 node09:0 node10:0 node11:0 node20:0 login:0");
  EXPECT_EQ(slurm("rack1-[1,3]-x", "1(x2)"), "rack1-1-x:1 rack1-3-x:1");
  for (const char* nodes : {"n[1", "n[3-1]", "n[a-b]", "a[1-2][1-2]", "n[1-99999999]"})
    EXPECT_EQ(slurm(nodes, "").substr(0, 8), "refused:") << nodes;
  for (const char* tasks : {"x", "2(x", "2(x)", "2(xy)", "0"})
    EXPECT_EQ(slurm("n1", tasks).substr(0, 8), "refused:") << tasks;
}

} // namespace
} // namespace near::machines
