#include "planning/drawing.h"

#include "base/text.h"

#include <algorithm>
#include <tuple>

namespace near::planning {
namespace {

enum class Use { free, forbidden, taken };

struct Cell {
  Use use = Use::free;
  std::string text;  ///< for a core in use: its ranks
  unsigned rank = 0; ///< the lowest of them
};

/// The cores of one cache: an L3, or without an L3 an L2 that several cores share.
using Group = std::vector<Cell>;

/// A NUMA node.
struct Row {
  std::string package, node, memory;
  std::vector<Group> groups; ///< empty for memory without processors
  std::string devices;
  /// Whether all cores of the row have this use, and nothing else is shown.
  bool all(Use use) const {
    for (const auto& group : groups)
      for (const auto& cell : group)
        if (cell.use != use) return false;
    return !groups.empty() && devices.empty();
  }
};

std::string size_text(std::uint64_t bytes) {
  if (bytes == 0) return "";
  if (bytes >> 30 == 0) return base::format("{} MiB", bytes >> 20);
  return base::format("{} GiB", (bytes + (1ull << 29)) >> 30);
}

Cell cell_of(const Core& core, const Slots& slots, const Plan& plan) {
  Cell cell;
  CpuSet cpus = core.cpus & slots.allowed, ranks;
  if (cpus.empty()) cell.use = Use::forbidden;
  for (std::size_t row = 0; row < plan.bindings.size(); ++row) {
    const auto& binding = plan.bindings[row];
    if (!binding.cpus.empty() && !(binding.home & cpus).empty()) ranks.add(plan.rank_of(row));
  }
  if (ranks.empty()) return cell;
  cell.use = Use::taken;
  cell.text = ranks.text();
  cell.rank = static_cast<unsigned>(ranks.first());
  return cell;
}

Row row_of(const Machine& machine, unsigned index, const Slots& slots, const Plan& plan) {
  Row row;
  unsigned number = index;
  CpuSet cpus;
  const Core* before = nullptr;
  for (const auto& core : machine.cores) {
    if (core.numa != index) continue;
    bool same = before != nullptr && (machine.has_l3 ? before->l3 == core.l3 : before->l2 == core.l2);
    // Groups of one core each would only add bars.
    bool own = !machine.has_l3 && (!machine.has_l2 || machine.l2s >= machine.cores.size());
    same = same || (before != nullptr && own);
    if (!same) row.groups.emplace_back();
    row.groups.back().push_back(cell_of(core, slots, plan));
    cpus = cpus | core.cpus;
    before = &core;
  }
  if (index < machine.nodes.size()) {
    const auto& node = machine.nodes[index];
    number = node.number;
    row.memory = size_text(node.bytes);
    if (node.tier != Tier::dram) row.memory += base::format(" {}", tier_name(node.tier));
    if (cpus.empty()) cpus = node.near;
  }
  row.node = base::format("node {}", number);
  CpuSet packages;
  for (const auto& core : machine.cores)
    if (!(core.cpus & cpus).empty()) packages.add(core.package);
  if (!packages.empty()) row.package = (packages.count() == 1 ? "package " : "packages ") + packages.text();
  if (row.groups.empty()) return row;
  for (const auto& device : machine.devices) {
    // A device near several nodes is shown at the first of them.
    bool here = false;
    for (const auto& core : machine.cores)
      if (!(core.cpus & device.near).empty()) {
        here = core.numa == index;
        break;
      }
    if (here) row.devices += (row.devices.empty() ? "" : ", ") + device.name;
  }
  return row;
}

std::vector<Row> rows_of(const Machine& machine, const Slots& slots, const Plan& plan) {
  // Memory without processors is shown after the node with the processors nearest to it.
  std::vector<std::pair<unsigned, unsigned>> order; // (first core near, node)
  for (unsigned index = 0; index < machine.numas; ++index) {
    unsigned first = static_cast<unsigned>(machine.cores.size());
    for (const auto& core : machine.cores) {
      bool near = core.numa == index || (index < machine.nodes.size() && !machine.nodes[index].has_cores &&
                                         !(machine.nodes[index].near & core.cpus).empty());
      if (near) first = std::min(first, core.index);
    }
    order.emplace_back(first, index);
  }
  std::sort(order.begin(), order.end(), [&](const auto& one, const auto& other) {
    auto key = [&](const auto& entry) {
      auto index = entry.second;
      bool cores = index < machine.nodes.size() && machine.nodes[index].has_cores;
      return std::tuple(entry.first, !cores, index);
    };
    return key(one) < key(other);
  });
  std::vector<Row> rows;
  for (auto [first, index] : order) rows.push_back(row_of(machine, index, slots, plan));
  return rows;
}

std::string cell_text(const Cell& cell) {
  if (cell.use == Use::taken) return cell.text;
  return cell.use == Use::forbidden ? "-" : ".";
}

bool same_shape(const Row& one, const Row& other) {
  auto sizes = [](const Row& row) {
    std::vector<std::size_t> list;
    for (const auto& group : row.groups) list.push_back(group.size());
    return list;
  };
  return one.memory == other.memory && sizes(one) == sizes(other);
}

void pad(std::string& text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
}

// XML's special characters.
std::string escaped(const std::string& text) {
  std::string safe;
  for (char letter : text) switch (letter) {
    case '&': safe += "&amp;"; break;
    case '<': safe += "&lt;"; break;
    case '>': safe += "&gt;"; break;
    case '"': safe += "&quot;"; break;
    default: safe += letter;
    }
  return safe;
}

/// The plan as an image; `y_` is where the next line or row begins.
class SvgDrawing {
public:
  void caption(const std::string& text) {
    y_ += line;
    right_ = std::max(right_, margin + static_cast<unsigned>(text.size()) * 8);
    write(margin, y_ - 4, "label", text);
  }
  void rows(const std::vector<Row>& rows) {
    y_ += margin;
    std::string shown;
    for (const auto& row : rows) {
      if (row.package != shown) {
        y_ += shown.empty() ? 0 : margin;
        write(margin, y_ + 14, "package", row.package);
        y_ += line + gap;
        shown = row.package;
      }
      draw_row(row);
    }
  }
  std::string text() const {
    return base::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
               "{1}\" font-family=\"sans-serif\" font-size=\"13\">\n",
               right_ + margin, y_ + margin) +
           "<style>.package{font-weight:bold}.cache{fill:#eee;stroke:#666}.core{stroke:#888}"
           ".rank{text-anchor:middle;font-size:12px}</style>\n<rect width=\"100%\" height=\"100%\" "
           "fill=\"#fff\"/>\n" +
           body_ + "</svg>\n";
  }

private:
  static constexpr unsigned side = 26, gap = 4, label = 190, line = 18, margin = 12, widest = 40;

  void write(unsigned x, unsigned y, const char* style, const std::string& text) {
    body_ += base::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, style, escaped(text));
  }
  void rectangle(unsigned x, unsigned y, unsigned width, unsigned height, const std::string& attributes) {
    body_ += base::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", x, y, width, height,
                          attributes);
  }

  void draw_row(const Row& row) {
    write(margin + 12, y_ + 20, "label", row.node + (row.memory.empty() ? "" : ", " + row.memory));
    unsigned x = label, bottom = y_ + side + 2 * gap;
    for (const auto& group : row.groups) {
      auto columns = std::min(widest, static_cast<unsigned>(group.size()));
      auto lines = (static_cast<unsigned>(group.size()) + widest - 1) / widest;
      unsigned width = columns * (side + gap) + gap, height = lines * (side + gap) + gap;
      if (x > label && x + width > label + widest * (side + gap)) {
        x = label;
        y_ = bottom + gap;
      }
      rectangle(x, y_, width, height, "class=\"cache\"");
      for (unsigned i = 0; i < group.size(); ++i)
        draw_core(group[i], x + gap + i % widest * (side + gap), y_ + gap + i / widest * (side + gap));
      x += width + gap;
      bottom = std::max(bottom, y_ + height);
      right_ = std::max(right_, x);
    }
    if (!row.devices.empty()) write(x + gap, y_ + 20, "label", row.devices);
    right_ = std::max(right_, x + gap + static_cast<unsigned>(row.devices.size()) * 8);
    y_ = bottom + gap;
  }

  void draw_core(const Cell& core, unsigned left, unsigned top) {
    std::string fill = core.use == Use::forbidden ? "#999" : "#fff";
    // Steps of the golden angle give neighbouring ranks different colours.
    if (core.use == Use::taken)
      fill = base::format("hsl({}, 60%, 75%)", static_cast<unsigned>(core.rank * 137.5) % 360);
    rectangle(left, top, side, side, base::format("class=\"core\" fill=\"{}\"", fill));
    if (core.use != Use::taken) return;
    body_ += base::format("<text x=\"{}\" y=\"{}\" class=\"rank\"{}>{}</text>\n", left + side / 2, top + 17,
                          core.text.size() > 3 ? " textLength=\"24\" lengthAdjust=\"spacingAndGlyphs\"" : "",
                          core.text);
  }

  std::string body_;
  unsigned y_ = margin, right_ = 640;
};

} // namespace

std::string draw_text(const Machine& machine, const Slots& slots, const Plan& plan) {
  constexpr std::size_t widest = 108;
  if (std::all_of(plan.bindings.begin(), plan.bindings.end(),
                  [](const Binding& binding) { return binding.cpus.empty(); }))
    return ""; // ranks that may run anywhere cannot be drawn
  auto rows = rows_of(machine, slots, plan);
  std::size_t package = 0, node = 0, memory = 0, cell = 1;
  for (const auto& row : rows) {
    package = std::max(package, row.package.size());
    node = std::max(node, row.node.size());
    memory = std::max(memory, row.memory.size());
    for (const auto& group : row.groups)
      for (const auto& each : group) cell = std::max(cell, cell_text(each).size());
  }
  std::string text, shown;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto& row = rows[at];
    std::size_t end = at;
    Use use = row.all(Use::free) ? Use::free : Use::forbidden;
    while (end < rows.size() && rows[end].all(use) && same_shape(rows[end], row)) ++end;
    if (end - at > 2) {
      std::string last = rows[end - 1].package == row.package ? "" : rows[end - 1].package + ", ";
      text += base::format("{}, {} to {}{}: {}\n", row.package, row.node, last, rows[end - 1].node,
                           use == Use::free ? "free" : "not allowed");
      shown = rows[end - 1].package;
      at = end - 1;
      continue;
    }
    std::string line = row.package == shown ? "" : row.package;
    shown = row.package;
    pad(line, package + 2);
    line += row.node;
    pad(line, package + node + 4);
    line += std::string(memory - row.memory.size(), ' ') + row.memory;
    std::size_t margin = line.size();
    for (const auto& group : row.groups) {
      line += " |";
      for (const auto& each : group) {
        if (line.size() - (line.rfind('\n') + 1) + cell + 3 > widest)
          line += "\n" + std::string(margin + 2, ' ');
        line += " ";
        auto word = cell_text(each);
        line += std::string(cell - word.size(), ' ') + word;
      }
    }
    if (!row.groups.empty()) line += " |";
    if (!row.devices.empty()) line += " " + row.devices;
    text += line + "\n";
  }
  return text;
}

std::string draw_svg(const Machine& machine, const Slots& slots, const Plan& plan) {
  SvgDrawing drawing;
  drawing.caption("machine: " + machine.text());
  drawing.caption(base::format("slots: {} ({})", slots.count, slots.reason));
  for (const auto& note : plan.notes) drawing.caption(note);
  drawing.rows(rows_of(machine, slots, plan));
  return drawing.text();
}

} // namespace near::planning
