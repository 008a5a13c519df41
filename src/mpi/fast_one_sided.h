// The fast paths of one-sided calls with a few elements of a predefined type, on memory that this process can load and store: see
// fast.h and rma/fast.h.
#pragma once

#include "mpi/fast.h"
#include "rma/fast.h"

namespace near::mpi::fast {

/// Whether an unlock or a flush may take the fast path; otherwise it may be a poll.
[[gnu::always_inline]] inline bool is_no_poll() { return p2p::background == 0; }

/// Makes one of these calls, once its arguments are valid and simple:
/// runs act(window), and returns whether that did the call's work.
template <class Act>
[[gnu::always_inline]] inline bool access(unsigned function, MPI_Win win, int rank, std::uint64_t bytes,
                                          Act act) {
  segment::StateLine& line = Call::fast_line();
  if (line.function.load_relaxed() != 0) [[unlikely]]
    return false;
  object::Window* const window = object::find_window(win);
  if (window == nullptr) [[unlikely]]
    return false;
  const Inside inside(line, function);
  Call::write_about(line, window->communicator->context, rank, MPI_UNDEFINED, static_cast<MPI_Count>(bytes));
  const bool done = act(*window);
  line.calls.bump_relaxed(done ? 1 : 0);
  return done;
}

/// The bytes of a call whose sides have the same count of the same predefined type; 0 if the fast path must decline.
[[gnu::always_inline]] inline std::uint64_t bytes_of_both(const void* origin, MPI_Count origin_count,
                                                          MPI_Datatype origin_type, MPI_Count target_count,
                                                          MPI_Datatype target_type) {
  // A single comparison: a negative count is a large number.
  if (origin_type != target_type || origin_count != target_count ||
      static_cast<std::uint64_t>(origin_count) > rma::fast::most_bytes || !is_memory(origin)) [[unlikely]]
    return 0;
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(origin_count) * datatype::predefined_contiguous_size(origin_type);
  return bytes <= rma::fast::most_bytes ? bytes : 0;
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int Put(unsigned function, const void* origin_addr, Count origin_count,
                                      MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                                      Count target_count, MPI_Datatype target_datatype, MPI_Win win,
                                      Decline decline) {
  const std::uint64_t bytes =
      bytes_of_both(origin_addr, origin_count, origin_datatype, target_count, target_datatype);
  const bool done = bytes != 0 && access(function, win, target_rank, bytes, [&](object::Window& window) {
                      return rma::fast::put(window, origin_addr, bytes, target_rank, target_disp);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int
Get(unsigned function, void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Win win, Decline decline) {
  const std::uint64_t bytes =
      bytes_of_both(origin_addr, origin_count, origin_datatype, target_count, target_datatype);
  const bool done = bytes != 0 && access(function, win, target_rank, bytes, [&](object::Window& window) {
                      return rma::fast::get(window, origin_addr, bytes, target_rank, target_disp);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int
Accumulate(unsigned function, const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
           int target_rank, MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Op op,
           MPI_Win win, Decline decline) {
  const std::uint64_t bytes =
      bytes_of_both(origin_addr, origin_count, origin_datatype, target_count, target_datatype);
  const bool done = bytes != 0 && access(function, win, target_rank, bytes, [&](object::Window& window) {
                      return rma::fast::accumulate(window, origin_addr, nullptr, origin_count, bytes,
                                                   target_rank, target_disp, target_datatype, op);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Count, class Decline>
[[gnu::always_inline]] inline int
Get_accumulate(unsigned function, const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype,
               void* result_addr, Count result_count, MPI_Datatype result_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
               Decline decline) {
  const bool reads_only = op == MPI_NO_OP; // for any origin
  const std::uint64_t bytes =
      bytes_of_both(result_addr, result_count, result_datatype, target_count, target_datatype);
  const bool done = bytes != 0 &&
                    (reads_only || bytes_of_both(origin_addr, origin_count, origin_datatype, target_count,
                                                 target_datatype) != 0) &&
                    access(function, win, target_rank, bytes, [&](object::Window& window) {
                      return rma::fast::accumulate(window, origin_addr, result_addr, target_count, bytes,
                                                   target_rank, target_disp, target_datatype, op);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int Fetch_and_op(unsigned function, const void* origin_addr, void* result_addr,
                                               MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                                               MPI_Op op, MPI_Win win, Decline decline) {
  // 0 bytes: the slow path does not record how many it moves.
  const std::uint64_t bytes = datatype::predefined_contiguous_size(datatype);
  const bool done = bytes != 0 && (op == MPI_NO_OP || is_memory(origin_addr)) && is_memory(result_addr) &&
                    access(function, win, target_rank, 0, [&](object::Window& window) {
                      return rma::fast::accumulate(window, origin_addr, result_addr, 1, bytes, target_rank,
                                                   target_disp, datatype, op);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int
Compare_and_swap(unsigned function, const void* origin_addr, const void* compare_addr, void* result_addr,
                 MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win, Decline decline) {
  const std::uint64_t bytes = datatype::predefined_contiguous_size(datatype);
  const bool done = bytes != 0 && is_memory(origin_addr) && is_memory(compare_addr) &&
                    is_memory(result_addr) &&
                    access(function, win, target_rank, 0, [&](object::Window& window) {
                      return rma::fast::compare_and_swap(window, origin_addr, compare_addr, result_addr,
                                                         bytes, target_rank, target_disp, datatype);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int Win_lock(unsigned function, int lock_type, int rank, int assertion,
                                           MPI_Win win, Decline decline) {
  const bool done = assertion == 0 && access(function, win, rank, 0, [&](object::Window& window) {
                      return rma::fast::lock(window, lock_type, rank);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int Win_unlock(unsigned function, int rank, MPI_Win win, Decline decline) {
  const bool done =
      access(function, win, rank, 0, [&](object::Window& window) { return rma::fast::unlock(window, rank); });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int Win_flush(unsigned function, int rank, MPI_Win win, Decline decline) {
  const bool done =
      access(function, win, rank, 0, [&](object::Window& window) { return rma::fast::flush(window, rank); });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int Win_flush_all(unsigned function, MPI_Win win, Decline decline) {
  const bool done = is_no_poll() && access(function, win, MPI_UNDEFINED, 0, [&](object::Window& window) {
                      return rma::fast::flush_all(window);
                    });
  return done ? MPI_SUCCESS : decline();
}

template <class Decline>
[[gnu::always_inline]] inline int Win_flush_local_all(unsigned function, MPI_Win win, Decline decline) {
  return Win_flush_all(function, win, decline);
}

template <class Decline>
[[gnu::always_inline]] inline int Win_flush_local(unsigned function, int rank, MPI_Win win, Decline decline) {
  return Win_flush(function, rank, win, decline);
}

} // namespace near::mpi::fast
