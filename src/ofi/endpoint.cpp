#include "ofi/endpoint.h"

#include "base/text.h"
#include "os/nic.h"
#include "os/random_bytes.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <netinet/in.h>
#include <string_view>
#include <utility>

namespace near::ofi {

namespace {

constexpr std::uint32_t api = FI_VERSION(1, 15);

struct FreeInfo {
  void operator()(fi_info* info) const {
    const Library* library = nullptr;
    if (load_library(library).ok()) library->freeinfo(info);
  }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// What we require of a network.
Info requirements(const Library& library) {
  Info hints(library.dupinfo(nullptr));
  if (hints == nullptr) return hints;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return hints;
}

std::string_view text(const char* name) { return name == nullptr ? std::string_view() : name; }

/// Whether `name` is the wanted provider, or a layered one such as "tcp;ofi_rxm" that begins with it.
bool is_provider(std::string_view name, std::string_view wanted) {
  return wanted.empty() || name == wanted ||
         (name.starts_with(wanted) && name.substr(wanted.size()).starts_with(";"));
}

bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return name.starts_with(each); });
}

/// The reach of an endpoint, according to its address.
struct Reach {
  bool machine = false; ///< only this machine
  bool link = false;    ///< only the machines on the same wire, by an address that also exists on other wires
  bool is_ipv6 = false;
};

Reach reach_of(const fi_info& info) {
  if (info.src_addr == nullptr) return {};
  if (info.addr_format == FI_SOCKADDR_IN) {
    const auto* address = static_cast<const std::uint8_t*>(info.src_addr) + offsetof(sockaddr_in, sin_addr);
    return {.machine = address[0] == 127, .link = address[0] == 169 && address[1] == 254};
  }
  if (info.addr_format != FI_SOCKADDR_IN6) return {};
  const auto* address = static_cast<const std::uint8_t*>(info.src_addr) + offsetof(sockaddr_in6, sin6_addr);
  const bool is_loopback = std::all_of(address, address + 15, [](auto byte) { return byte == 0; });
  return {is_loopback, address[0] == 0xfe && (address[1] & 0xc0) == 0x80, true};
}

/// Whether no other machine can be reached.
bool ends_here(const fi_info& info) {
  return reach_of(info).machine || text(info.domain_attr->name) == "lo" ||
         text(info.fabric_attr->prov_name) == "shm";
}

/// The fewer the better; libfabric's own order, the fastest first, decides among equals. Networks that end at this machine, that
/// have an address only on their own wire, or that join containers, are used only if there is no other. In libfabric 1.17, TCP
/// without connections was two providers one on top of the other, which take three times as long as `net`, their successor. IPv4
/// comes first, so that all ranks choose the same.
int drawbacks_of(const fi_info& info) {
  const std::string_view provider = text(info.fabric_attr->prov_name), domain = text(info.domain_attr->name);
  const Reach reach = reach_of(info);
  const bool joins_containers =
      begins_with_any(domain, {"docker", "veth", "virbr", "br-", "cni", "flannel", "podman", "lxc"});
  return (ends_here(info) ? 16 : 0) + (reach.link ? 8 : 0) + (joins_containers ? 4 : 0) +
         (provider == "tcp;ofi_rxm" ? 2 : 0) + (reach.is_ipv6 ? 1 : 0);
}

/// The NIC of a network, in the form for os::node_of_nic().
std::string nic_of(const fi_info& info) {
  if (info.nic == nullptr || info.nic->bus_attr == nullptr || info.nic->bus_attr->bus_type != FI_BUS_PCI)
    return std::string(text(info.domain_attr->name));
  const fi_pci_attr& at = info.nic->bus_attr->attr.pci;
  return base::format("{:04x}:{:02x}:{:02x}.{:x}", at.domain_id, at.bus_id, at.device_id, at.function_id);
}

/// The distance of these processors from the NIC; 0 if unknown.
unsigned distance_to_nic(const fi_info& info, const os::CpuSet& cpus) {
  return os::distance_to_node(os::node_of_nic(nic_of(info)), cpus);
}

/// Whether both lead to the same network, so that the ranks of a job may use either.
bool lead_to_same(const fi_info& one, const fi_info& other) {
  return text(one.fabric_attr->prov_name) == text(other.fabric_attr->prov_name) &&
         text(one.fabric_attr->name) == text(other.fabric_attr->name) && one.addr_format == other.addr_format;
}

/// Whether the provider has a descriptor that wakes a process. In libfabric 1.17, that of `net` stays readable, and its
/// thread competes with those that poll.
bool wakes(const fi_info& info) { return text(info.fabric_attr->prov_name) != "net"; }

/// Sockets copy in any case, and a round trip takes as long as copying 100 KiB. Other networks read without a copy; the layer that
/// turns TCP into one of them (ofi_rxm) takes four times as long for messages of more than 16 KiB (doc/adr/0039).
std::size_t longest_eager_of(const fi_info& info) {
  const std::string_view provider = text(info.fabric_attr->prov_name);
  return provider == "net" || provider == "tcp" ? 64 << 10 : least_eager;
}

} // namespace

Result Endpoint::find(const Choice& choice) {
  const Library* library = nullptr;
  NEAR_TRY(load_library(library));
  const Info hints = requirements(*library);
  if (hints == nullptr) return base::fail(base::Code::no_memory, "no memory to look for networks");
  fi_info* found = nullptr;
  const int error = library->getinfo(api, nullptr, nullptr, 0, hints.get(), &found);
  if (error != 0 && error != -FI_ENODATA) return fail_fabric("fi_getinfo", error);
  const Info all(found);
  const fi_info* best = nullptr;
  os::CpuSet cpus;
  (void)os::affinity_of(0, cpus).ok();
  auto is_better = [&](const fi_info& each) {
    if (best == nullptr || drawbacks_of(each) != drawbacks_of(*best))
      return best == nullptr || drawbacks_of(each) < drawbacks_of(*best);
    return lead_to_same(each, *best) && distance_to_nic(each, cpus) < distance_to_nic(*best, cpus) &&
           distance_to_nic(each, cpus) != 0;
  };
  std::vector<std::string> names;
  for (const fi_info* each = found; each != nullptr; each = each->next) {
    const std::string_view provider = text(each->fabric_attr->prov_name);
    const std::string_view domain = text(each->domain_attr->name);
    auto name = base::format("{} on {}", provider, domain);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    const bool admitted =
        is_provider(provider, choice.provider) && (choice.domain.empty() || domain == choice.domain);
    if (admitted && is_better(*each)) best = each;
  }
  if (best == nullptr) {
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    return base::fail(base::Code::unsupported, "libfabric finds no network{}{}{}{}; there are: {}",
                      choice.provider.empty() ? "" : " with the provider ", choice.provider,
                      choice.domain.empty() ? "" : " on ", choice.domain, names.empty() ? "none" : list);
  }
  info_ = library->dupinfo(best);
  if (info_ == nullptr) return base::fail(base::Code::no_memory, "no memory to describe a network");
  if (choice.order_writes) order_writes(*library);
  longest_eager_ = longest_eager_of(*info_);
  take_tags(*library);
  nic_distance_ = distance_to_nic(*info_, cpus);
  return {};
}

/// Switches to the same network with what `change` requests; returns false if there is none.
bool Endpoint::replace(const Library& library, void (*change)(fi_info& hints)) {
  const Info hints(library.dupinfo(info_));
  if (hints == nullptr) return false;
  change(*hints);
  fi_info* found = nullptr;
  if (library.getinfo(api, nullptr, nullptr, 0, hints.get(), &found) != 0) return false;
  const Info replaced(std::exchange(info_, found));
  return true;
}

/// Requests that messages arrive after earlier writes.
void Endpoint::order_writes(const Library& library) {
  orders_writes_ = replace(library, [](fi_info& hints) {
    hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
  });
}

/// Requests tags if they are useful: other networks read without a copy.
void Endpoint::take_tags(const Library& library) {
  if (longest_eager_ == least_eager || !sends_parts()) return;
  has_tags_ = replace(library, [](fi_info& hints) {
    hints.caps |= FI_TAGGED;
    hints.tx_attr->caps = hints.rx_attr->caps = 0; // those that follow
  });
}

Result Endpoint::open_parts() {
  const Library* library = nullptr;
  NEAR_TRY(load_library(library));
  auto fine = [](const char* call, int error) { return error == 0 ? Result() : fail_fabric(call, error); };
  NEAR_TRY(fine("fi_fabric", library->fabric(info_->fabric_attr, &fabric_, nullptr)));
  NEAR_TRY(fine("fi_domain", fi_domain(fabric_, info_, &domain_, nullptr)));
  fi_av_attr tables{};
  tables.type = FI_AV_TABLE;
  NEAR_TRY(fine("fi_av_open", fi_av_open(domain_, &tables, &addresses_, nullptr)));
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_MSG;
  queue.size = info_->tx_attr->size + info_->rx_attr->size;
  queue.wait_obj = FI_WAIT_FD;
  const bool has_descriptor = wakes(*info_) && fi_cq_open(domain_, &queue, &queue_, nullptr) == 0;
  queue.wait_obj = FI_WAIT_NONE;
  if (!has_descriptor) NEAR_TRY(fine("fi_cq_open", fi_cq_open(domain_, &queue, &queue_, nullptr)));
  NEAR_TRY(fine("fi_endpoint", fi_endpoint(domain_, info_, &endpoint_, nullptr)));
  NEAR_TRY(fine("fi_ep_bind", fi_ep_bind(endpoint_, &addresses_->fid, 0)));
  NEAR_TRY(fine("fi_ep_bind", fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV)));
  NEAR_TRY(fine("fi_enable", fi_enable(endpoint_)));
  if (has_descriptor) NEAR_TRY(fine("fi_control", fi_control(&queue_->fid, FI_GETWAIT, &descriptor_)));
  std::size_t bytes = 0;
  (void)fi_getname(&endpoint_->fid, nullptr, &bytes);
  std::vector<std::byte> own(bytes);
  NEAR_TRY(fine("fi_getname", fi_getname(&endpoint_->fid, own.data(), &bytes)));
  const std::string kind = kind_of_address();
  const auto kind_bytes = std::as_bytes(std::span(kind));
  address_.assign(kind_bytes.begin(), kind_bytes.end());
  address_.insert(address_.end(), own.begin(), own.end());
  return {};
}

Result Endpoint::open(const Choice& choice) {
  NEAR_TRY(find(choice));
  reorders_ = choice.reorder;
  const std::string network = name();
  Result opened = open_parts();
  if (opened.ok()) return {};
  const std::string reason(base::failure_text());
  close();
  return base::fail(opened.code(), "the network {} cannot be used: {}", network, reason);
}

void Endpoint::close() {
  auto end = [](auto*& part) {
    if (part != nullptr) fi_close(&part->fid);
    part = nullptr;
  };
  end(endpoint_);
  end(queue_);
  end(addresses_);
  end(domain_);
  end(fabric_);
  const Info info(std::exchange(info_, nullptr));
  descriptor_ = -1;
  address_.clear();
}

/// The provider, the form of its addresses, and the longest eager message, for which peers post packets: what the endpoints of a
/// job must have in common. Ends with a zero.
std::string Endpoint::kind_of_address() const {
  return base::format("{}/{}/{}{}{}", text(info_->fabric_attr->prov_name), info_->addr_format, longest_eager_,
                      has_tags_ ? "/tags" : "", ends_here(*info_) ? "/own machine only" : "") +
         '\0';
}

Result Endpoint::insert(std::span<const std::byte> address, fi_addr_t& peer) {
  const std::string kind = kind_of_address();
  const bool same = address.size() == address_.size() &&
                    std::equal(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(kind.size()),
                               address_.begin());
  if (!same) {
    const std::string_view all(reinterpret_cast<const char*>(address.data()), address.size());
    return base::fail(
        base::Code::invalid,
        "the address of another process is of the network \"{}\", and this process uses {}; name the "
        "same network for all (NEAR_NETWORK)",
        base::printable(all.substr(0, all.find('\0'))), name());
  }
  const int inserted = fi_av_insert(addresses_, address.data() + kind.size(), 1, &peer, 0, nullptr);
  return inserted == 1 ? Result() : fail_fabric("fi_av_insert", inserted < 0 ? inserted : -FI_EINVAL);
}

std::string Endpoint::name() const {
  return base::format("{} on {}", text(info_->fabric_attr->prov_name), text(info_->domain_attr->name));
}

bool Endpoint::can_sleep() {
  fid* waited = &queue_->fid;
  return held_.empty() && (descriptor_ < 0 || fi_trywait(fabric_, &waited, 1) == 0);
}

std::int64_t Endpoint::write(const void* bytes_at, std::size_t bytes, void* local, fi_addr_t to,
                             std::uint64_t address, std::uint64_t key, Operation& operation) {
  iovec from{const_cast<void*>(bytes_at), bytes};
  fi_rma_iov there{address, bytes, key};
  fi_msg_rma message{};
  message.msg_iov = &from;
  message.desc = &local;
  message.iov_count = 1;
  message.addr = to;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = &operation;
  return fi_writemsg(endpoint_, &message, FI_COMPLETION | (orders_writes_ ? 0 : FI_DELIVERY_COMPLETE));
}

Result Endpoint::register_memory(void* address, std::size_t bytes, std::uint64_t access, fid_mr*& memory) {
  std::uint64_t key = 0;
  if ((info_->domain_attr->mr_mode & FI_MR_PROV_KEY) == 0) {
    // Unpredictable, so that nobody else can read the memory.
    NEAR_TRY(os::fill_random(&key, sizeof key));
    if (info_->domain_attr->mr_key_size < sizeof key)
      key &= (std::uint64_t{1} << 8 * info_->domain_attr->mr_key_size) - 1;
  }
  const int error = fi_mr_reg(domain_, address, bytes, access, 0, key, 0, &memory, nullptr);
  return error == 0 ? Result() : fail_fabric("fi_mr_reg", error);
}

Result Endpoint::expose(void* address, std::size_t bytes, bool writable, fid_mr*& memory) {
  return register_memory(address, bytes, FI_REMOTE_READ | (writable ? FI_REMOTE_WRITE : 0), memory);
}

Result Endpoint::prepare(void* address, std::size_t bytes, fid_mr*& memory) {
  memory = nullptr;
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0) return {};
  return register_memory(address, bytes, FI_SEND | FI_RECV | FI_READ | FI_WRITE, memory);
}

void Endpoint::release(fid_mr* memory) {
  if (memory != nullptr) fi_close(&memory->fid);
}

/// Takes some of the held messages, in any order.
void Endpoint::reorder(std::span<Completion> into, std::size_t& count) {
  auto next = [&] {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
    return random_ >> 33;
  };
  if (next() % 2 == 0) return; // more arrive meanwhile
  while (!held_.empty() && count < into.size() && next() % 4 != 0) {
    const auto which = held_.begin() + static_cast<std::ptrdiff_t>(next() % held_.size());
    into[count++] = *which;
    held_.erase(which);
  }
}

void Endpoint::hold(std::span<Completion> from, std::size_t& count) {
  std::size_t kept = 0;
  for (const Completion& each : from.first(count)) {
    const bool is_message =
        each.operation != nullptr && each.operation->what == Operation::What::receive && each.error == 0;
    if (is_message)
      held_.push_back(each);
    else
      from[kept++] = each;
  }
  count = kept;
}

Result Endpoint::take(std::span<Completion> into, std::size_t& count) {
  std::array<fi_cq_msg_entry, most_completions> entries;
  count = 0;
  if (reorders_) reorder(into, count);
  if (count != 0) return {};
  const auto got =
      static_cast<std::int64_t>(fi_cq_read(queue_, entries.data(), std::min(entries.size(), into.size())));
  if (got == -FI_EAGAIN) return {};
  if (got == -FI_EAVAIL) {
    fi_cq_err_entry failed{};
    const auto read = static_cast<std::int64_t>(fi_cq_readerr(queue_, &failed, 0));
    if (read == -FI_EAGAIN) return {};
    if (read < 0) return fail_fabric("fi_cq_readerr", read);
    into[count++] = {static_cast<Operation*>(failed.op_context), 0, failed.err};
    return {};
  }
  if (got < 0) return fail_fabric("fi_cq_read", got);
  for (const auto& entry : std::span(entries).first(static_cast<std::size_t>(got)))
    into[count++] = {static_cast<Operation*>(entry.op_context), entry.len, 0};
  if (reorders_) hold(into, count);
  return {};
}

} // namespace near::ofi
