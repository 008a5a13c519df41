// Building the normal form: each step merges what it can, so that equivalent types get the same shape.
#include "datatype/normal_form.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace near::datatype {
namespace {

using Kind = NormalForm::Kind;

/// Lists with at most this many entries dissolve into the list that holds them: a struct of small structs becomes one list.
constexpr std::size_t dissolve_limit = 8;

bool is_block(const FormPointer& form) { return form->kind == Kind::block; }

/// Whether two forms have the same bytes at the same positions. May return false for equal forms that were
/// built independently; that only misses a merge.
bool same_shape(const FormPointer& a, const FormPointer& b) {
  const NormalForm* x = a.get();
  const NormalForm* y = b.get();
  while (x != y) {
    if (x->kind != y->kind || x->size != y->size) return false;
    if (x->kind == Kind::block) return true;
    if (x->kind != Kind::loop || x->count != y->count || x->stride != y->stride) return false;
    x = x->child.get();
    y = y->child.get();
  }
  return true;
}

FormPointer make_block(MPI_Count bytes) {
  auto form = std::make_shared<NormalForm>();
  form->size = bytes;
  return form;
}

/// Blocks of different lengths are cut into equal ones if each yields at most this many: copying one block of unpredictable
/// length takes as long as copying several of a fixed length. There are at most two for each run of the description, so
/// that the form takes no more memory than the description does.
constexpr MPI_Count most_units = 4;

/// Whether count * unit == value, without overflow.
bool spans(MPI_Count count, MPI_Count unit, MPI_Count value) {
  MPI_Count product;
  return !__builtin_mul_overflow(count, unit, &product) && product == value;
}

/// Lists with at least this many entries are shortened, since together with the copied data they exceed the first-level
/// cache. A shorter one is copied a little faster as it is.
constexpr std::size_t shortened_from = 2048;

/// A form with `block` at each of these positions.
PlacedForm make_equal(CompactNumbers positions, FormPointer block) {
  auto form = std::make_shared<NormalForm>();
  form->kind = Kind::equal;
  form->count = static_cast<MPI_Count>(positions.size());
  form->size = form->count * block->size;
  form->child = std::move(block);
  form->depth = 2;
  if (positions.size() >= shortened_from) positions.shorten();
  form->entries = FormEntries(std::move(positions));
  return {std::move(form), 0};
}
CompactNumbers positions_of(const std::vector<FormEntry>& entries, std::size_t n) {
  CompactNumbers positions;
  positions.reserve(n);
  for (std::size_t i = 0; i < n; ++i) positions.push_back(entries[i].at);
  return positions;
}

/// The greatest common divisor of a number and a positive number.
MPI_Count common_divisor(MPI_Count a, MPI_Count b) {
  const bool power_of_two = a > 0 && (a & (a - 1)) == 0;
  return power_of_two ? std::min(a, b & -b) : std::gcd(a, b);
}

/// Whether all entries lie `distance` apart.
bool evenly_spaced(const std::vector<FormEntry>& entries, std::size_t n, MPI_Count distance) {
  for (std::size_t i = 1; i < n; ++i)
    if (entries[i].at - entries[i - 1].at != distance) return false;
  return true;
}

} // namespace

void CompactNumbers::push_back_wide(MPI_Count value) {
  if (wide_.empty()) {
    wide_.reserve(std::max(narrow_.capacity(), narrow_.size() + 1));
    wide_.assign(narrow_.begin(), narrow_.end());
    std::vector<std::int32_t>().swap(narrow_);
  }
  wide_.push_back(value);
}

void CompactNumbers::shorten() {
  constexpr std::size_t group = copy::ShortOffsets::group;
  if (!is_narrow()) return;
  std::vector<std::int32_t> bases;
  bases.reserve((narrow_.size() + group - 1) / group);
  std::vector<std::uint16_t> distances;
  distances.reserve(narrow_.size());
  for (std::size_t first = 0; first < narrow_.size(); first += group) {
    const std::span numbers = std::span(narrow_).subspan(first, std::min(group, narrow_.size() - first));
    const auto [lowest, highest] = std::ranges::minmax(numbers);
    if (std::int64_t{highest} - lowest > std::numeric_limits<std::uint16_t>::max()) return;
    bases.push_back(lowest);
    for (std::int32_t number : numbers) distances.push_back(static_cast<std::uint16_t>(number - lowest));
  }
  narrow_ = std::move(bases);
  short_ = std::move(distances);
}

FormEntries::FormEntries(std::span<const FormEntry> entries) {
  Content content;
  content.at.reserve(entries.size());
  content.start.reserve(entries.size());
  for (const FormEntry& entry : entries) {
    content.at.push_back(entry.at);
    content.start.push_back(entry.start);
  }
  content_ = std::make_unique<const Content>(std::move(content));
}

FormEntries::FormEntries(CompactNumbers positions)
    : content_(std::make_unique<const Content>(Content{std::move(positions), {}})) {}

std::size_t FormEntries::holding(MPI_Count skip) const {
  if (skip == 0) return 0;
  // entries[low] begins at or before `skip`, entries[high] after it.
  std::size_t low = 0, high = size() - 1;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (start(middle) <= skip ? low : high) = middle;
  }
  return low;
}

PlacedForm block_form(MPI_Count at, MPI_Count bytes) {
  if (bytes == 0) return {};
  return {make_block(bytes), at};
}

PlacedForm repeat_form(const PlacedForm& child, MPI_Count count, MPI_Count stride) {
  if (count == 0 || !child.form) return {};
  if (count == 1) return child;
  const NormalForm& inner = *child.form;
  if (inner.kind == Kind::block && stride == inner.size) return {make_block(count * inner.size), child.at};
  auto form = std::make_shared<NormalForm>();
  form->kind = Kind::loop;
  form->size = count * inner.size;
  if (inner.kind == Kind::loop && spans(inner.count, inner.stride, stride)) {
    form->count = inner.count * count;
    form->stride = inner.stride;
    form->child = inner.child;
  } else {
    form->count = count;
    form->stride = stride;
    form->child = child.form;
  }
  form->depth = static_cast<std::uint16_t>(form->child->depth + 1);
  return {std::move(form), child.at};
}

RunsBuilder::RunsBuilder(PlacedForm child, MPI_Count stride, std::size_t expected)
    : child_(std::move(child)), stride_(stride), unit_(child_.size()) {
  // Copies of a loop that continue its stride are copies of what it repeats.
  if (child_.form && child_.form->kind == Kind::loop &&
      spans(child_.form->count, child_.form->stride, stride)) {
    stride_ = child_.form->stride;
    children_ = child_.form->count;
    child_.form = child_.form->child;
  }
  entries_.reserve(expected + 1);
}

void RunsBuilder::add(MPI_Count at, MPI_Count count) {
  if (count == 0 || unit_ == 0) return;
  ++added_;
  if (!end_known_ || at != end_) entries_.push_back({at, size_});
  MPI_Count length;
  size_ += count * unit_;
  end_known_ = !__builtin_mul_overflow(count * children_, stride_, &length) &&
               !__builtin_add_overflow(at, length, &end_);
}

bool RunsBuilder::single_copies() const {
  for (std::size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].start - entries_[i - 1].start != child_.form->size) return false;
  return true;
}

/// The form of blocks of `unit` bytes, `step` bytes apart, into which all runs are cut.
PlacedForm RunsBuilder::unmerged(MPI_Count unit, MPI_Count step) const {
  CompactNumbers positions;
  positions.reserve(static_cast<std::size_t>(size_ / unit));
  for (std::size_t i = 0; i + 1 < entries_.size(); ++i) {
    MPI_Count at = entries_[i].at;
    MPI_Count left = entries_[i + 1].start - entries_[i].start;
    for (;; at += step) { // the position of another block need not fit in 63 bits
      positions.push_back(at);
      left -= unit;
      if (left == 0) break;
    }
  }
  return make_equal(std::move(positions), make_block(unit));
}

PlacedForm RunsBuilder::finish() {
  if (entries_.empty()) return {};
  std::size_t n = entries_.size();
  entries_.push_back({0, size_});
  MPI_Count first = entries_[0].at;
  PlacedForm origin{child_.form, child_.at + first};
  MPI_Count copies = entries_[1].start / child_.form->size;
  if (n == 1) return repeat_form(origin, copies, stride_);
  bool contiguous = is_block(child_.form) && stride_ == child_.form->size;
  if (is_block(child_.form) && !contiguous && single_copies()) {
    // Blocks whose distance is not their own stride may still adjoin.
    RunsBuilder bytes(block_form(child_.at, 1), 1, n);
    for (std::size_t i = 0; i < n; ++i) bytes.add(entries_[i].at, child_.form->size);
    return bytes.finish();
  }
  bool equal = true;
  for (std::size_t i = 1; equal && i < n; ++i)
    equal = entries_[i + 1].start - entries_[i].start == entries_[1].start;
  if (equal) {
    MPI_Count distance = entries_[1].at - first;
    if (evenly_spaced(entries_, n, distance))
      return repeat_form(repeat_form(origin, copies, stride_), static_cast<MPI_Count>(n), distance);
  }
  for (std::size_t i = 0; i < n; ++i) entries_[i].at -= first;
  if (contiguous && equal)
    return move_form(make_equal(positions_of(entries_, n), make_block(entries_[1].start)), origin.at);
  if (is_block(child_.form)) {
    MPI_Count unit = contiguous ? 0 : child_.form->size;
    for (std::size_t i = 0; contiguous && i < n; ++i)
      unit = common_divisor(unit, entries_[i + 1].start - entries_[i].start);
    const MPI_Count units = size_ / unit;
    if (units <= most_units * static_cast<MPI_Count>(n) && units <= 2 * added_)
      return move_form(unmerged(unit, contiguous ? unit : stride_), origin.at);
  }
  auto form = std::make_shared<NormalForm>();
  form->size = size_;
  if (contiguous) {
    form->kind = Kind::blocks;
    form->depth = 1;
  } else {
    form->kind = Kind::runs;
    form->stride = stride_;
    form->child = child_.form;
    form->depth = static_cast<std::uint16_t>(child_.form->depth + 1);
  }
  form->entries = FormEntries(entries_);
  return {std::move(form), origin.at};
}

ListBuilder::ListBuilder(std::size_t expected) {
  forms_.reserve(expected);
  at_.reserve(expected);
}

void ListBuilder::add(const PlacedForm& placed) {
  if (!placed.form) return;
  const NormalForm& form = *placed.form;
  const bool has_entries = form.kind == Kind::blocks || form.kind == Kind::list;
  if (form.kind == Kind::equal && form.entries.size() <= dissolve_limit)
    for (std::size_t i = 0; i < form.entries.size(); ++i)
      add_node(form.child, placed.at + form.entries.positions()[i]);
  else if (has_entries && form.entries.size() <= dissolve_limit + 1)
    add_entries(form, placed.at);
  else
    add_node(placed.form, placed.at);
}

void ListBuilder::add_entries(const NormalForm& form, MPI_Count at) {
  for (std::size_t i = 0; i + 1 < form.entries.size(); ++i) {
    const FormEntry entry = form.entries[i];
    if (form.kind == Kind::list)
      add_node(form.children[i], at + entry.at);
    else
      add_node(make_block(form.entries.start(i + 1) - entry.start), at + entry.at);
  }
}

void ListBuilder::add_node(FormPointer form, MPI_Count at) {
  if (!forms_.empty() && is_block(form) && is_block(forms_.back()) &&
      at_.back() + forms_.back()->size == at) {
    forms_.back() = make_block(forms_.back()->size + form->size);
    return;
  }
  forms_.push_back(std::move(form));
  at_.push_back(at);
}

bool ListBuilder::all_blocks() const { return std::all_of(forms_.begin(), forms_.end(), is_block); }

bool ListBuilder::all_equally_spaced() const {
  for (std::size_t i = 1; i < forms_.size(); ++i) {
    if (!same_shape(forms_[i], forms_[0])) return false;
    if (at_[i] - at_[i - 1] != at_[1] - at_[0]) return false;
  }
  return true;
}

/// Replaces lists among the members by their own members, all the way down.
void ListBuilder::flatten() {
  std::vector<std::pair<FormPointer, MPI_Count>> work;
  for (std::size_t i = forms_.size(); i-- > 0;) work.emplace_back(std::move(forms_[i]), at_[i]);
  forms_.clear();
  at_.clear();
  while (!work.empty()) {
    auto [form, at] = std::move(work.back());
    work.pop_back();
    if (form->kind != Kind::list) {
      add_node(std::move(form), at);
      continue;
    }
    for (std::size_t i = form->children.size(); i-- > 0;)
      work.emplace_back(form->children[i], at + form->entries[i].at);
  }
}

PlacedForm ListBuilder::finish() {
  if (forms_.empty()) return {};
  auto depth_of = [](const FormPointer& form) { return form->depth; };
  std::uint16_t depth = 0;
  for (const FormPointer& form : forms_) depth = std::max(depth, depth_of(form));
  if (depth >= deepest_list_chain) {
    flatten();
    depth = 0;
    for (const FormPointer& form : forms_) depth = std::max(depth, depth_of(form));
  }
  if (forms_.size() == 1) return {forms_[0], at_[0]};
  if (all_equally_spaced())
    return repeat_form({forms_[0], at_[0]}, static_cast<MPI_Count>(forms_.size()), at_[1] - at_[0]);
  std::vector<FormEntry> entries;
  entries.reserve(forms_.size() + 1);
  MPI_Count size = 0;
  bool same_size = true;
  for (std::size_t i = 0; i < forms_.size(); ++i) {
    entries.push_back({at_[i] - at_[0], size});
    size += forms_[i]->size;
    same_size = same_size && forms_[i]->size == forms_[0]->size;
  }
  if (all_blocks() && same_size)
    return move_form(make_equal(positions_of(entries, forms_.size()), forms_[0]), at_[0]);
  entries.push_back({0, size});
  auto form = std::make_shared<NormalForm>();
  form->size = size;
  form->entries = FormEntries(entries);
  if (all_blocks()) {
    form->kind = Kind::blocks;
  } else {
    form->kind = Kind::list;
    form->depth = static_cast<std::uint16_t>(depth + 1);
    form->children = std::move(forms_);
  }
  return {std::move(form), at_[0]};
}

} // namespace near::datatype
