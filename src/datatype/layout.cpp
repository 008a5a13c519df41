// Arithmetic on layouts: first the bounds, with overflow checks, then the forms, which may rely on them.
#include "datatype/layout.h"

#include <algorithm>
#include <limits>

namespace near::datatype {
namespace {

bool fits(Int128 value) {
  return value >= std::numeric_limits<MPI_Count>::min() && value <= std::numeric_limits<MPI_Count>::max();
}

MPI_Count narrow(Int128 value) { return static_cast<MPI_Count>(value); }

Int128 multiply(Int128 a, Int128 b, bool& overflow) {
  Int128 product = 0;
  overflow |= __builtin_mul_overflow(a, b, &product);
  return product;
}

Result too_large() {
  return base::fail(MPI_ERR_ARG, "the new datatype's size or displacements exceed 2^63 - 1 bytes");
}

/// Copies what does not change when a type is repeated.
void inherit(const Layout& old, Layout& made) {
  made.alignment = old.alignment;
  made.marked = old.marked;
  made.element = made.size == 0 ? nullptr : old.element;
  made.element_count = made.signature ? made.signature->total.elements : 0;
}

} // namespace

void BoundsSum::add(const Layout& layout, Int128 at, Int128 count, Int128 stride) {
  if (count == 0 || layout.empty()) return;
  Int128 span = count == 1 ? 0 : multiply(count - 1, stride, overflow_);
  if (!fits(at) || !fits(span)) overflow_ = true;
  if (overflow_) return; // the sums below add a few 64-bit figures
  add_between(layout, at + std::min<Int128>(span, 0), at + std::max<Int128>(span, 0), count);
}

void BoundsSum::add_between(const Layout& layout, Int128 first, Int128 last, Int128 count) {
  auto cover = [](bool& any, Int128& low, Int128& high, Int128 from, Int128 to) {
    low = any ? std::min(low, from) : from;
    high = any ? std::max(high, to) : to;
    any = true;
  };
  cover(any_, low_, high_, first + layout.lb, last + layout.lb + layout.extent);
  if (layout.size == 0) return;
  cover(any_data_, true_low_, true_high_, first + layout.true_lb, last + layout.true_lb + layout.true_extent);
  size_ += multiply(count, layout.size, overflow_);
  overflow_ |= !fits(size_);
}

Result BoundsSum::finish(Layout& made, MPI_Count unit) const {
  if (overflow_) return too_large();
  Int128 extent = high_ - low_;
  if (unit != 1) extent += ((-extent) % unit + unit) % unit; // rounds up even if negative
  Int128 true_extent = true_high_ - true_low_;
  if (!fits(low_) || !fits(high_) || !fits(low_ + extent) || !fits(extent) || !fits(true_low_) ||
      !fits(true_high_) || !fits(true_extent))
    return base::fail(MPI_ERR_ARG,
                      "the new datatype's size ({} bytes) is possible, but its bounds do not fit 63 bits",
                      narrow(size_));
  made.size = narrow(size_);
  made.lb = narrow(low_);
  made.extent = narrow(extent);
  made.true_lb = narrow(true_low_);
  made.true_extent = narrow(true_extent);
  return {};
}

Result copies(const Layout& old, MPI_Count count, Int128 stride, Layout& made) {
  made = {};
  if (count == 0 || old.empty()) return {};
  if (count == 1) {
    made = old;
    return {};
  }
  BoundsSum sum;
  sum.add(old, 0, count, stride);
  NEAR_TRY(sum.finish(made));
  made.form = repeat_form(old.form, count, narrow(stride));
  made.signature = repeat_signature(old.signature, count);
  inherit(old, made);
  return {};
}

Result runs(const Layout& old, std::span<const Run> all, Layout& made) {
  made = {};
  if (old.empty()) return {};
  BoundsSum sum;
  MPI_Count count = 0;
  static_assert(std::numeric_limits<Int128>::is_specialized);
  Int128 first = std::numeric_limits<Int128>::max(), last = std::numeric_limits<Int128>::min();
  for (const Run& run : all) {
    if (run.count == 0) continue;
    MPI_Count span = 0;
    if (__builtin_mul_overflow(run.count - 1, old.extent, &span)) return too_large();
    const Int128 from = run.at, to = from + span;
    first = std::min({first, from, to});
    last = std::max({last, from, to});
    if (__builtin_add_overflow(count, run.count, &count))
      return base::fail(MPI_ERR_ARG, "the block lengths sum up to more than 2^63 - 1");
  }
  if (count == 0) return {};
  sum.add_between(old, first, last, count);
  NEAR_TRY(sum.finish(made));
  if (made.size != 0) {
    RunsBuilder builder(old.form, old.extent, all.size());
    for (const Run& run : all) builder.add(run.at, run.count);
    made.form = builder.finish();
    made.signature = repeat_signature(old.signature, count);
  }
  inherit(old, made);
  return {};
}

Result join(std::span<const Member> members, bool padded, Layout& made) {
  made = {};
  BoundsSum sum;
  bool mixed = false;
  for (const Member& member : members) {
    const Layout& layout = *member.layout;
    if (member.count == 0 || layout.empty()) continue;
    sum.add(layout, member.at, member.count, layout.extent);
    made.alignment = std::max(made.alignment, layout.alignment);
    made.marked |= layout.marked;
    if (layout.size == 0) continue;
    mixed |= layout.element == nullptr || (made.element != nullptr && layout.element != made.element);
    made.element = layout.element;
  }
  if (mixed) made.element = nullptr;
  NEAR_TRY(sum.finish(made, padded ? made.alignment : 1));
  if (made.size == 0) return {};
  ListBuilder list(members.size());
  SignatureBuilder signature(members.size());
  for (const Member& member : members) {
    if (member.count == 0 || member.layout->size == 0) continue;
    list.add(move_form(repeat_form(member.layout->form, member.count, member.layout->extent), member.at));
    signature.add(repeat_signature(member.layout->signature, member.count));
  }
  made.form = list.finish();
  made.signature = signature.finish();
  made.element_count = made.signature->total.elements;
  return {};
}

Result move(Layout& layout, MPI_Count by) {
  if (layout.empty()) return {};
  BoundsSum sum;
  sum.add(layout, by, 1, 0);
  NEAR_TRY(sum.finish(layout));
  if (layout.form.form) layout.form = move_form(layout.form, by);
  return {};
}

Result mark(Layout& layout, MPI_Count lb, MPI_Count extent) {
  MPI_Count ub;
  if (__builtin_add_overflow(lb, extent, &ub))
    return base::fail(MPI_ERR_ARG, "the upper bound, {} + {}, does not fit 63 bits", lb, extent);
  layout.lb = lb;
  layout.extent = extent;
  layout.marked = true;
  return {};
}

} // namespace near::datatype
