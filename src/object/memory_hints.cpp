#include "object/memory_hints.h"

#include "abi/types.h"
#include "base/checked.h"
#include "base/knob.h"
#include "base/text.h"

#include <algorithm>
#include <charconv>

namespace near::object {

namespace {

constexpr std::string_view alignment_key = "mpi_minimum_memory_alignment",
                           kinds_key = "mpi_memory_alloc_kinds",
                           asserted_key = "mpi_assert_memory_alloc_kinds", node_key = "near_memory_node",
                           tier_key = "near_memory_tier", page_key = "near_page_size";
/// Includes keys that are valid but have no meaning for MPI_Alloc_mem, so that they cause no remark.
constexpr std::string_view known[] = {alignment_key, kinds_key, asserted_key, node_key, tier_key, page_key,
                                      // for windows:
                                      "no_locks", "accumulate_ordering", "accumulate_ops",
                                      "mpi_accumulate_granularity", "same_size", "same_disp_unit",
                                      "alloc_shared_noncontig"};
constexpr std::string_view tier_names[] = {"dram", "hbm", "cxl"};
static_assert(std::size(tier_names) == segment::tiers);
/// The standard's memory kinds, with the restrictors of memory from MPI_Alloc_mem and windows.
constexpr std::string_view kinds[] = {"mpi", "mpi:alloc_mem", "mpi:win_allocate", "mpi:win_allocate_shared",
                                      "system"};

bool is_kind(std::string_view word) {
  return std::find(std::begin(kinds), std::end(kinds), word) != std::end(kinds);
}

template <class Function>
void for_each_kind(std::string_view list, Function&& function) {
  for (std::size_t at = 0; at < list.size();) { // never, if the list is empty
    std::size_t end = std::min(list.find(',', at), list.size());
    function(list.substr(at, end - at));
    at = end + 1;
  }
}

template <class T>
bool read_whole(const std::string& text, T& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void read_node(const std::string& value, MemoryHints& hints) {
  int node = 0;
  if (read_whole(value, node) && node >= 0)
    hints.node = node;
  else
    hints.remarks.push_back(base::format("{}={}: expected the number of a NUMA node", node_key, value));
}

void read_tier(const std::string& value, MemoryHints& hints) {
  auto found = std::find(std::begin(tier_names), std::end(tier_names), value);
  if (found != std::end(tier_names))
    hints.tier = static_cast<segment::Tier>(found - std::begin(tier_names));
  else
    hints.remarks.push_back(base::format("{}={}: expected dram, hbm or cxl{}", tier_key, value,
                                         base::did_you_mean(value, tier_names)));
}

void read_page_size(const std::string& value, MemoryHints& hints) {
  std::uint64_t bytes = 0;
  if (base::parse_bytes(value, bytes).ok())
    hints.page_bytes = bytes;
  else
    hints.remarks.push_back(base::format("{}={}: expected bytes, such as 4k or 2m", page_key, value));
}

void read_kinds(const std::string& value, MemoryHints& hints) {
  for_each_kind(value, [&](std::string_view kind) {
    if (!is_kind(kind))
      hints.remarks.push_back(base::format("{}: there is no memory of kind {}, only mpi and system{}",
                                           kinds_key, kind, base::did_you_mean(kind, kinds)));
  });
}

} // namespace

bool are_memory_kinds(std::string_view list) {
  bool all = true;
  for_each_kind(list, [&](std::string_view kind) { all = all && is_kind(kind); });
  return all;
}

const char* tier_name(segment::Tier tier) {
  auto index = static_cast<std::size_t>(tier);
  return index < std::size(tier_names) ? tier_names[index].data() : "?";
}

base::Result read_memory_hints(const Info* info, MemoryHints& hints) {
  hints = MemoryHints{};
  if (info == nullptr) return {};
  for (const auto& [key, value] : info->entries) {
    if (key == alignment_key) {
      std::size_t alignment = 0;
      if (!read_whole(value, alignment) || !base::is_power_of_two(alignment))
        return base::fail(MPI_ERR_INFO_VALUE, "{} is \"{}\", but must be a power of two", alignment_key,
                          value);
      hints.alignment = std::max(hints.alignment, alignment);
    } else if (key == kinds_key) {
      read_kinds(value, hints);
    } else if (key == node_key) {
      read_node(value, hints);
    } else if (key == tier_key) {
      read_tier(value, hints);
    } else if (key == page_key) {
      read_page_size(value, hints);
    } else if (std::find(std::begin(known), std::end(known), key) != std::end(known)) {
      continue; // a promise of the program, or a key that windows read themselves
    } else if (key.starts_with("near_") || !base::nearest_word(key, known).empty()) {
      hints.remarks.push_back(
          base::format("info key {} means nothing here{}", key, base::did_you_mean(key, known)));
    }
  }
  return {};
}

} // namespace near::object
