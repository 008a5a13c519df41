#include "boot/pmix.h"

#include "base/text.h"
#include "os/descriptor.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <pthread.h>

namespace near::boot {

using pmix::Info;
using pmix::Process;
using pmix::Type;
using pmix::Value;

namespace {

/// Not a status of libpmix, whose errors are negative.
constexpr int fence_runs = 1;
/// After a fence a rank's text is available. The limit is for a launcher that has lost it and would wait for it forever.
constexpr int longest_get_s = 60;
/// How long a launcher may take to answer PMIx_Abort.
constexpr std::uint64_t longest_abort_ns = 500'000'000, abort_poll_ns = 5'000'000;

Info directive(const char* key, const Value& value) {
  Info made{};
  std::strncpy(made.key, key, sizeof made.key - 1);
  made.value = value;
  return made;
}

Info flag(const char* key) {
  Value value{};
  value.type = Type::flag;
  value.flag = true;
  return directive(key, value);
}

Info known_here() { return flag(pmix::known_here_key); }

Info time_limit() {
  Value value{};
  value.type = Type::integer;
  value.integer = longest_get_s;
  return directive(pmix::timeout_key, value);
}

/// While this object lives, threads that this one starts get none of the process's signals.
class WithoutSignals {
public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

private:
  sigset_t before_{};
};

} // namespace

void Pmix::Freed::operator()(Value* value) const {
  if (value->type == Type::text) std::free(value->text);
  std::free(value);
}

bool Pmix::is_offered(char** environment) {
  const std::string_view rank = base::find_variable(environment, "PMIX_RANK").value_or("");
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), number);
  return error == std::errc{} && end == rank.data() + rank.size() &&
         !base::find_variable(environment, "PMIX_NAMESPACE").value_or("").empty();
}

Result Pmix::check(int status, const char* function) const {
  if (status == pmix::success) return {};
  const char* reason = library_->Error_string(status);
  return base::fail(base::Code::system, "{}: {}", function, reason == nullptr ? "?" : reason);
}

Process Pmix::process(std::uint32_t rank) const {
  Process made = self_;
  made.rank = rank;
  return made;
}

Result Pmix::look_up(std::uint32_t rank, const char* key, const Info& directive, Owned& value) const {
  const Process whose = process(rank);
  Value* found = nullptr;
  NEAR_TRY(check(library_->Get(&whose, key, &directive, 1, &found), "PMIx_Get"));
  value.reset(found);
  return found != nullptr ? Result() : base::fail(base::Code::invalid, "PMIx_Get: no value");
}

Result Pmix::number_of(std::uint32_t rank, const char* key, std::uint32_t& number) const {
  Owned value;
  NEAR_TRY(look_up(rank, key, known_here(), value));
  // The standard's type is the first; Slurm gives the application number as the second.
  if (value->type != Type::uint32 && value->type != Type::integer)
    return base::fail(base::Code::invalid, "{} has the type {}, which is no number", key,
                      static_cast<unsigned>(value->type));
  number = value->uint32;
  return {};
}

Result Pmix::text_of(std::uint32_t rank, const char* key, const Info& directive, std::string& text) const {
  Owned value;
  NEAR_TRY(look_up(rank, key, directive, value));
  if (value->type != Type::text || value->text == nullptr)
    return base::fail(base::Code::invalid, "{} has the type {}, which is no text", key,
                      static_cast<unsigned>(value->type));
  text = value->text;
  return {};
}

Result Pmix::connect(char** environment) {
  if (library_ == nullptr) NEAR_TRY(pmix::load_library(library_));
  int status = pmix::success;
  {
    const WithoutSignals threads_of_libpmix;
    status = library_->Init(&self_, nullptr, 0);
  }
  if (!check(status, "PMIx_Init").ok())
    return base::fail(
        base::Code::gone,
        "the PMIx launcher that has set PMIX_NAMESPACE={} does not answer ({}); if this program "
        "is not one of its job, unset PMIX_NAMESPACE and PMIX_RANK",
        base::find_variable(environment, "PMIX_NAMESPACE").value_or(""), std::string(base::failure_text()));
  rank_ = self_.rank;
  if (!number_of(pmix::all_ranks, pmix::job_size_key, size_).ok())
    return base::fail(base::Code::unsupported,
                      "the PMIx launcher does not say how many processes the job has: {}",
                      std::string(base::failure_text()));
  if (rank_ >= size_)
    return base::fail(base::Code::invalid, "PMIX_RANK={} is outside a job of {} processes", rank_, size_);
  // Not every launcher supports several programs.
  if (!number_of(rank_, pmix::application_key, application_).ok()) application_ = 0;
  return {};
}

Result Pmix::find_machines(std::vector<std::uint32_t>& machine_of) {
  // By name, since Slurm reports the numbers of machines only to their own ranks.
  std::map<std::string, std::uint32_t> machines;
  machine_of.clear();
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    std::string name;
    if (!text_of(rank, pmix::host_key, known_here(), name).ok())
      return base::fail(base::Code::unsupported,
                        "the PMIx launcher does not say on which machine rank {} is: {}", rank,
                        std::string(base::failure_text()));
    machine_of.push_back(
        machines.emplace(std::move(name), static_cast<std::uint32_t>(machines.size())).first->second);
  }
  return {};
}

Result Pmix::put(std::string_view key, std::string_view value) {
  std::string text(value);
  Value put{};
  put.type = Type::text;
  put.text = text.data();
  return check(library_->Put(pmix::global, std::string(key).c_str(), &put), "PMIx_Put");
}

Result Pmix::fence() {
  NEAR_TRY(check(library_->Commit(), "PMIx_Commit"));
  const Info collect = flag(pmix::collect_key);
  return check(library_->Fence(nullptr, 0, &collect, 1), "PMIx_Fence");
}

Result Pmix::begin_fence() {
  fence_status_.store_relaxed(fence_runs);
  const auto when_over = [](int status, void* self) {
    static_cast<Pmix*>(self)->fence_status_.store_relaxed(status);
  };
  return check(library_->Fence_nb(nullptr, 0, nullptr, 0, when_over, this), "PMIx_Fence_nb");
}

Result Pmix::look_at_fence(bool& over) {
  const int status = fence_status_.load_relaxed();
  over = status != fence_runs;
  return over ? check(status, "PMIx_Fence_nb") : Result();
}

Result Pmix::get(std::uint32_t rank, std::string_view key, std::string& value) {
  if (text_of(rank, std::string(key).c_str(), time_limit(), value).ok()) return {};
  return base::fail(base::Code::invalid, "the launcher knows nothing of {}: {}", key,
                    std::string(base::failure_text()));
}

Result Pmix::finalize() { return check(library_->Finalize(nullptr, 0), "PMIx_Finalize"); }

void Pmix::when_lost(void (*callback)()) {
  static void (*tell)() = nullptr; // a handler receives no argument of ours
  tell = callback;
  const auto handle = [](std::size_t, int, const Process*, Info*, std::size_t, Info*, std::size_t,
                         pmix::Answer answer, void* event) {
    tell();
    if (answer != nullptr) answer(pmix::event_handled, nullptr, 0, nullptr, nullptr, event);
  };
  int status = pmix::lost_connection;
  // Without the handler, nobody reports the loss, as with PMI-1.
  (void)library_->Register_event_handler(&status, 1, nullptr, 0, handle, nullptr, nullptr);
}

void Pmix::abort(int status) {
  abort_status_.store_relaxed(status);
  const auto ask = [](void* data) -> void* {
    Pmix& self = *static_cast<Pmix*>(data);
    const int code = self.abort_status_.load_relaxed();
    (void)self.library_->Abort(code, nullptr, nullptr, 0);
    self.abort_answered_.store_relaxed(1);
    return nullptr;
  };
  // In a thread, since libpmix waits for the answer, and a stopped launcher gives none.
  const WithoutSignals asking;
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, ask, this) != 0) {
    ask(this);
    return;
  }
  pthread_detach(thread);
  for (std::uint64_t waited = 0; waited < longest_abort_ns && abort_answered_.load_relaxed() == 0;
       waited += abort_poll_ns)
    (void)os::wait_until_readable({}, abort_poll_ns);
}

} // namespace near::boot
