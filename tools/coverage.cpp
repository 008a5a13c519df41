// `near coverage`: uses the same generated table from which the library is built.
#include "surface/functions.h"
#include "tools/commands.h"

#include <cstdio>

namespace near::tools {

int coverage(bool all) {
  unsigned done_of_all = 0;
  for (const auto& chapter : surface::chapters) {
    unsigned done = 0, total = 0;
    for (unsigned index = 1; index <= surface::function_count; ++index) {
      if (surface::functions[index].chapter != chapter.number) continue;
      ++total;
      done += surface::functions[index].done;
    }
    std::printf("%2u  %-44s %4u of %4u\n", chapter.number, chapter.title, done, total);
    if (all)
      for (unsigned index = 1; index <= surface::function_count; ++index)
        if (surface::functions[index].chapter == chapter.number)
          std::printf("      %-44s %s\n", surface::functions[index].name,
                      surface::functions[index].done ? "yes" : "no");
    done_of_all += done;
  }
  std::printf("    %-44s %4u of %4u\n", "all", done_of_all, surface::function_count);
  return 0;
}

} // namespace near::tools
