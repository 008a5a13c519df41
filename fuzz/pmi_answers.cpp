// A launcher's answers by PMI-1: whatever it sends, the client ends with a result, and reads nothing that is not there.
#include "boot/pmi.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using namespace near;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::uint32_t> machines;
  if (boot::machines_of(text, 40, machines).ok() && machines.size() != 40) std::abort();
  for (const char* key : {"cmd", "rc", "value", ""}) {
    const std::string_view field = boot::field_of(text, key);
    if (!field.empty() &&
        (field.data() < text.data() || field.data() + field.size() > text.data() + text.size()))
      std::abort();
  }
  // All answers at once, then the end.
  constexpr std::size_t longest = 60'000;
  if (size > longest) return 0;
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return 0;
  const std::string answers = "cmd=response_to_init rc=0 pmi_version=1\n" + text;
  if (send(ends[1], answers.data(), answers.size(), MSG_DONTWAIT) < 0) std::abort();
  shutdown(ends[1], SHUT_WR);
  std::string descriptor = "PMI_FD=" + std::to_string(ends[0]), rank = "PMI_RANK=1", number = "PMI_SIZE=4";
  std::array<char*, 4> environment{descriptor.data(), rank.data(), number.data(), nullptr};
  boot::Pmi pmi;
  std::string value;
  if (pmi.connect(environment.data()).ok() && pmi.get("key", value).ok() && pmi.fence().ok())
    (void)pmi.finalize();
  close(ends[0]);
  close(ends[1]);
  return 0;
}
