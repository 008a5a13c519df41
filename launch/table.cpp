#include "launch/table.h"

#include "base/text.h"
#include "boot/pmi.h"
#include "os/descriptor.h"
#include "os/memory.h"

#include <algorithm>

namespace near::launch {
namespace {

/// A rank's requests are far shorter. A rank that sends more is cut off: ranks are not trusted.
constexpr std::size_t longest_line = 1 << 16;

/// The value of the last field, which may contain spaces.
std::string value_of(const std::string& line) {
  const std::size_t at = line.find(" value=");
  return at == std::string::npos ? "" : line.substr(at + 7);
}

} // namespace

base::Result Table::add(os::Poller& poller, std::uint64_t key, int& for_rank) {
  poller_ = &poller;
  Client client;
  NEAR_TRY(os::make_sockets(client.descriptor, for_rank));
  clients_.push_back(std::move(client));
  return poller.add(clients_.back().descriptor, key);
}

void Table::readable(unsigned row) {
  Client& client = clients_[row];
  if (client.descriptor < 0) return;
  char buffer[4096];
  std::size_t got = 0;
  switch (os::read_some(client.descriptor, buffer, sizeof buffer, got)) {
  case os::Transfer::some: break;
  case os::Transfer::nothing_now: return;
  default: close(client); return; // the rank has ended, or has been replaced by another program
  }
  client.received.append(buffer, got);
  for (std::size_t end = 0; client.descriptor >= 0 && end != std::string::npos;) {
    end = client.received.find('\n');
    if (end == std::string::npos) break;
    const std::string line = client.received.substr(0, end);
    client.received.erase(0, end + 1);
    serve(client, line);
  }
  if (client.received.size() > longest_line) close(client);
}

void Table::serve(Client& client, const std::string& line) {
  const std::string_view command = boot::field_of(line, "cmd");
  if (command == "init") {
    answer(client, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1");
  } else if (command == "get_my_kvsname") {
    answer(client, "cmd=my_kvsname rc=0 kvsname=near");
  } else if (command == "get_appnum") {
    answer(client, "cmd=appnum rc=0 appnum=0"); // ranks learn it from their environment
  } else if (command == "put") {
    control_.send(machines::Kind::put,
                  machines::BodyWriter().text(boot::field_of(line, "key")).text(value_of(line)).body());
    answer(client, "cmd=put_result rc=0");
  } else if (command == "get") {
    answer_get(client, std::string(boot::field_of(line, "key")));
  } else if (command == "barrier_in") {
    enter_fence(client);
  } else if (command == "finalize") {
    answer(client, "cmd=finalize_ack");
  } else {
    answer(client, "cmd=unknown rc=-1");
  }
}

void Table::answer_get(Client& client, const std::string& key) {
  if (const auto found = known_.find(key); found != known_.end()) {
    answer(client, base::format("cmd=get_result rc=0 value={}", found->second));
    return;
  }
  const bool asked = std::any_of(clients_.begin(), clients_.end(),
                                 [&](const Client& other) { return other.awaited == key; });
  client.awaited = key;
  if (!asked) control_.send(machines::Kind::get, machines::BodyWriter().text(key).body());
}

void Table::enter_fence(Client& client) {
  client.in_fence = true;
  if (clients_.size() == rows_ &&
      std::all_of(clients_.begin(), clients_.end(), [](const Client& each) { return each.in_fence; }))
    control_.send(machines::Kind::fence);
}

void Table::told(const machines::Frame& frame) {
  if (frame.kind == machines::Kind::fence_over) {
    for (Client& client : clients_) {
      if (client.in_fence) answer(client, "cmd=barrier_out rc=0");
      client.in_fence = false;
    }
    return;
  }
  machines::BodyReader reader(frame.body);
  const std::string key = reader.text();
  const bool exists = reader.number() != 0;
  const std::string value = reader.text();
  if (!reader.ok()) return;
  if (exists) known_[key] = value;
  for (Client& client : clients_) {
    if (client.awaited.empty() || client.awaited != key) continue;
    client.awaited.clear();
    answer(client, exists ? base::format("cmd=get_result rc=0 value={}", value)
                          : "cmd=get_result rc=-1 msg=key_not_found");
  }
}

void Table::answer(Client& client, std::string_view line) {
  if (client.descriptor < 0) return;
  const std::string sent = std::string(line) + "\n";
  std::size_t wrote = 0;
  // A rank has one request at a time, so its socket has room; a rank
  // that does not read its answers is cut off.
  if (os::write_some(client.descriptor, sent.data(), sent.size(), wrote) != os::Transfer::some ||
      wrote != sent.size())
    close(client);
}

void Table::close(Client& client) {
  poller_->remove(client.descriptor);
  os::close_descriptor(client.descriptor);
  client.descriptor = -1;
}

} // namespace near::launch
