// `near model`: the time for packing and unpacking on this machine, predicted from its profile, and the error of the prediction.
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "model/check.h"
#include "model/plot.h"
#include "model/shape.h"
#include "model/type_text.h"
#include "os/descriptor.h"
#include "os/process.h"
#include "profile/messages.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "topo/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace near::tools {

namespace {

using model::Point;
using profile::Before;
using profile::Blocks;
using profile::Direction;
using profile::Spacing;

constexpr Direction both[] = {Direction::gather, Direction::scatter};
constexpr Before states[] = {Before::hot, Before::cold};

/// The time for the messages of one pair of processors.
constexpr std::uint64_t message_budget_ns = 200'000'000;

const char* verb(Direction direction) { return direction == Direction::gather ? "pack" : "unpack"; }
const char* location(Before before) { return before == Before::hot ? "in the caches" : "in memory"; }

std::string time_text(double nanoseconds) {
  if (std::abs(nanoseconds) < 1000) return base::format("{:.1f} ns", nanoseconds);
  if (std::abs(nanoseconds) < 1e6) return base::format("{:.2f} us", nanoseconds / 1e3);
  return base::format("{:.2f} ms", nanoseconds / 1e6);
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= 10u << 20) return base::format("{} MiB", bytes >> 20);
  if (bytes >= 10u << 10) return base::format("{} KiB", bytes >> 10);
  return base::format("{} bytes", bytes);
}

/// Reads this machine and its profile; fails, with advice, if the profile says nothing about packing.
base::Result read_profile(topo::Machine& machine, profile::Profile& known) {
  NEAR_TRY(topo::read_machine(machine));
  const std::string name = profile::machine_name(machine);
  bool found = false;
  NEAR_TRY(profile::load(name, known, found));
  std::string path;
  NEAR_TRY(profile::path_of(name, path));
  if (!found) return base::fail(base::Code::gone, "there is no profile {}; `near calibrate` makes it", path);
  if (!known.blocks.complete())
    return base::fail(base::Code::gone,
                      "the profile {} says nothing about packing, or not everything: `near calibrate` "
                      "measures it on an idle machine",
                      path);
  return {};
}

void print_blocks(const std::vector<Blocks>& all) {
  constexpr std::size_t most_lines = 6;
  for (std::size_t i = 0; i < std::min(all.size(), most_lines); ++i) {
    const Blocks& blocks = all[i];
    std::printf("  %s of %s", base::counted(blocks.count, "block").c_str(), bytes_text(blocks.bytes).c_str());
    if (blocks.count > 1)
      std::printf(
          ", %s %.0f bytes%s, in %s of cache lines",
          blocks.spacing == Spacing::equal ? "one every" : "listed, one every", blocks.step,
          blocks.spacing == Spacing::equal ? "" : " in the mean",
          bytes_text(static_cast<std::uint64_t>(std::min(profile::touched_bytes(blocks), 9e18))).c_str());
    std::printf("\n");
  }
  if (all.size() > most_lines) std::printf("  and %zu more kinds\n", all.size() - most_lines);
}

void print_why_no_messages(const std::vector<calibrate::Pair>& pairs) {
  std::printf("\nmessages: %s\n",
              pairs.empty() ? "they need two processors, and this process may use one only"
                            : "the profile says nothing about them; `near calibrate` measures them");
}

/// Predicts messages of this datatype, for each distance between processors; with `check`, measures them as well.
int predict_messages(const topo::Machine& machine, const profile::Profile& known, datatype::Datatype& type,
                     MPI_Count count, const std::vector<Blocks>& all, bool check) {
  const auto bytes = static_cast<std::uint64_t>(count * type.size);
  os::CpuSet allowed;
  if (!os::affinity_of(0, allowed).ok()) return complain();
  const std::vector<calibrate::Pair> pairs = calibrate::pairs_of(machine, allowed);
  if (std::none_of(pairs.begin(), pairs.end(), [&](const calibrate::Pair& pair) {
        return knows_messages(known, pair.distance, bytes);
      })) {
    print_why_no_messages(pairs);
    return 0;
  }
  std::printf("\n%-22s %10s %10s %10s %10s %10s%s\n", "message between", "transfer", "packing", "unpacking",
              "- overlap", "in all", check ? "   measured   error" : "");
  for (const calibrate::Pair& pair : pairs) {
    if (!knows_messages(known, pair.distance, bytes)) continue;
    const profile::MessageTerms terms = predict_message(known, pair.distance, all, bytes);
    std::printf("%-22s %10s %10s %10s %10s %10s", segment::distance_name(pair.distance),
                time_text(terms.transfer).c_str(), time_text(terms.packing).c_str(),
                time_text(terms.unpacking).c_str(), time_text(terms.overlap).c_str(),
                time_text(terms.total()).c_str());
    double took = 0;
    if (check && !calibrate::time_message(pair, terms.kind, type, count, message_budget_ns, took).ok()) {
      std::printf("\n");
      return complain();
    }
    if (check) std::printf(" %10s %+6.0f%%", time_text(took).c_str(), 100 * (terms.total() / took - 1));
    std::printf("\n");
  }
  return 0;
}

int predict(const ModelOptions& options) {
  model::HeldType type;
  MPI_Count count = 0;
  topo::Machine machine;
  profile::Profile known;
  if (!model::parse_type(options.type, type).ok() || !model::elements_for(*type, options.bytes, count).ok() ||
      !read_profile(machine, known).ok())
    return complain();
  const MPI_Count bytes = count * (*type).size;
  const std::vector<Blocks> all = model::blocks_of(*type, count);
  std::printf("%s of %s: %s of data\n", base::counted(static_cast<std::uint64_t>(count), "element").c_str(),
              options.type.c_str(), bytes_text(static_cast<std::uint64_t>(bytes)).c_str());
  print_blocks(all);
  std::printf("\n%-22s %10s %10s %10s %10s %7s%s\n", "", "start", "addresses", "memory", "in all", "GB/s",
              options.check ? "   measured   error" : "");
  for (Direction direction : both)
    for (Before before : states) {
      const profile::CopyTerms terms = predict_copy(known.blocks, direction, all, before);
      std::printf("%-22s %10s %10s %10s %10s %7.2f",
                  base::format("{}, {}", verb(direction), location(before)).c_str(),
                  time_text(terms.start).c_str(), time_text(terms.addresses).c_str(),
                  time_text(terms.memory).c_str(), time_text(terms.total()).c_str(),
                  static_cast<double>(bytes) / terms.total());
      double took = 0;
      if (options.check) {
        if (!model::time_copy(count, *type, direction, before, took).ok()) {
          std::printf("\n");
          return complain();
        }
        std::printf(" %10s %+6.0f%%", time_text(took).c_str(), 100 * (terms.total() / took - 1));
      }
      std::printf("\n");
    }
  return predict_messages(machine, known, *type, count, all, options.check);
}

void print_points(const std::vector<Point>& points) {
  std::printf("%-9s %-6s %9s %7s %9s %-13s %10s %10s %7s\n", "blocks", "", "data", "length", "step", "lines",
              "predicted", "measured", "error");
  for (const Point& point : points)
    std::printf("%-9s %-6s %9llu %7llu %9llu %-13s %10s %10s %+6.0f%%\n", spacing_name(point.spacing),
                verb(point.direction), static_cast<unsigned long long>(point.bytes),
                static_cast<unsigned long long>(point.length), static_cast<unsigned long long>(point.step),
                location(point.before), time_text(point.predicted).c_str(), time_text(point.measured).c_str(),
                100 * point.error());
}

/// A prediction of twice the time and one of half the time are equally wrong.
template <class Compared>
void sort_by_error(std::vector<Compared>& points) {
  const auto wrong = [](const Compared& point) {
    return std::abs(std::log(point.predicted / point.measured));
  };
  std::sort(points.begin(), points.end(),
            [&](const Compared& one, const Compared& other) { return wrong(one) > wrong(other); });
}
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
/// The errors, and the difference between two measurements of one layout, which bounds what any model can achieve.
template <class Compared>
void print_errors(const std::vector<Compared>& points, const char* of) {
  std::vector<double> errors, differences;
  for (const Compared& point : points) {
    errors.push_back(std::abs(point.error()));
    if (point.again != 0) differences.push_back(std::abs(point.again / point.measured - 1));
  }
  const auto [least, most] =
      std::minmax_element(points.begin(), points.end(), [](const Compared& one, const Compared& other) {
        return one.error() < other.error();
      });
  std::printf("\n%zu predictions%s: median error %.0f%%, from %+.0f%% to %+.0f%%\n", points.size(), of,
              100 * median(errors), 100 * least->error(), 100 * most->error());
  if (!differences.empty())
    std::printf("%zu of them measured again: median difference %.0f%%\n", differences.size(),
                100 * median(differences));
}
template <class Compared>
std::vector<Compared> worst_of(const std::vector<Compared>& points, bool all) {
  constexpr std::size_t worst = 12;
  const auto shown = static_cast<std::ptrdiff_t>(all ? points.size() : std::min(worst, points.size()));
  return {points.begin(), points.begin() + shown};
}

/// Messages of many layouts, predicted and measured.
int check_messages(const topo::Machine& machine, const profile::Profile& known, bool all,
                   const std::function<void(std::size_t, std::size_t)>& report) {
  os::CpuSet allowed;
  if (!os::affinity_of(0, allowed).ok()) return complain();
  const std::vector<calibrate::Pair> pairs = calibrate::pairs_of(machine, allowed);
  std::vector<model::MessagePoint> points;
  const base::Result checked = model::check_messages(known, pairs, report, points);
  if (os::is_terminal(2)) std::fputs("\r\033[K", stderr);
  if (!checked.ok()) return complain();
  if (points.empty()) {
    print_why_no_messages(pairs);
    return 0;
  }
  sort_by_error(points);
  std::printf("\n%-22s %-9s %9s %7s %9s %10s %10s %7s\n", "message between", "blocks", "data", "length",
              "step", "predicted", "measured", "error");
  for (const model::MessagePoint& point : worst_of(points, all))
    std::printf("%-22s %-9s %9llu %7llu %9llu %10s %10s %+6.0f%%\n", segment::distance_name(point.distance),
                spacing_name(point.spacing), static_cast<unsigned long long>(point.bytes),
                static_cast<unsigned long long>(point.length), static_cast<unsigned long long>(point.step),
                time_text(point.predicted).c_str(), time_text(point.measured).c_str(), 100 * point.error());
  print_errors(points, " of messages");
  return 0;
}

int check(const ModelOptions& options) {
  topo::Machine machine;
  profile::Profile known;
  Output plot;
  if (!read_profile(machine, known).ok()) return complain();
  if (!options.plot.empty() && !plot.open(options.plot).ok()) return complain();
  std::vector<Point> points;
  const bool terminal = os::is_terminal(2);
  auto report = [terminal](std::size_t done, std::size_t total) {
    if (terminal) std::fprintf(stderr, "\r\033[K%zu of %zu", done, total);
  };
  const base::Result checked = model::check_grid(known.blocks, report, points);
  if (terminal) std::fputs("\r\033[K", stderr);
  if (!checked.ok()) return complain();
  if (!options.plot.empty() && !plot.write(model::plot_of(points)).ok()) return complain();
  sort_by_error(points);
  if (!options.all) std::printf("The predictions that were furthest from what was measured:\n\n");
  print_points(worst_of(points, options.all));
  print_errors(points, "");
  return check_messages(machine, known, options.all, report);
}

} // namespace

int model(const ModelOptions& options) { return options.type.empty() ? check(options) : predict(options); }

} // namespace near::tools
