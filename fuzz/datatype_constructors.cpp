// Builds types from fuzzed arguments, sane and insane, and checks each against its type map.
//
// Every input is a program of constructor calls on a few registers that hold types. Types with a small type
// map are compared with it byte by byte; all others must satisfy the normal form's invariants. No constructor
// may crash, overflow, read outside its input, or leave types behind.
#include "form_check.h"
#include "type_map.h"

#include "datatype/external32.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace {

using namespace near;
using namespace near::datatype;
using test::Copy;
using test::TypeMap;

#define HOLDS(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                         \
      std::abort();                                                                                          \
    }                                                                                                        \
  } while (0)

/// The fuzzer's bytes as numbers; zeros when they are used up.
class Input {
public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  /// Mostly small, sometimes anything.
  MPI_Count number() {
    std::uint8_t kind = byte();
    if (kind < 0xe0) return static_cast<std::int8_t>(byte()) / (1 + (kind & 7));
    std::uint64_t value = 0;
    for (int i = 0; i < (kind & 7) + 1; ++i) value = value << 8 | byte();
    return static_cast<MPI_Count>((kind & 8) != 0 ? ~value : value);
  }
  /// Like number(), but seldom negative.
  MPI_Count length() {
    MPI_Count value = number();
    return value < 0 && (byte() & 3) != 0 ? ~value : value;
  }
  /// Below `limit`.
  template <class T>
  T small(T limit) {
    return static_cast<T>(byte() % limit);
  }
  bool coin() { return (byte() & 1) != 0; }
  int order() { return coin() ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

private:
  const std::uint8_t* data_;
  std::size_t left_;
};

constexpr std::size_t most_entries = 400;
constexpr MPI_Count farthest = 1 << 16;

bool is_small(MPI_Count value) { return value >= -farthest && value <= farthest; }

struct Register {
  Datatype* type = nullptr;
  std::optional<TypeMap> map; ///< while it is small
};

/// The map of runs of old types, if it stays small.
class Runs {
public:
  void add(const Register& old, MPI_Count at, MPI_Count count) {
    small_ =
        small_ && old.map && is_small(at) && count >= 0 && count <= farthest &&
        (copies_.size() + static_cast<std::size_t>(count)) * (old.map->entries.size() + 1) <= most_entries;
    if (!small_) return;
    for (MPI_Count i = 0; i < count; ++i) copies_.push_back({&*old.map, at + i * old.map->extent()});
  }
  void give_up() { small_ = false; }
  bool small() const { return small_; }
  std::optional<TypeMap> map(bool padded = false) const {
    if (!small_) return std::nullopt;
    TypeMap made = test::assemble(copies_, padded);
    if (!is_small(made.lb) || !is_small(made.ub)) return std::nullopt;
    return made;
  }

private:
  std::vector<Copy> copies_;
  bool small_ = true;
};

class Machine {
public:
  explicit Machine(Input input) : input_(input) {
    for (Register& slot : registers_) slot = basic();
  }
  ~Machine() {
    for (Register& slot : registers_) release(slot.type);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  void run() {
    for (int steps = 0; steps < 40 && !input_.empty(); ++steps) step();
  }

private:
  Register basic() {
    static const MPI_Datatype choices[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE};
    Datatype* type = find_datatype(choices[input_.small(5)]);
    Register made{type, TypeMap{}};
    made.map->entries = {{type, 0}};
    made.map->ub = type->extent;
    made.map->alignment = type->alignment;
    return made;
  }
  Register& pick() { return registers_[input_.small(registers_.size())]; }

  void keep(Result result, Datatype* type, std::optional<TypeMap> map) {
    if (!result.ok()) {
      HOLDS(!base::failure_text().empty());
      return;
    }
    Register made{type, std::move(map)};
    check(made);
    Register& slot = pick();
    release(slot.type);
    slot = std::move(made);
  }

  void step();
  void contiguous();
  void vector();
  void indexed();
  void structure();
  void resized();
  void subarray();
  void darray();
  void duplicate();
  void check(const Register& made);
  void check_bytes(const Register& made);

  Input input_;
  std::array<Register, 4> registers_;
};

void Machine::contiguous() {
  Register& old = pick();
  MPI_Count count = input_.length();
  Datatype* type = nullptr;
  Result result = make_contiguous(count, *old.type, type);
  Runs runs;
  runs.add(old, 0, count);
  keep(result, type, runs.map());
}

void Machine::vector() {
  Register& old = pick();
  MPI_Count count = input_.length(), length = input_.length(), stride = input_.number();
  bool in_bytes = input_.coin();
  Datatype* type = nullptr;
  Result result = make_vector(count, length, stride, in_bytes, *old.type, type);
  Runs runs;
  MPI_Count pace = 0;
  if (__builtin_mul_overflow(stride, in_bytes ? 1 : old.type->extent, &pace) || !is_small(pace) ||
      count > 1000)
    runs.give_up();
  for (MPI_Count i = 0; runs.small() && i < count; ++i) runs.add(old, i * pace, length);
  keep(result, type, runs.map());
}

void Machine::indexed() {
  Register& old = pick();
  auto n = input_.small<std::size_t>(12);
  bool in_bytes = input_.coin(), fixed = input_.coin();
  std::vector<MPI_Count> lengths(n), displacements(n);
  MPI_Count length = input_.length();
  for (std::size_t i = 0; i < n; ++i) {
    lengths[i] = fixed ? length : input_.length();
    displacements[i] = input_.number();
  }
  Datatype* type = nullptr;
  Result result = fixed ? make_indexed_block(length, displacements, in_bytes, *old.type, type)
                        : make_indexed(lengths, displacements, in_bytes, *old.type, type);
  Runs runs;
  for (std::size_t i = 0; i < n; ++i) {
    if (lengths[i] == 0) continue;
    MPI_Count at = 0;
    if (__builtin_mul_overflow(displacements[i], in_bytes ? 1 : old.type->extent, &at)) runs.give_up();
    runs.add(old, at, lengths[i]);
  }
  keep(result, type, runs.map());
}

void Machine::structure() {
  auto n = input_.small<std::size_t>(8);
  std::vector<MPI_Count> lengths, displacements;
  std::vector<Datatype*> types;
  Runs runs;
  for (std::size_t i = 0; i < n; ++i) {
    Register& old = pick();
    lengths.push_back(input_.length());
    displacements.push_back(input_.number());
    types.push_back(old.type);
    if (lengths[i] != 0) runs.add(old, displacements[i], lengths[i]);
  }
  Datatype* type = nullptr;
  Result result = make_struct(lengths, displacements, types, type);
  keep(result, type, runs.map(true));
}

void Machine::resized() {
  Register& old = pick();
  MPI_Count lb = input_.number(), extent = input_.number();
  Datatype* type = nullptr;
  Result result = make_resized(*old.type, lb, extent, type);
  std::optional<TypeMap> map = old.map;
  if (!is_small(lb) || !is_small(extent)) map.reset();
  if (map) {
    map->marked = true;
    map->lb = lb;
    map->ub = lb + extent;
  }
  keep(result, type, std::move(map));
}

void Machine::subarray() {
  Register& old = pick();
  auto n = 1 + input_.small<std::size_t>(4);
  std::vector<MPI_Count> sizes(n), subsizes(n), starts(n);
  for (std::size_t i = 0; i < n; ++i) {
    sizes[i] = input_.length();
    subsizes[i] = input_.length();
    starts[i] = input_.length();
  }
  Datatype* type = nullptr;
  Result result = make_subarray(sizes, subsizes, starts, input_.order(), *old.type, type);
  keep(result, type, std::nullopt);
}

void Machine::darray() {
  Register& old = pick();
  auto n = 1 + input_.small<std::size_t>(3);
  std::vector<MPI_Count> sizes(n);
  std::vector<int> distributions(n), arguments(n), grid(n);
  int processes = 1;
  for (std::size_t i = 0; i < n; ++i) {
    sizes[i] = input_.length();
    distributions[i] = MPI_DISTRIBUTE_NONE + input_.small(4);
    arguments[i] = input_.coin() ? MPI_DISTRIBUTE_DFLT_DARG : static_cast<int>(input_.number());
    grid[i] = distributions[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + input_.small(5);
    processes *= grid[i];
  }
  int rank = input_.small(processes);
  Datatype* type = nullptr;
  Result result =
      make_darray(processes, rank, sizes, distributions, arguments, grid, input_.order(), *old.type, type);
  keep(result, type, std::nullopt);
}

void Machine::duplicate() {
  Register& old = pick();
  Datatype* type = nullptr;
  Result result = make_duplicate(*old.type, type);
  Datatype* types[] = {old.type};
  if (result.ok()) record_envelope(*type, MPI_COMBINER_DUP, false, {}, {}, {}, types);
  keep(result, type, old.map);
}

void Machine::step() {
  switch (input_.small(10)) {
  case 0: return contiguous();
  case 1: return vector();
  case 2: return indexed();
  case 3:
  case 4: return structure();
  case 5: return resized();
  case 6: return subarray();
  case 7: return darray();
  case 8: return duplicate();
  default:
    Register& slot = pick();
    release(slot.type);
    slot = basic();
  }
}

void Machine::check(const Register& made) {
  const Datatype& type = *made.type;
  HOLDS((type.form.form == nullptr) == (type.size == 0));
  HOLDS((type.signature == nullptr) == (type.size == 0));
  HOLDS(type.size >= 0 && type.element_count >= 0 && type.element_count <= type.size);
  if (type.size != 0) {
    const char* why = test::FormCheck().broken(*type.form.form);
    if (why != nullptr) std::fprintf(stderr, "broken: %s\n", why);
    HOLDS(why == nullptr);
    HOLDS(type.form.form->size == type.size);
    HOLDS(type.signature->total.bytes == type.size);
    MPI_Count elements = type.element_count / 2;
    HOLDS(elements_in(type, bytes_of_elements(type, elements)) == elements);
  }
  if (type.contiguous) HOLDS(type.extent == type.size && type.true_extent == type.size);
  if (made.map) check_bytes(made);
}

void Machine::check_bytes(const Register& made) {
  const Datatype& type = *made.type;
  const TypeMap& map = *made.map;
  HOLDS(type.size == map.size());
  HOLDS(type.lb == map.lb);
  HOLDS(type.extent == map.extent());
  HOLDS(type.true_lb == map.true_lb());
  HOLDS(type.true_extent == map.true_ub() - map.true_lb());
  HOLDS(type.element_count == static_cast<MPI_Count>(map.entries.size()));
  if (type.size == 0) return;
  // One element or several, so that the step from one to the next is taken, and few blocks are copied together.
  const std::size_t choice = input_.byte();
  const MPI_Count count = map.bytes().size() > 200 ? 1 + static_cast<MPI_Count>(choice % 2)
                                                   : 1 + static_cast<MPI_Count>(choice % 20);
  std::vector<MPI_Count> places = map.bytes();
  MPI_Count low = std::min(type.true_lb, type.true_lb + (count - 1) * type.extent);
  MPI_Count high = std::max(type.true_lb, type.true_lb + (count - 1) * type.extent) + type.true_extent;
  std::vector<std::byte> memory(static_cast<std::size_t>(high - low)), expected;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 131 + (i >> 8));
  for (MPI_Count element = 0; element < count; ++element)
    for (MPI_Count place : places)
      expected.push_back(memory[static_cast<std::size_t>(place + element * type.extent - low)]);
  auto* address = reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(memory.data()) - low);
  Buffer buffer{address, count, made.type};
  auto offset = static_cast<MPI_Count>(expected.size() * input_.byte() / 256);
  MPI_Count bytes = (static_cast<MPI_Count>(expected.size()) - offset) * (input_.byte() + 1) / 256;
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  if (choice >= 128) HOLDS(commit(*made.type).ok()); // plans the other walks
  pack(buffer, offset, out.data(), bytes);
  if (bytes != 0) HOLDS(std::memcmp(out.data(), expected.data() + offset, out.size()) == 0);
  unpack(buffer, offset, out.data(), bytes); // bytes that are already there
  std::vector<std::byte> all(expected.size());
  pack_whole(address, count, *made.type, all.data(), buffer.bytes());
  HOLDS(all == expected);
  unpack_first(address, count, *made.type, all.data(), buffer.bytes());
  std::vector<Piece> list;
  HOLDS(pieces(buffer, offset, bytes, list, expected.size() + 1) == bytes);
  std::vector<std::byte> external(static_cast<std::size_t>(count * external_size(type)));
  HOLDS(pack_external(buffer, external.data()).ok());
  HOLDS(unpack_external(buffer, external.data()).ok());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(make_predefined_types());
  std::size_t live = datatypes().live();
  {
    Machine machine(Input(data, size));
    machine.run();
  }
  HOLDS(datatypes().live() == live);
  return 0;
}
