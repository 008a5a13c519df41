// Receives and probes. Source: MPI 5.0, sections 3.2, 3.7 and 3.8.
#include "mpi/buffer_argument.h"
#include "mpi/impl.h"
#include "transport/registry.h"

namespace near::mpi::impl {

using p2p::Completion;
using p2p::Message;
using p2p::Request;

namespace {

/// Identifies the messages that a probe looks for, for p2p::poll().
std::uintptr_t sought(int source, int tag, const Communicator& comm) {
  auto pair = std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | static_cast<std::uint32_t>(tag);
  return static_cast<std::uintptr_t>((pair + 1) * 0x9e3779b97f4a7c15u) ^
         reinterpret_cast<std::uintptr_t>(&comm);
}

/// Probes; if nothing is found, makes progress and probes once more.
Result probe_matched_now(int source, int tag, Communicator& comm, bool& found, Message*& message,
                         Completion& envelope) {
  NEAR_TRY(p2p::probe_matched(source, tag, comm, found, message, envelope));
  if (found) return {};
  p2p::poll(sought(source, tag, comm));
  return p2p::probe_matched(source, tag, comm, found, message, envelope);
}

/// Whether only messages that have already arrived can come from this rank, because its process has failed.
bool has_lost(int source, const Communicator& comm) {
  if (source < 0) return false;
  const transport::Peer* peer = transport::mapped_peer(comm.process_ids[source]);
  return peer != nullptr && transport::has_failed(*peer);
}

Result fail_lost(int source) {
  return base::fail(MPI_ERR_PROC_ABORTED, "rank {} has failed, so there will be no message from it", source);
}

Completion no_process() {
  Completion completion;
  completion.source = MPI_PROC_NULL;
  return completion;
}

} // namespace

Result Recv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Communicator& comm,
            MPI_Status* status) {
  Completion completion;
  Result result = p2p::receive(buffer_of(buf, count, datatype), source, tag, comm, completion);
  p2p::write_status(status, completion, false);
  return result;
}

Result Irecv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Communicator& comm,
             Request*& request) {
  return p2p::start_receive(buffer_of(buf, count, datatype), source, tag, comm, request);
}

Result Probe(int source, int tag, Communicator& comm, MPI_Status* status) {
  Completion envelope;
  bool found = false;
  p2p::wait_until([&] {
    found = p2p::probe(source, tag, comm, envelope);
    return found || has_lost(source, comm);
  });
  if (!found) return fail_lost(source);
  p2p::write_status(status, envelope, false);
  return {};
}

Result Iprobe(int source, int tag, Communicator& comm, int* flag, MPI_Status* status) {
  Completion envelope;
  bool found = p2p::probe(source, tag, comm, envelope);
  if (!found) {
    p2p::poll(sought(source, tag, comm));
    found = p2p::probe(source, tag, comm, envelope);
  }
  *flag = found ? 1 : 0;
  if (!found && has_lost(source, comm)) return fail_lost(source);
  if (found) p2p::write_status(status, envelope, false);
  return {};
}

Result Mprobe(int source, int tag, Communicator& comm, Message*& message, MPI_Status* status) {
  Completion envelope;
  Result result;
  bool found = false;
  p2p::wait_until(
      [&] {
        result = p2p::probe_matched(source, tag, comm, found, message, envelope);
        return found || !result.ok() || has_lost(source, comm);
      },
      [&] {
        Completion ignored;
        return p2p::probe(source, tag, comm, ignored) || has_lost(source, comm);
      });
  if (!found && result.ok()) return fail_lost(source);
  if (result.ok()) p2p::write_status(status, envelope, false);
  return result;
}

Result Improbe(int source, int tag, Communicator& comm, int* flag, Message*& message, MPI_Status* status) {
  Completion envelope;
  bool found = false;
  NEAR_TRY(probe_matched_now(source, tag, comm, found, message, envelope));
  if (!found && has_lost(source, comm)) return fail_lost(source);
  *flag = found ? 1 : 0;
  if (found) p2p::write_status(status, envelope, false);
  return {};
}

Result Mrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message& message, MPI_Status* status) {
  Completion completion = no_process();
  Result result;
  if (Message* found = p2p::find_message(message); found != nullptr) {
    completion = Completion{};
    result = p2p::receive_matched(*found, buffer_of(buf, count, datatype), completion);
  }
  message = MPI_MESSAGE_NULL;
  p2p::write_status(status, completion, false);
  return result;
}

Result Imrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message& message, Request*& request) {
  Message* found = p2p::find_message(message);
  if (found == nullptr) {
    // MPI_MESSAGE_NO_PROC does not record its communicator.
    NEAR_TRY(p2p::make_completed(*object::self(), no_process(), request));
  } else {
    NEAR_TRY(p2p::start_receive_matched(*found, buffer_of(buf, count, datatype), request));
  }
  message = MPI_MESSAGE_NULL;
  return {};
}

} // namespace near::mpi::impl
