// See curves.h.
#include "model/curves.h"

#include "model/svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace near::model {
namespace {

// Pixels, powers of two of a byte, and powers of ten of a nanosecond.
constexpr double left = 70, top = 50, edge = 430, gap = 90, bottom = 70;
constexpr int first_power = 3, last_power = 26, first_decade = 3, last_decade = 9;
constexpr const char* names_of_decades[] = {"1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"};
static_assert(std::size(names_of_decades) == last_decade - first_decade + 1);
constexpr const char* colours[] = {"#0b62a4", "#d1600a", "#3a8f3a", "#8a3ab9"};

/// Where a panel begins.
double begin_of(std::size_t panel) { return left + static_cast<double>(panel) * (edge + gap); }
double right_of(MPI_Count bytes) {
  const double power = std::log2(static_cast<double>(std::max<MPI_Count>(bytes, 1)));
  return edge * std::clamp((power - first_power) / (last_power - first_power), 0.0, 1.0);
}
double down_of(double nanoseconds) {
  const double part = (std::log10(std::max(nanoseconds, 1.0)) - first_decade) / (last_decade - first_decade);
  return top + edge * (1 - std::clamp(part, 0.0, 1.0));
}

std::string axes(double begin) {
  std::string drawn;
  for (int decade = first_decade; decade <= last_decade; ++decade) {
    const double y = down_of(std::pow(10, decade));
    drawn += rule(begin, y, begin + edge, y, "stroke=\"#ddd\"");
    drawn += text(begin - 8, y + 4, "end", names_of_decades[decade - first_decade]);
  }
  constexpr std::pair<MPI_Count, const char*> marks[] = {
      {8, "8 B"}, {1 << 10, "1 KiB"}, {32 << 10, "32 KiB"}, {1 << 20, "1 MiB"}, {64 << 20, "64 MiB"}};
  for (const auto& [bytes, name] : marks) {
    const double x = begin + right_of(bytes);
    drawn += rule(x, top, x, top + edge, "stroke=\"#ddd\"") + text(x, top + edge + 18, "middle", name);
  }
  return drawn;
}

std::string line(const Curve& curve, double begin, bool near, const char* colour) {
  std::string points;
  for (const Curve::Point& point : curve.points)
    points +=
        base::format("{:.1f},{:.1f} ", begin + right_of(point.bytes), down_of(near ? point.near : point.far));
  return base::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
                      colour, near ? "" : " stroke-dasharray=\"5 4\"");
}

} // namespace

std::string drawing_of(const std::vector<Panel>& panels) {
  std::string drawn = document(begin_of(panels.size()) - gap + 30, top + edge + bottom);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const double begin = begin_of(i);
    drawn += text(begin + edge / 2, 28, "middle", panels[i].title) + axes(begin);
    double y = top + 20;
    for (std::size_t number = 0; number < panels[i].curves.size(); ++number) {
      const Curve& curve = panels[i].curves[number];
      const char* colour = colours[number % std::size(colours)];
      drawn += line(curve, begin, false, colour) + line(curve, begin, true, colour);
      drawn += rule(begin + 12, y - 4, begin + 40, y - 4,
                    base::format("stroke=\"{}\" stroke-width=\"2\"", colour).c_str());
      drawn += text(begin + 48, y, "start", curve.name);
      y += 20;
    }
    drawn += text(begin + 12, y, "start", "dashed: the lowest ranks lead");
    drawn += text(begin + edge / 2, top + edge + 42, "middle", "bytes");
  }
  return drawn + "</svg>\n";
}

} // namespace near::model
