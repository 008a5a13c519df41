// Put, get and accumulate. Source: MPI 5.0, section 12.3.
#include "mpi/buffer_argument.h"
#include "mpi/impl.h"
#include "rma/rma.h"

namespace near::mpi::impl {

namespace {

datatype::Buffer origin_of(const void* address, MPI_Count count, Datatype* type, Datatype& otherwise) {
  return type != nullptr ? buffer_of(address, count, *type) : buffer_of(nullptr, 0, otherwise);
}

Result check_buffer(const void* address, const char* name) {
  if (address != nullptr) return {};
  return base::fail(MPI_ERR_BUFFER, "{} is a null pointer", name);
}

} // namespace

Result Put(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
           MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Window& win) {
  return rma::put(buffer_of(origin_addr, origin_count, origin_datatype),
                  {target_rank, target_disp, target_count, &target_datatype}, win);
}

Result Get(void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
           MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Window& win) {
  return rma::get(buffer_of(origin_addr, origin_count, origin_datatype),
                  {target_rank, target_disp, target_count, &target_datatype}, win);
}

Result Accumulate(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
                  MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Operation& op,
                  Window& win) {
  return rma::accumulate(buffer_of(origin_addr, origin_count, origin_datatype), nullptr,
                         {target_rank, target_disp, target_count, &target_datatype}, op, win);
}

Result Get_accumulate(const void* origin_addr, MPI_Count origin_count, Datatype* origin_datatype,
                      void* result_addr, MPI_Count result_count, Datatype& result_datatype, int target_rank,
                      MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Operation& op,
                      Window& win) {
  datatype::Buffer result = buffer_of(result_addr, result_count, result_datatype);
  return rma::accumulate(origin_of(origin_addr, origin_count, origin_datatype, target_datatype), &result,
                         {target_rank, target_disp, target_count, &target_datatype}, op, win);
}

Result Fetch_and_op(const void* origin_addr, void* result_addr, Datatype& datatype, int target_rank,
                    MPI_Aint target_disp, Operation& op, Window& win) {
  NEAR_TRY(check_buffer(result_addr, "result_addr"));
  if (op.builtin != datatype::Builtin::no_op) NEAR_TRY(check_buffer(origin_addr, "origin_addr"));
  datatype::Buffer result = buffer_of(result_addr, 1, datatype);
  return rma::accumulate(buffer_of(origin_addr, 1, datatype), &result,
                         {target_rank, target_disp, 1, &datatype}, op, win);
}

Result Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                        Datatype& datatype, int target_rank, MPI_Aint target_disp, Window& win) {
  NEAR_TRY(check_buffer(origin_addr, "origin_addr"));
  NEAR_TRY(check_buffer(compare_addr, "compare_addr"));
  NEAR_TRY(check_buffer(result_addr, "result_addr"));
  return rma::compare_and_swap(origin_addr, compare_addr, result_addr,
                               {target_rank, target_disp, 1, &datatype}, win);
}

Result Rput(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
            MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Window& win,
            p2p::Request*& request) {
  rma::Pending pending;
  NEAR_TRY(rma::put(buffer_of(origin_addr, origin_count, origin_datatype),
                    {target_rank, target_disp, target_count, &target_datatype}, win, &pending));
  return rma::make_request(pending, win, request);
}

Result Rget(void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype, int target_rank,
            MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Window& win,
            p2p::Request*& request) {
  rma::Pending pending;
  NEAR_TRY(rma::get(buffer_of(origin_addr, origin_count, origin_datatype),
                    {target_rank, target_disp, target_count, &target_datatype}, win, &pending));
  rma::poll(win); // MPI_Test makes no progress if its request is complete
  return rma::make_request(pending, win, request);
}

Result Raccumulate(const void* origin_addr, MPI_Count origin_count, Datatype& origin_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype,
                   Operation& op, Window& win, p2p::Request*& request) {
  rma::Pending pending;
  NEAR_TRY(rma::accumulate(buffer_of(origin_addr, origin_count, origin_datatype), nullptr,
                           {target_rank, target_disp, target_count, &target_datatype}, op, win, &pending));
  return rma::make_request(pending, win, request);
}

Result Rget_accumulate(const void* origin_addr, MPI_Count origin_count, Datatype* origin_datatype,
                       void* result_addr, MPI_Count result_count, Datatype& result_datatype, int target_rank,
                       MPI_Aint target_disp, MPI_Count target_count, Datatype& target_datatype, Operation& op,
                       Window& win, p2p::Request*& request) {
  datatype::Buffer result = buffer_of(result_addr, result_count, result_datatype);
  rma::Pending pending;
  NEAR_TRY(rma::accumulate(origin_of(origin_addr, origin_count, origin_datatype, target_datatype), &result,
                           {target_rank, target_disp, target_count, &target_datatype}, op, win, &pending));
  rma::poll(win); // see Rget
  return rma::make_request(pending, win, request);
}

} // namespace near::mpi::impl
