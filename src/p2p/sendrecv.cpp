// Send and receive in one call, in all four forms. Source: MPI 5.0, section 3.10.
#include "p2p/engine.h"

#include <new>
#include <string>

namespace near::p2p {

namespace {

struct PairArguments {
  Buffer send_buffer;
  int destination, send_tag;
  Buffer receive_buffer;
  int source, receive_tag;
  Communicator* communicator;
  Channel channel;
};

/// Both halves of a send-receive. Its requests are members rather than in the pool, so it must not be destroyed
/// between begin() and completion.
class Pair {
public:
  Result begin(const PairArguments& of) {
    NEAR_TRY(datatype::check_copyable(of.send_buffer));
    NEAR_TRY(datatype::check_copyable(of.receive_buffer));
    receive_.what = RequestKind::receive;
    set(receive_, of.receive_buffer, of.source, of.receive_tag, of);
    set(send_, of.send_buffer, of.destination, of.send_tag, of);
    NEAR_TRY(begin_receive(receive_));
    Result sent = begin_send(send_);
    if (!sent.ok()) {
      // The send never left. If the receive has already been matched, it cannot be withdrawn: wait for it.
      if (!withdraw(receive_)) wait_complete(receive_);
    }
    return sent;
  }
  bool complete() const { return receive_.complete && send_.complete; }
  const Completion& received() const { return receive_.completion; }
  Result outcome() const {
    NEAR_TRY(p2p::outcome(receive_));
    return p2p::outcome(send_);
  }

private:
  static void set(EngineRequest& request, const Buffer& buffer, int rank, int tag, const PairArguments& of) {
    request.buffer = buffer;
    request.aim(rank, tag, *of.communicator, of.channel);
  }

  EngineRequest receive_, send_;
};

/// A packed copy of a buffer.
class PackedCopy {
public:
  Result take(const Buffer& buffer) {
    NEAR_TRY(datatype::check_copyable(buffer));
    MPI_Count bytes = buffer.bytes();
    data_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes) + 1]);
    if (data_ == nullptr)
      return base::fail(MPI_ERR_NO_MEM, "no memory for a copy of {} bytes of the send buffer", bytes);
    if (bytes != 0) datatype::pack(buffer, 0, data_.get(), bytes);
    view_ = Buffer{data_.get(), bytes, datatype::find_datatype(MPI_BYTE)};
    return {};
  }
  const Buffer& buffer() const { return view_; }

private:
  std::unique_ptr<std::byte[]> data_;
  Buffer view_;
};

/// A send-receive behind a request. It holds references, since the program may free the communicator and the
/// datatypes before the operation completes.
class PairSchedule : public Schedule {
public:
  PairSchedule(const PairArguments& arguments, PackedCopy copy)
      : arguments_(arguments), copy_(std::move(copy)) {
    object::keep(arguments_.communicator);
    object::keep(arguments_.send_buffer.type);
    object::keep(arguments_.receive_buffer.type);
  }
  PairSchedule(const PairSchedule&) = delete;
  PairSchedule& operator=(const PairSchedule&) = delete;
  ~PairSchedule() override {
    datatype::release(arguments_.receive_buffer.type);
    datatype::release(arguments_.send_buffer.type);
    object::release(arguments_.communicator);
  }
  Result begin() override { return pair_.begin(arguments_); }
  bool advance(Completion& completion) override {
    if (!pair_.complete()) return false;
    completion = pair_.received();
    if (Result result = pair_.outcome(); !result.ok()) {
      completion.error = object::error_class(result);
      sentence_ = base::failure_text();
    }
    return true;
  }
  std::string_view sentence() const override { return sentence_; }

private:
  PairArguments arguments_;
  PackedCopy copy_; ///< of the send buffer; used by the replace form
  Pair pair_;
  std::string sentence_;
};

Result run(const PairArguments& arguments, Completion& completion) {
  Pair pair;
  NEAR_TRY(pair.begin(arguments));
  if (!pair.complete()) wait_until([&] { return pair.complete(); });
  completion = pair.received();
  return pair.outcome();
}

Result start_pair(const PairArguments& arguments, PackedCopy copy, Request*& made) {
  return make_scheduled(arguments.communicator, std::make_unique<PairSchedule>(arguments, std::move(copy)),
                        false, made);
}

} // namespace

Result send_receive(const Buffer& send_buffer, int destination, int send_tag, const Buffer& receive_buffer,
                    int source, int receive_tag, Communicator& communicator, Completion& completion,
                    Channel channel) {
  return run(
      {send_buffer, destination, send_tag, receive_buffer, source, receive_tag, &communicator, channel},
      completion);
}

Result start_send_receive(const Buffer& send_buffer, int destination, int send_tag,
                          const Buffer& receive_buffer, int source, int receive_tag,
                          Communicator& communicator, Request*& made) {
  return start_pair(
      {send_buffer, destination, send_tag, receive_buffer, source, receive_tag, &communicator, Channel::user},
      {}, made);
}

Result send_receive_replace(const Buffer& buffer, int destination, int send_tag, int source, int receive_tag,
                            Communicator& communicator, Completion& completion) {
  PackedCopy copy;
  NEAR_TRY(copy.take(buffer));
  return run(
      {copy.buffer(), destination, send_tag, buffer, source, receive_tag, &communicator, Channel::user},
      completion);
}

Result start_send_receive_replace(const Buffer& buffer, int destination, int send_tag, int source,
                                  int receive_tag, Communicator& communicator, Request*& made) {
  PackedCopy copy;
  NEAR_TRY(copy.take(buffer));
  PairArguments arguments{copy.buffer(), destination, send_tag,      buffer,
                          source,        receive_tag, &communicator, Channel::user};
  return start_pair(arguments, std::move(copy), made);
}

} // namespace near::p2p
