// Operations: which ones exist, the types on which each is defined, and how a reduction is carried out.
// Source: MPI 5.0, sections 6.9.2 to 6.9.5.
#include "datatype/operation.h"

#include "datatype/reduce.h"

#include <algorithm>
#include <limits>

namespace near::datatype {
namespace {

using object::Immortal;

constexpr object::HandleBits first_handle = 0x20, handle_count = 0x20;

constexpr unsigned bit(Family family) { return 1u << static_cast<unsigned>(family); }

constexpr unsigned integers =
    bit(Family::c_integer) | bit(Family::fortran_integer) | bit(Family::multi_language);
constexpr unsigned ordered = integers | bit(Family::floating);
constexpr unsigned arithmetic = ordered | bit(Family::complex);
constexpr unsigned bitwise = integers | bit(Family::byte);
/// The standard names C integers and logicals; MPI_AINT, MPI_OFFSET and MPI_COUNT are C integers too.
constexpr unsigned logical = bit(Family::c_integer) | bit(Family::multi_language) | bit(Family::logical);

/// The standard's table: an operation, and the families on which it is defined.
struct OperationRow {
  MPI_Op handle;
  const char* name;
  Builtin builtin;
  unsigned families;
};

std::span<const OperationRow> operation_rows() {
  static const OperationRow rows[] = {
      {MPI_SUM, "MPI_SUM", Builtin::sum, arithmetic},
      {MPI_PROD, "MPI_PROD", Builtin::product, arithmetic},
      {MPI_MIN, "MPI_MIN", Builtin::minimum, ordered},
      {MPI_MAX, "MPI_MAX", Builtin::maximum, ordered},
      {MPI_BAND, "MPI_BAND", Builtin::bitwise_and, bitwise},
      {MPI_BOR, "MPI_BOR", Builtin::bitwise_or, bitwise},
      {MPI_BXOR, "MPI_BXOR", Builtin::bitwise_xor, bitwise},
      {MPI_LAND, "MPI_LAND", Builtin::logical_and, logical},
      {MPI_LOR, "MPI_LOR", Builtin::logical_or, logical},
      {MPI_LXOR, "MPI_LXOR", Builtin::logical_xor, logical},
      {MPI_MINLOC, "MPI_MINLOC", Builtin::minimum_location, bit(Family::pair)},
      {MPI_MAXLOC, "MPI_MAXLOC", Builtin::maximum_location, bit(Family::pair)},
      {MPI_REPLACE, "MPI_REPLACE", Builtin::replace, 0},
      {MPI_NO_OP, "MPI_NO_OP", Builtin::no_op, 0},
  };
  return rows;
}

/// Precondition: `builtin` is a predefined operation.
const OperationRow& row_of(Builtin builtin) {
  std::span<const OperationRow> rows = operation_rows();
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const OperationRow& row) { return row.builtin == builtin; });
}

constinit Immortal<object::PredefinedTable<Operation, first_handle, handle_count>> predefined;
constinit Immortal<object::Pool<Operation, object::Kind::operation>> pool;

/// While this object lives, a user function can use the type's handle,
/// even if the program has freed the type.
class UsableHandle {
public:
  explicit UsableHandle(Datatype& type) : type_(type), before_(type.handle) {
    type.handle &= ~object::retired_bit;
  }
  ~UsableHandle() { type_.handle |= before_ & object::retired_bit; }
  UsableHandle(const UsableHandle&) = delete;
  UsableHandle& operator=(const UsableHandle&) = delete;

private:
  Datatype& type_;
  object::HandleBits before_;
};

/// Calls the user's function on pieces whose length fits in Length.
template <class Length, class Function>
void call_user(Function* function, const void* in, void* inout, MPI_Count count, Datatype& type) {
  UsableHandle usable(type);
  auto* from = static_cast<char*>(const_cast<void*>(in)); // the standard's signature has no const
  auto* to = static_cast<char*>(inout);
  for (MPI_Count done = 0; done < count;) {
    auto length = static_cast<Length>(std::min<MPI_Count>(count - done, std::numeric_limits<Length>::max()));
    MPI_Count part = length;
    MPI_Datatype handle = public_handle(type);
    function(from, to, &length, &handle);
    done += part;
    from += part * type.extent;
    to += part * type.extent;
  }
}

} // namespace

Result make_predefined_operations() {
  if (find_operation(MPI_SUM) != nullptr) return {};
  for (const OperationRow& row : operation_rows()) {
    auto* operation = new (std::nothrow) Operation;
    if (operation == nullptr)
      return base::fail(MPI_ERR_NO_MEM, "no memory is left for the predefined operations");
    operation->kind = object::Kind::operation;
    operation->builtin = row.builtin;
    operation->name = row.name;
    predefined.value.set(static_cast<object::HandleBits>(reinterpret_cast<std::uintptr_t>(row.handle)),
                         operation);
  }
  return {};
}

object::Pool<Operation, object::Kind::operation>& operations() { return pool.value; }

Operation* find_operation(MPI_Op handle) {
  auto bits = reinterpret_cast<std::uintptr_t>(handle);
  if (Operation* named = predefined.value.find(bits)) return named;
  return operations().find(bits);
}

Operation* make_operation(MPI_User_function* function, MPI_User_function_c* function_large,
                          bool commutative) {
  Operation* operation = operations().make();
  if (operation == nullptr) return nullptr;
  operation->function = function;
  operation->function_large = function_large;
  operation->commutative = commutative;
  return operation;
}

void release(Operation* operation) {
  // SYNC: operation-references. The thread that drops the last reference sees what the others did with it.
  if (!operation->predefined && operation->references.add_acq_rel(-1) == 1) operations().destroy(operation);
}

void free_operation(Operation& operation) {
  if (--operation.user_handles == 0) operations().retire(&operation);
  release(&operation);
}

const char* name_of(Builtin builtin) {
  return builtin == Builtin::user ? "an operation of the program" : row_of(builtin).name;
}

std::string describe(const Operation& operation) {
  if (operation.name[0] != '\0') return operation.name;
  return base::format("operation {:#x}", operation.handle & ~object::retired_bit);
}

Result check_operation(const Operation& operation, const Datatype& type) {
  if (operation.builtin == Builtin::user) return {};
  const OperationRow& row = row_of(operation.builtin);
  if (row.families == 0) return base::fail(MPI_ERR_OP, "{} is for one-sided calls only", row.name);
  if (type.basic == Basic::none)
    return base::fail(MPI_ERR_OP, "{} is a predefined operation and {} is not a predefined datatype",
                      row.name, describe(type));
  if ((row.families & bit(type.family)) == 0)
    return base::fail(MPI_ERR_OP, "{} is not defined on {}", row.name, describe(type));
  return {};
}

Result check_accumulate(const Operation& operation, const Datatype& type) {
  if (operation.builtin == Builtin::user)
    return base::fail(MPI_ERR_OP, "one-sided calls take predefined operations only");
  if (operation.builtin == Builtin::replace || operation.builtin == Builtin::no_op) return {};
  return check_operation(operation, type);
}

namespace {

InstructionSet detect_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2")) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

InstructionSet& instruction_set_in_use() {
  static InstructionSet set = detect_instruction_set();
  return set;
}

} // namespace

InstructionSet best_instruction_set() {
  static const InstructionSet set = detect_instruction_set();
  return set;
}
InstructionSet used_instruction_set() { return instruction_set_in_use(); }
void use_instruction_set(InstructionSet set) {
  instruction_set_in_use() = std::min(set, best_instruction_set());
}

Kernel find_kernel(Builtin builtin, Basic basic) {
  if (Kernel kernel = arithmetic_kernel(builtin, basic)) return kernel;
  return bit_kernel(builtin, basic);
}

void combine(const Operation& operation, const void* first, const void* second, void* out, MPI_Count count,
             Datatype& type) {
  if (count == 0) return;
  switch (operation.builtin) {
  case Builtin::user:
  case Builtin::replace:
  case Builtin::no_op:
    if (out != second)
      copy({const_cast<void*>(second), count, &type}, {out, count, &type}, count * type.size);
    reduce(operation, first, out, count, type);
    return;
  case Builtin::minimum_location:
  case Builtin::maximum_location:
    pair_kernel(operation.builtin, type.pair)(first, second, out, count);
    return;
  default:
    if (Kernel kernel = find_kernel(operation.builtin, type.basic)) kernel(first, second, out, count);
  }
}

void reduce(const Operation& operation, const void* in, void* inout, MPI_Count count, Datatype& type) {
  if (count == 0) return;
  switch (operation.builtin) {
  case Builtin::user:
    if (operation.function_large != nullptr)
      call_user<MPI_Count>(operation.function_large, in, inout, count, type);
    else
      call_user<int>(operation.function, in, inout, count, type);
    return;
  case Builtin::minimum_location:
  case Builtin::maximum_location: pair_kernel(operation.builtin, type.pair)(in, inout, inout, count); return;
  case Builtin::replace:
    copy({const_cast<void*>(in), count, &type}, {inout, count, &type}, count * type.size);
    return;
  case Builtin::no_op: return;
  default:
    if (Kernel kernel = find_kernel(operation.builtin, type.basic)) kernel(in, inout, inout, count);
  }
}

} // namespace near::datatype
