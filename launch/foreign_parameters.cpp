// Other libraries' parameters on the command line: Open MPI's (`--mca name value`), and the variables with
// which Intel MPI determines where ranks run (`-genv I_MPI_PIN_DOMAIN=core`).
#include "launch/option_table.h"
#include "os/affinity.h"

#include <algorithm>

namespace near::launch {
namespace {

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_yes(const std::string& value) {
  return is_one_of(value, {"1", "true", "yes", "on", "enable", "enabled"});
}
bool is_no(const std::string& value) {
  return is_one_of(value, {"0", "false", "no", "off", "disable", "disabled"});
}

Result map_by(Parsing& at, const std::string& value) {
  return planning::parse_map_by(value, at.command.mapping);
}
Result rank_by(Parsing& at, const std::string& value) {
  return planning::parse_rank_by(value, at.command.mapping);
}
Result bind_to(Parsing& at, const std::string& value) {
  return planning::parse_bind_to(value, at.command.mapping);
}

// Sets a flag of the command from a parameter that is on or off.
#define NEAR_SWITCH(what)                                                                                    \
  [](Parsing& at, const std::string& value) {                                                                \
    at.command.what = is_yes(value);                                                                         \
    return Result();                                                                                         \
  }

// A parameter with a meaning here; its name is without the prefix of Open MPI's run-time systems.
struct Meaning {
  const char* name;
  Result (*act)(Parsing& at, const std::string& value);
};
const Meaning meanings[] = {
    {"rmaps_default_mapping_policy", map_by},
    {"rmaps_base_mapping_policy", map_by},
    {"rmaps_base_ranking_policy", rank_by},
    {"rmaps_default_ranking_policy", rank_by},
    {"hwloc_base_binding_policy", bind_to},
    {"hwloc_default_binding_policy", bind_to},
    {"rmaps_base_oversubscribe", NEAR_SWITCH(mapping.may_share)},
    {"rmaps_base_no_oversubscribe", NEAR_SWITCH(mapping.must_not_share)},
    {"hwloc_base_report_bindings", NEAR_SWITCH(report_bindings)},
    {"timestamp_output", NEAR_SWITCH(timestamps)},
    {"tag_output",
     [](Parsing& at, const std::string& value) {
       at.command.prefix = is_yes(value) ? "[%r] " : "";
       return Result();
     }},
};
#undef NEAR_SWITCH

// Frameworks that select Open MPI's internal implementations. The selection changes no result, so ignoring
// it needs no remark.
constexpr const char* internal_frameworks[] = {
    "accelerator", "allocator", "bml",       "btl",      "coll",       "common", "crs",     "errmgr",
    "ess",         "fbtl",      "fcoll",     "filem",    "fs",         "gds",    "grpcomm", "hook",
    "if",          "io",        "iof",       "mca",      "memchecker", "memcpy", "memory",  "mpool",
    "mtl",         "odls",      "oob",       "op",       "opal",       "osc",    "part",    "patcher",
    "plm",         "pmix",      "pml",       "pstat",    "ptl",        "ras",    "rcache",  "reachable",
    "rmaps",       "rml",       "routed",    "schizo",   "sharedfp",   "shmem",  "smsc",    "state",
    "threads",     "topo",      "treematch", "vprotocol"};

// Expands "0-2,5" to "0,1,2,5": each processor is for one rank. Text that is not a list of ranges is
// returned unchanged, so that the message can quote it.
std::string one_by_one(const std::string& list) {
  std::string made;
  for (const auto& item : split(list, ',')) {
    os::CpuSet range;
    if (!os::parse_cpus(item, range).ok() || range.empty()) return list;
    for (unsigned cpu : range.members()) made += (made.empty() ? "" : ",") + std::to_string(cpu);
  }
  return made;
}

} // namespace

Result use_mca_parameter(Parsing& at, const std::string& name, const std::string& value) {
  std::string bare = name;
  for (const char* run_time : {"orte_", "prte_"})
    if (bare.starts_with(run_time)) bare = bare.substr(5);
  for (const auto& meaning : meanings)
    if (bare == meaning.name) return meaning.act(at, value);
  auto framework = bare.substr(0, bare.find('_'));
  bool internal = std::any_of(std::begin(internal_frameworks), std::end(internal_frameworks),
                              [&](const char* each) { return framework == each; });
  if (!internal && !bare.ends_with("_verbose") &&
      !is_one_of(bare, {"mpi_yield_when_idle", "mpi_leave_pinned"}))
    at.command.remarks.push_back(
        base::format("{} {}: there is no such parameter here; it is ignored", at.option, name));
  return {};
}

Result use_intel_variable(Parsing& at, const std::string& name, const std::string& value) {
  constexpr std::string_view pinning = "I_MPI_PIN";
  if (!name.starts_with(pinning)) return {};
  auto& mapping = at.command.mapping;
  std::string small = value;
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (name == pinning) {
    if (is_no(small)) return planning::parse_bind_to("none", mapping);
    if (is_yes(small)) return {};
  } else if (name == "I_MPI_PIN_DOMAIN") {
    auto unit = small.substr(0, small.find(':'));
    if (unit == "auto" || unit == "omp") return {}; // the default here too
    if (unit == "cache2") return planning::parse_bind_to("l2", mapping);
    if (unit == "cache3" || unit == "cache") return planning::parse_bind_to("l3", mapping);
    if (unit == "sock") return planning::parse_bind_to("package", mapping);
    if (is_one_of(unit, {"core", "socket", "numa", "node"})) return planning::parse_bind_to(unit, mapping);
  } else if (is_one_of(name, {"I_MPI_PIN_PROCESSOR_LIST", "I_MPI_PIN_PROCS"}) &&
             small.find_first_not_of("0123456789,-") == std::string::npos) {
    mapping.bind_chosen = true;
    return planning::use_processors(one_by_one(small), base::format("{} {}={}", at.option, name, value),
                                    mapping);
  }
  at.command.remarks.push_back(
      base::format("{} {}={} says nothing to NearMPI; --bind-to and --map-by say where ranks run", at.option,
                   name, value));
  return {};
}

} // namespace near::launch
