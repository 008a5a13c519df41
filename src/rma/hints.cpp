// Hints of windows: which ones are stored, and what is in force. Source: MPI 5.0, section 12.2.
#include "rma/rma.h"

#include <algorithm>

namespace near::rma {

namespace {

constexpr std::string_view truths[] = {"no_locks", "same_size", "same_disp_unit", "alloc_shared_noncontig"};
constexpr std::string_view ordering = "accumulate_ordering", operations = "accumulate_ops",
                           granularity = "mpi_accumulate_granularity";

bool is_truth(std::string_view value) { return value == "true" || value == "false"; }

bool is_ordering(std::string_view value) {
  if (value == "none") return true;
  for (std::size_t at = 0; at <= value.size();) {
    std::size_t end = std::min(value.find(',', at), value.size());
    std::string_view word = value.substr(at, end - at);
    if (word != "rar" && word != "raw" && word != "war" && word != "waw") return false;
    at = end + 1;
  }
  return true;
}

} // namespace

Result apply_hints(Window& window, const Info& info) {
  auto keep = [&](std::string_view name, bool valid, const std::string* value) -> Result {
    if (value == nullptr || !valid) return {};
    if (window.info == nullptr) window.info = object::make_info();
    if (window.info == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for a window's hints");
    window.info->set(name, *value);
    return {};
  };
  for (std::string_view name : truths) {
    const std::string* value = info.find(name);
    NEAR_TRY(keep(name, value != nullptr && is_truth(*value), value));
  }
  const std::string* value = info.find(ordering);
  NEAR_TRY(keep(ordering, value != nullptr && is_ordering(*value), value));
  value = info.find(operations);
  return keep(operations, value != nullptr && (*value == "same_op" || *value == "same_op_no_op"), value);
}

Info* hints_in_force(const Window& window) {
  Info* made = object::make_info();
  if (made == nullptr) return nullptr;
  for (std::string_view name : truths) made->set(name, "false");
  made->set(ordering, "rar,raw,war,waw");
  made->set(operations, "same_op_no_op");
  made->set(granularity, "0");
  if (window.info != nullptr)
    for (const auto& [key, value] : window.info->entries) made->set(key, value);
  return made;
}

} // namespace near::rma
