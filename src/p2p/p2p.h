// Point-to-point messages, as called by the bindings and the collectives, which have checked the arguments.
// Source: MPI 5.0, chapter 3.
#pragma once

#include "p2p/request.h"

#include <string_view>

namespace near::p2p {

/// Registers the handlers of arriving messages. Call it before the transport starts; idempotent.
void attach();
/// Waits until every send that was started has left, including buffered sends and those whose request has been
/// freed. Called by MPI_Finalize before the transport stops.
void drain();
/// Releases what p2p holds for a communicator that is being freed: waits for its buffered sends and detaches
/// its buffer.
void forget(Communicator& communicator);

/// Calls `function` for each process that has failed without ending this process's job, and later for each one that
/// fails. There is only one such function: every call must pass the same one.
void watch_failures(void (*function)(const object::ProcessId& process));

/// Whether this process can read the private memory of the rank's process.
bool reads_memory_of(const Communicator& communicator, int rank);
/// Returns the error for a process whose memory can no longer be reached; `why` is the kernel's reason. If the process has died, the
/// launcher ends the job: the call waits for that, for a bounded time, rather than blame the program.
Result out_of_reach(std::string_view why);
/// Copies into.bytes() bytes, starting at `address` in the memory of the rank's process, which must not change them meanwhile. Fails
/// with MPI_ERR_BUFFER if the kernel cannot read them, in which case some may have been copied, and with the error of out_of_reach()
/// if it cannot read any memory of that process.
Result read_memory(const Communicator& communicator, int rank, std::uint64_t address, const Buffer& into);

enum class SendMode : std::uint8_t { standard, buffered, synchronous, ready };

/// Fast path of blocking and nonblocking sends: sends the whole message at once, without a request. Returns
/// false if it sent nothing. `destination` is a rank, not MPI_PROC_NULL.
bool send_at_once(const Buffer& buffer, int destination, int tag, const Communicator& communicator,
                  Channel channel = Channel::user);

/// Blocking send: returns when the program may reuse the buffer. `destination` may be MPI_PROC_NULL.
Result send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
            Channel channel = Channel::user);
/// Blocking receive; `source` may be MPI_ANY_SOURCE or MPI_PROC_NULL, `tag` may be MPI_ANY_TAG. If the
/// message is longer than the buffer, fills the buffer and fails with MPI_ERR_TRUNCATE.
Result receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Completion& completion,
               Channel channel = Channel::user);

/// Starts a send or receive; `made` is active. Fails with MPI_ERR_NO_MEM if there is no memory for a request;
/// a buffered send fails with MPI_ERR_BUFFER if the attached buffer has too little free space.
Result start_send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
                  Request*& made, Channel channel = Channel::user);
Result start_receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Request*& made,
                     Channel channel = Channel::user);
/// Makes a persistent send request; `made` is inactive until start().
Result make_send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
                 Request*& made);
/// Makes a persistent receive request; `made` is inactive until start().
Result make_receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Request*& made);

/// Makes a request that is complete from the start, with this completion.
Result make_completed(Communicator& communicator, const Completion& completion, Request*& made);

/// MPI_Sendrecv: sends and receives at the same time, so that the order of the peers' calls does not matter.
Result send_receive(const Buffer& send_buffer, int destination, int send_tag, const Buffer& receive_buffer,
                    int source, int receive_tag, Communicator& communicator, Completion& completion,
                    Channel channel = Channel::user);

/// Nonblocking form of send_receive(): one request for both sides, with the status of the receive.
Result start_send_receive(const Buffer& send_buffer, int destination, int send_tag,
                          const Buffer& receive_buffer, int source, int receive_tag,
                          Communicator& communicator, Request*& made);
/// MPI_Sendrecv_replace: the received message replaces the sent one in the same buffer.
Result send_receive_replace(const Buffer& buffer, int destination, int send_tag, int source, int receive_tag,
                            Communicator& communicator, Completion& completion);
Result start_send_receive_replace(const Buffer& buffer, int destination, int send_tag, int source,
                                  int receive_tag, Communicator& communicator, Request*& made);

/// A matched message (MPI_Mprobe), which has been removed from the unexpected queue.
struct Message : object::Object {
  Communicator* communicator = nullptr;
  void* arrival = nullptr; ///< p2p's own record
  Completion envelope;
};
Message* find_message(MPI_Message handle);
inline MPI_Message public_handle(const Message& message) {
  return reinterpret_cast<MPI_Message>(static_cast<std::uintptr_t>(message.handle));
}

/// Checks once for a matching message that has not been received. MPI_PROC_NULL always matches. Makes no
/// progress: callers run progress() or wait_until() around it.
bool probe(int source, int tag, Communicator& communicator, Completion& envelope);
/// Checks like probe(), and removes the message from the unexpected queue. `message` is set if `found`;
/// nullptr then means MPI_MESSAGE_NO_PROC.
Result probe_matched(int source, int tag, Communicator& communicator, bool& found, Message*& message,
                     Completion& envelope);
Result receive_matched(Message& message, const Buffer& buffer, Completion& completion);
Result start_receive_matched(Message& message, const Buffer& buffer, Request*& made);

/// Partitioned requests (MPI 5.0, chapter 4); `made` is inactive. `partition` is the first of `partitions`
/// equal, consecutive parts of one buffer. Wildcards are not allowed.
Result make_partitioned_send(const Buffer& partition, int partitions, int destination, int tag,
                             Communicator& communicator, Request*& made);
Result make_partitioned_receive(const Buffer& partition, int partitions, int source, int tag,
                                Communicator& communicator, Request*& made);
/// Marks a partition as ready to be sent (MPI_Pready). Fails with MPI_ERR_ARG if the partition does not exist or has
/// been marked already.
Result mark_ready(Request& request, int partition);
/// Checks whether a partition has arrived (MPI_Parrived); makes progress if it has not.
Result has_arrived(Request& request, int partition, bool& arrived);

/// Attaches the buffer for the buffered sends of a communicator, or of the process if `communicator` is nullptr
/// (MPI 5.0, 3.6). `size` is the user's, in bytes.
Result attach_buffer(Communicator* communicator, void* buffer, MPI_Count size);
/// Waits until every message in the buffer has left, then detaches the buffer.
Result detach_buffer(Communicator* communicator, void*& buffer, MPI_Count& size);
Result flush_buffer(Communicator* communicator);
/// Starts a request that completes when every message now in the buffer has left.
Result start_flush_buffer(Communicator* communicator, Request*& made);

} // namespace near::p2p
