// Point-to-point messages: the calls that the bindings and the collectives make. Arguments are valid already.
// Source: MPI 5.0, chapter 3.
#pragma once

#include "p2p/request.h"

namespace near::p2p {

/// Registers the handlers of arrivals. Call once, before the transport starts; idempotent.
void attach();
/// Waits until every send that was started has left, those of freed requests and buffered ones too. For
/// finalize, before the transport stops.
void drain();
/// Drops what p2p keeps for a communicator that is being freed: waits for its buffered sends and detaches.
void forget(Communicator& communicator);

enum class SendMode : std::uint8_t { standard, buffered, synchronous, ready };

/// What most sends do, blocking and nonblocking ones: the whole message leaves, without a request. False:
/// nothing was sent. `destination` is a rank.
bool send_at_once(const Buffer& view, int destination, int tag, const Communicator& communicator,
                  Channel channel = Channel::user);

/// Blocking send: returns when the buffer may be reused. `destination` may be MPI_PROC_NULL.
Result send(const Buffer& view, int destination, int tag, Communicator& communicator, SendMode mode,
            Channel channel = Channel::user);
/// Blocking receive; `source` may be MPI_ANY_SOURCE or MPI_PROC_NULL, `tag` MPI_ANY_TAG. A longer message
/// fills the buffer and fails with MPI_ERR_TRUNCATE.
Result receive(const Buffer& view, int source, int tag, Communicator& communicator, Completion& completion,
               Channel channel = Channel::user);

/// Starts a send or receive; `made` is active. Fails with MPI_ERR_NO_MEM when requests are used up, and a
/// buffered send with MPI_ERR_BUFFER when the attached buffer is too small.
Result start_send(const Buffer& view, int destination, int tag, Communicator& communicator, SendMode mode,
                  Request*& made, Channel channel = Channel::user);
Result start_receive(const Buffer& view, int source, int tag, Communicator& communicator, Request*& made,
                     Channel channel = Channel::user);
/// Persistent forms: made inactive; start() starts them.
Result make_send(const Buffer& view, int destination, int tag, Communicator& communicator, SendMode mode,
                 Request*& made);
Result make_receive(const Buffer& view, int source, int tag, Communicator& communicator, Request*& made);

/// A request that is complete from the start, with this completion.
Result make_completed(Communicator& communicator, const Completion& completion, Request*& made);

/// MPI_Sendrecv in one call: neither side waits for the other's order.
Result send_receive(const Buffer& send_buffer, int destination, int send_tag, const Buffer& receive_buffer,
                    int source, int receive_tag, Communicator& communicator, Completion& completion,
                    Channel channel = Channel::user);

/// Nonblocking form: one request for both sides; its status is the receive's.
Result start_send_receive(const Buffer& send_buffer, int destination, int send_tag,
                          const Buffer& receive_buffer, int source, int receive_tag,
                          Communicator& communicator, Request*& made);
/// MPI_Sendrecv_replace: what arrives replaces what was sent, in the same buffer.
Result send_receive_replace(const Buffer& view, int destination, int send_tag, int source, int receive_tag,
                            Communicator& communicator, Completion& completion);
Result start_send_receive_replace(const Buffer& view, int destination, int send_tag, int source,
                                  int receive_tag, Communicator& communicator, Request*& made);

/// A matched message (MPI_Mprobe), taken off the queue of unexpected ones.
struct Message : object::Object {
  Communicator* communicator = nullptr;
  void* arrival = nullptr; ///< p2p's own record
  Completion envelope;
};
Message* find_message(MPI_Message handle);
inline MPI_Message public_handle(const Message& message) {
  return reinterpret_cast<MPI_Message>(static_cast<std::uintptr_t>(message.handle));
}

/// One look for a matching message that nobody received yet. PROC_NULL is found at once. No progress is made:
/// callers run progress() or wait_until() around it.
bool probe(int source, int tag, Communicator& communicator, Completion& envelope);
/// The same, and takes the message: `message` is set when found (nullptr with found: MPI_MESSAGE_NO_PROC).
Result probe_matched(int source, int tag, Communicator& communicator, bool& found, Message*& message,
                     Completion& envelope);
Result receive_matched(Message& message, const Buffer& view, Completion& completion);
Result start_receive_matched(Message& message, const Buffer& view, Request*& made);

/// Partitioned requests (MPI 5.0, chapter 4), made inactive; `partition` is the view of the first of
/// `partitions` equal parts that follow each other. No wildcards.
Result make_partitioned_send(const Buffer& partition, int partitions, int destination, int tag,
                             Communicator& communicator, Request*& made);
Result make_partitioned_receive(const Buffer& partition, int partitions, int source, int tag,
                                Communicator& communicator, Request*& made);
/// MPI_Pready; MPI_ERR_ARG for a partition that does not exist or was marked already.
Result mark_ready(Request& request, int partition);
/// MPI_Parrived; makes progress when it has not.
Result has_arrived(Request& request, int partition, bool& arrived);

/// The buffer of buffered sends, per process and per communicator (MPI 5.0, 3.6). `size` as the user gave it.
Result attach_buffer(Communicator* communicator, void* buffer, MPI_Count size);
/// Waits until every message in it has left, then gives it back.
Result detach_buffer(Communicator* communicator, void*& buffer, MPI_Count& size);
Result flush_buffer(Communicator* communicator);
/// Completes when every message that is in the buffer now has left.
Result start_flush_buffer(Communicator* communicator, Request*& made);

} // namespace near::p2p
