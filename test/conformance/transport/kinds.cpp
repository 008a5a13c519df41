// The kinds of transports on which this program runs the suite.
#include "kind.h"

#include <cstdlib>
#include <vector>

namespace near::test {

Kind& shm_kind(int which);
Kind& socket_kind(bool beside_shm);

namespace {

const std::vector<Kind*>& kinds() {
  static const std::vector<Kind*> all = {&shm_kind(0), &shm_kind(1),        &shm_kind(2),      &shm_kind(3),
                                         &shm_kind(4), &socket_kind(false), &socket_kind(true)};
  return all;
}

} // namespace

Kind& kind_of(const std::string& name) {
  for (Kind* kind : kinds())
    if (kind->name() == name) return *kind;
  std::abort();
}

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (Kind* kind : kinds()) made.push_back(kind->name());
    return made;
  }();
  return names;
}

} // namespace near::test
