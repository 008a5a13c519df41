// The snapshot as JSON: doc/place.md describes each field.
#include "place/show.h"
#include "segment/activity.h"

#include <nlohmann/json.hpp>

namespace near::place {

namespace {

using Json = nlohmann::ordered_json;

constexpr int schema_version = 1;

/// Node numbers are keys, which are strings in JSON.
Json by_node(const BytesOn& bytes) {
  Json object = Json::object();
  for (auto [node, count] : bytes) object[std::to_string(node)] = count;
  return object;
}

Json node_or_null(int node) { return node < 0 ? Json(nullptr) : Json(node); }

/// Addresses have 64 bits; numbers in JSON readers often have only 53.
std::string address(std::uint64_t value) { return base::format("{:#x}", value); }

Json ranges_of(const std::vector<Range>& ranges) {
  Json list = Json::array();
  for (const auto& range : ranges)
    list.push_back({{"begin", address(range.begin)},
                    {"end", address(range.end)},
                    {"node", range.node},
                    {"wrong", range.wrong}});
  return list;
}

Json mapping_of(const Mapping& mapping) {
  return {{"begin", address(mapping.entry.begin)},
          {"end", address(mapping.entry.end)},
          {"kind", kind_name(mapping.kind)},
          {"name", mapping.entry.name},
          {"permissions", mapping.entry.permissions},
          {"policy", mapping.line.policy},
          {"page_bytes", mapping.line.page_bytes},
          {"bytes_on", by_node(mapping.line.bytes_on())},
          {"intended_nodes", mapping.intended},
          {"judged_bytes", mapping.own.judged},
          {"local_bytes", mapping.own.local},
          {"copy_on_write_bytes", mapping.copy_on_write},
          {"zero_bytes", mapping.zeros},
          {"huge_bytes", mapping.entry.huge},
          {"not_in_core_bytes", mapping.not_in_core},
          {"located", mapping.located},
          {"ranges", ranges_of(mapping.ranges)}};
}

Json process_of(const Process& process) {
  Json mappings = Json::array();
  for (const auto& mapping : process.mappings)
    if (!mapping.line.pages_on.empty() || mapping.not_in_core != 0) mappings.push_back(mapping_of(mapping));
  auto own = process.own();
  return {
      {"rank", process.rank < 0 ? Json(nullptr) : Json(process.rank)},
      {"pid", process.pid},
      {"program", process.program},
      {"problem", process.problem.empty() ? Json(nullptr) : Json(process.problem)},
      {"phase", process.phase.empty() ? Json(nullptr) : Json(process.phase)},
      {"threads", process.threads},
      {"processors", process.allowed.members()},
      {"processor", node_or_null(process.processor)},
      {"nodes", process.nodes},
      {"planned_processor", node_or_null(process.planned)},
      {"node", node_or_null(process.node)},
      {"left_binding", process.left},
      {"bytes_on", by_node(process.bytes_on)},
      {"judged_bytes", own.judged},
      {"local_bytes", own.local},
      {"network", {{"messages", process.sent_elsewhere.messages}, {"bytes", process.sent_elsewhere.bytes}}},
      {"mappings", mappings}};
}

Json part_of(const Part& part) {
  return {{"owner", node_or_null(part.owner)},
          {"role", part.role},
          {"begin", address(part.begin)},
          {"end", address(part.end)},
          {"intended_node", node_or_null(part.node)},
          {"page_bytes", part.page_bytes},
          {"huge_bytes", part.huge},
          {"bytes_on", by_node(part.bytes_on)},
          {"judged_bytes", part.share.judged},
          {"local_bytes", part.share.local},
          {"foreign_bytes", part.foreign},
          {"not_in_core_bytes", part.not_in_core},
          {"mapped_by", part.mapped_by},
          {"ranges", ranges_of(part.ranges)}};
}

Json flow_of(const Flow& flow) {
  Json paths = Json::object();
  for (std::size_t path = 0; path < segment::paths; ++path) {
    const auto& sent = flow.sent[path];
    if (sent.messages != 0)
      paths[segment::path_name(static_cast<segment::Path>(path))] = {{"messages", sent.messages},
                                                                     {"bytes", sent.bytes}};
  }
  auto total = flow.total();
  return {{"from", flow.from},
          {"to", flow.to},
          {"distance", segment::distance_name(flow.distance)},
          {"messages", total.messages},
          {"bytes", total.bytes},
          {"paths", paths}};
}

} // namespace

std::string json_of(const Snapshot& snapshot, bool indented) {
  Json nodes = Json::array(), processes = Json::array(), parts = Json::array(), flows = Json::array(),
       warnings = Json::array();
  for (const auto& node : snapshot.nodes)
    nodes.push_back({{"node", node.number},
                     {"processors", node.cpus.members()},
                     {"bytes", node.bytes},
                     {"free_bytes", node.free_bytes}});
  for (const auto& process : snapshot.processes) processes.push_back(process_of(process));
  for (const auto& part : snapshot.parts) parts.push_back(part_of(part));
  for (const auto& flow : snapshot.flows) flows.push_back(flow_of(flow));
  for (const auto& warning : warnings_of(snapshot))
    warnings.push_back({{"warning", warning_name(warning.what)},
                        {"rank", node_or_null(warning.rank)},
                        {"pid", warning.pid},
                        {"where", warning.where},
                        {"judged_bytes", warning.share.judged},
                        {"local_bytes", warning.share.local},
                        {"text", warning.text},
                        {"advice", warning.advice}});
  Json document = {{"near_place", schema_version},
                   {"job", snapshot.job.empty() ? Json(nullptr) : Json(snapshot.job)},
                   {"launcher", snapshot.launcher},
                   {"program", snapshot.program()},
                   {"at", snapshot.at},
                   {"took_s", snapshot.took_s},
                   {"page_bytes", snapshot.page_bytes},
                   {"nodes", nodes},
                   {"bytes_on", by_node(snapshot.bytes_on())},
                   {"processes", processes},
                   {"segment", parts},
                   {"traffic", flows},
                   {"warnings", warnings}};
  // File names may hold any bytes.
  return document.dump(indented ? 1 : -1, ' ', true, Json::error_handler_t::replace);
}

std::string json_of(const Documents& machines, bool indented) {
  Json list = Json::array();
  for (const auto& [name, document] : machines) {
    Json snapshot = Json::parse(document, nullptr, false);
    if (snapshot.is_discarded()) snapshot = nullptr;
    list.push_back({{"machine", name}, {"snapshot", std::move(snapshot)}});
  }
  return Json{{"machines", std::move(list)}}.dump(indented ? 1 : -1, ' ', true,
                                                  Json::error_handler_t::replace);
}

Weight weight_of(const Documents& machines) {
  Weight weight;
  auto add = [&weight](const Json& with_bytes) {
    for (const auto& count : with_bytes.value("bytes_on", Json::object()))
      weight.bytes += count.get<std::uint64_t>();
  };
  for (const auto& [name, document] : machines) {
    const Json snapshot = Json::parse(document, nullptr, false);
    if (!snapshot.is_object()) continue;
    weight.job = true;
    for (const auto& process : snapshot.value("processes", Json::array()))
      if (process.value("problem", Json()).is_null() &&
          process.value("phase", Json()) == segment::phase_name(segment::Phase::ready))
        ++weight.ranks;
    add(snapshot);
    for (const auto& part : snapshot.value("segment", Json::array())) add(part);
  }
  return weight;
}

} // namespace near::place
