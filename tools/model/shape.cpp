#include "model/shape.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <tuple>
#include <unordered_map>

namespace near::model {

using datatype::NormalForm;
using profile::Blocks;
using profile::Spacing;

namespace {

/// The blocks of a form, without a list of them: the number of each kind, and where they begin and end.
class Summary {
public:
  Summary() = default;
  static Summary of_block(MPI_Count bytes) {
    Summary made;
    made.first_bytes_ = bytes;
    return made;
  }
  /// `count` copies of `child`, `stride` bytes apart.
  static Summary of_loop(const Summary& child, MPI_Count count, MPI_Count stride, Spacing spacing) {
    Summary made = child;
    for (auto& [kind, sum] : made.others_)
      sum = {sum.count * static_cast<double>(count), sum.distance * static_cast<double>(count)};
    made.add(child.first_bytes_, spacing, static_cast<double>(stride) - static_cast<double>(child.last_),
             static_cast<double>(count - 1));
    made.last_ = (count - 1) * stride + child.last_;
    return made;
  }
  /// Adds the blocks that follow; their origin is at `at`.
  void append(const Summary& next, MPI_Count at) {
    if (first_bytes_ == 0) {
      *this = next;
    } else {
      add(next.first_bytes_, Spacing::listed, static_cast<double>(at) - static_cast<double>(last_), 1);
      for (const auto& [kind, sum] : next.others_) others_[kind].add(sum);
    }
    last_ = at + next.last_;
  }
  std::vector<Blocks> all() const {
    std::vector<Blocks> made;
    if (first_bytes_ == 0) return made;
    for (const auto& [kind, sum] : others_)
      made.push_back({static_cast<std::uint64_t>(sum.count), static_cast<std::uint64_t>(std::get<0>(kind)),
                      sum.distance / sum.count, std::get<1>(kind)});
    // The first block has no distance from a previous one: it counts with others of its length.
    for (Blocks& blocks : made)
      if (blocks.bytes == static_cast<std::uint64_t>(first_bytes_)) {
        ++blocks.count;
        return made;
      }
    made.push_back(
        {1, static_cast<std::uint64_t>(first_bytes_), static_cast<double>(first_bytes_), Spacing::equal});
    return made;
  }

private:
  struct Sum {
    double count = 0, distance = 0; ///< sum of the distances from the previous block
    void add(const Sum& more) {
      count += more.count;
      distance += more.distance;
    }
  };
  /// Bytes, spacing, and the power of two of the distance, so that a few distant blocks do not change the mean of all.
  using Kind = std::tuple<MPI_Count, Spacing, int>;

  void add(MPI_Count bytes, Spacing spacing, double distance, double count) {
    if (count <= 0) return;
    const double far = std::abs(distance);
    const auto whole = far < 9e18 ? static_cast<std::uint64_t>(far) : UINT64_MAX / 2;
    others_[{bytes, spacing, std::bit_width(whole)}].add({count, far * count});
  }

  MPI_Count first_bytes_ = 0; ///< of the first block, which begins at the origin; 0: there is none
  MPI_Count last_ = 0;        ///< where the last block begins
  std::map<Kind, Sum> others_;
};

/// Each form is summarised once, however many types share it.
class Summaries {
public:
  const Summary& of(const NormalForm& form) {
    if (auto known = known_.find(&form); known != known_.end()) return known->second;
    Summary made = make(form);
    return known_.emplace(&form, std::move(made)).first->second;
  }

private:
  Summary make(const NormalForm& form) {
    using Shape = NormalForm::Kind;
    if (form.kind == Shape::block) return Summary::of_block(form.size);
    if (form.kind == Shape::loop)
      return Summary::of_loop(of(*form.child), form.count, form.stride, Spacing::equal);
    Summary made;
    if (form.kind == Shape::equal) {
      const auto& positions = form.entries.positions();
      for (std::size_t i = 0; i < positions.size(); ++i) made.append(of(*form.child), positions[i]);
      return made;
    }
    for (std::size_t i = 0; i + 1 < form.entries.size(); ++i) {
      const datatype::FormEntry entry = form.entries[i];
      const MPI_Count bytes = form.entries.start(i + 1) - entry.start;
      if (form.kind == Shape::blocks)
        made.append(Summary::of_block(bytes), entry.at);
      else if (form.kind == Shape::runs)
        made.append(Summary::of_loop(of(*form.child), bytes / form.child->size, form.stride, Spacing::equal),
                    entry.at);
      else
        made.append(of(*form.children[i]), entry.at);
    }
    return made;
  }

  std::unordered_map<const NormalForm*, Summary> known_;
};

} // namespace

std::vector<Blocks> blocks_of(const datatype::Datatype& type, MPI_Count count) {
  if (type.size == 0 || count == 0) return {};
  if (type.contiguous) return Summary::of_block(count * type.size).all();
  Summaries summaries;
  return Summary::of_loop(summaries.of(*type.form.form), count, type.extent, Spacing::equal).all();
}

Result elements_for(datatype::Datatype& type, std::uint64_t bytes, MPI_Count& count) {
  if (type.size == 0) return base::fail(base::Code::invalid, "the datatype has no bytes");
  const std::uint64_t wanted = bytes == 0 ? 1 : (bytes - 1) / static_cast<std::uint64_t>(type.size) + 1;
  count = static_cast<MPI_Count>(std::min<std::uint64_t>(wanted, INT64_MAX));
  datatype::Datatype* whole = nullptr; // constructed to check what fits
  NEAR_TRY(datatype::make_contiguous(count, type, whole));
  datatype::release(whole);
  return {};
}

} // namespace near::model
