// Each info object has only a few entries, so they form a vector, in the order of MPI_Info_set, that is
// searched linearly.
#include "object/info.h"

#include <algorithm>

namespace near::object {

namespace {

constinit Immortal<Pool<Info, Kind::info>> info_pool;

constexpr auto environment_handle = static_cast<HandleBits>(0x131);

} // namespace

const std::string* Info::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

void Info::set(std::string_view key, std::string_view value) {
  for (auto& [name, present] : entries)
    if (name == key) {
      present = value;
      return;
    }
  entries.emplace_back(key, value);
}

bool Info::remove(std::string_view key) {
  auto at =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  if (at == entries.end()) return false;
  entries.erase(at);
  return true;
}

Pool<Info, Kind::info>& infos() { return info_pool.value; }

Info& environment_info() {
  static Info& info = *[] {
    auto* made = new Info;
    made->kind = Kind::info;
    made->predefined = true;
    made->handle = environment_handle;
    return made;
  }();
  return info;
}

Info* find_info(MPI_Info handle) {
  auto bits = reinterpret_cast<std::uintptr_t>(handle);
  if (bits == environment_handle) return &environment_info();
  return info_pool.value.find(bits);
}

Info* make_info() { return info_pool.value.make(); }

Info* copy_info(const Info& from) {
  Info* made = make_info();
  if (made != nullptr) made->entries = from.entries;
  return made;
}

void release(Info* info) {
  if (info->predefined) return;
  if (info->references.add_relaxed(-1) == 1) info_pool.value.destroy(info);
}

} // namespace near::object
