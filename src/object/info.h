// Info objects: ordered (key, value) pairs of text. Source: MPI 5.0, chapter 10.
#pragma once

#include "object/error.h"
#include "object/object.h"

#include <string>
#include <utility>
#include <vector>

namespace near::object {

struct Info : Object {
  std::vector<std::pair<std::string, std::string>> entries;
  const std::string* find(std::string_view key) const;
  void set(std::string_view key, std::string_view value);
  bool remove(std::string_view key);
};

Pool<Info, Kind::info>& infos();
/// Finds an info object, predefined (MPI_INFO_ENV) or not; nullptr otherwise.
Info* find_info(MPI_Info handle);
Info* make_info();
/// Makes an info object with the same entries.
Info* copy_info(const Info& from);
/// The object behind MPI_INFO_ENV; filled at initialisation.
Info& environment_info();
void release(Info* info);

inline MPI_Info public_handle(const Info& info) {
  return reinterpret_cast<MPI_Info>(static_cast<std::uintptr_t>(info.handle));
}

} // namespace near::object
