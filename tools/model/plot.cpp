#include "model/plot.h"

#include "model/svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace near::model {

namespace {

// Pixels, and powers of ten of a nanosecond.
constexpr double left = 80, top = 50, edge = 560, width = left + edge + 30, height = top + edge + 70;
constexpr int first_decade = 1, last_decade = 7;
constexpr const char* names_of_decades[] = {"10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms"};
static_assert(std::size(names_of_decades) == last_decade - first_decade + 1);

double part_of(double nanoseconds) {
  const double part = (std::log10(std::max(nanoseconds, 1e-3)) - first_decade) / (last_decade - first_decade);
  return std::clamp(part, 0.0, 1.0);
}
double right_of(double measured) { return left + edge * part_of(measured); }
double down_of(double predicted) { return top + edge * (1 - part_of(predicted)); }

std::string axes() {
  std::string drawn;
  for (int decade = first_decade; decade <= last_decade; ++decade) {
    const double time = std::pow(10, decade), x = right_of(time), y = down_of(time);
    const std::string name = names_of_decades[decade - first_decade];
    drawn +=
        rule(x, top, x, top + edge, "stroke=\"#ddd\"") + rule(left, y, left + edge, y, "stroke=\"#ddd\"");
    drawn += text(x, top + edge + 18, "middle", name) + text(left - 8, y + 4, "end", name);
  }
  drawn += text(left + edge / 2, top + edge + 42, "middle", "measured");
  return drawn +
         base::format(
             "<text transform=\"translate(16 {:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n",
             top + edge / 2);
}

/// Where the prediction is `ratio` times the measurement.
std::string line_of(double ratio, const char* style) {
  const double least = std::pow(10, first_decade), most = std::pow(10, last_decade);
  const double from = std::max(least, least / ratio), to = std::min(most, most / ratio);
  return rule(right_of(from), down_of(from * ratio), right_of(to), down_of(to * ratio), style);
}

const char* colour_of(profile::Before before) {
  return before == profile::Before::hot ? "#0b62a4" : "#d1600a";
}

std::string legend() {
  std::string drawn;
  double y = top + 20;
  for (auto [before, words] : {std::pair{profile::Before::hot, "lines in the caches"},
                               std::pair{profile::Before::cold, "lines in memory"}}) {
    drawn += base::format("<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"4\" fill=\"{}\"/>\n", left + 16, y - 4,
                          colour_of(before));
    drawn += text(left + 28, y, "start", words);
    y += 20;
  }
  return drawn + text(left + 12, y, "start", "dashed: 1.8 and 0.4 times as long as measured");
}

} // namespace

std::string plot_of(std::span<const Point> points) {
  std::string drawn = document(width, height);
  drawn += text(left + edge / 2, 28, "middle",
                base::format("Packing and unpacking, predicted and measured: {} layouts", points.size()));
  drawn += axes();
  for (const Point& point : points)
    drawn +=
        base::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\" fill-opacity=\"0.55\"/>\n",
                     right_of(point.measured), down_of(point.predicted), colour_of(point.before));
  drawn += line_of(1, "stroke=\"black\"");
  drawn += line_of(1.8, "stroke=\"black\" stroke-dasharray=\"5 5\"") +
           line_of(0.4, "stroke=\"black\" stroke-dasharray=\"5 5\"");
  return drawn + legend() + "</svg>\n";
}

} // namespace near::model
