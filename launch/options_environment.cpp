// Options: the environment variables that the processes get.
#include "launch/option_table.h"

#include <algorithm>
#include <cstdlib>

namespace near::launch {
namespace {

Result set_variable(Parsing& at, std::vector<Setting>& settings) {
  Setting made;
  if (at.values.size() == 2) {
    made = {at.values[0], at.values[1]};
  } else {
    auto equals = at.values[0].find('=');
    made = {at.values[0].substr(0, equals), at.values[0].substr(equals + 1)};
  }
  if (made.first.empty()) return wrong(at, "NAME VALUE");
  NEAR_TRY(use_intel_variable(at, made.first, made.second));
  settings.push_back(std::move(made));
  return {};
}

void pass_all(Inheritance& inherited) { inherited.chosen = inherited.all = true; }

void pass_only(Inheritance& inherited, const Parsing& at) {
  inherited.chosen = true;
  inherited.all = false;
  if (at.values.empty()) return;
  for (auto& name : split(at.values[0], ',')) inherited.only.push_back(std::move(name));
}

void leave_out(Inheritance& inherited, const Parsing& at) {
  inherited.chosen = true;
  for (auto& name : split(at.values[0], ',')) inherited.except.push_back(std::move(name));
}

const Option environment_table[] = {
    {{"x"},
     one,
     "NAME[=VALUE]|pass variables on (also A,B or PREFIX*), or set one, for every process",
     [](Parsing& at) { return export_variables(at, at.values[0]); }},
    {{"genv"},
     setting,
     "NAME VALUE|set a variable for every program",
     [](Parsing& at) { return set_variable(at, at.command.settings); }},
    {{"env"},
     setting,
     "NAME VALUE|set a variable for this program",
     [](Parsing& at) { return set_variable(at, at.application.settings); }},
    {{"genvall"}, none, "|pass the whole environment on (default)", NEAR_ACT(pass_all(at.command.inherited))},
    {{"genvnone"},
     none,
     "|pass nothing of the environment on",
     NEAR_ACT(pass_only(at.command.inherited, at))},
    {{"genvlist"},
     one,
     "A,B,...|pass only these variables on",
     NEAR_ACT(pass_only(at.command.inherited, at))},
    {{"genvexcl"},
     one,
     "A,B,...|do not pass these variables on",
     NEAR_ACT(leave_out(at.command.inherited, at))},
    {{"envall"}, none, nullptr, NEAR_ACT(pass_all(at.application.inherited))},
    {{"envnone"}, none, nullptr, NEAR_ACT(pass_only(at.application.inherited, at))},
    {{"envlist"}, one, nullptr, NEAR_ACT(pass_only(at.application.inherited, at))},
    {{"envexcl"}, one, nullptr, NEAR_ACT(leave_out(at.application.inherited, at))},
};

} // namespace

// "NAME" passes a variable on, "NAME=VALUE" sets it.
Result export_variables(Parsing& at, const std::string& text) {
  auto equals = text.find('=');
  if (equals == 0 || text.empty()) return wrong(at, "NAME or NAME=VALUE");
  if (equals != std::string::npos) {
    at.command.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    return {};
  }
  for (const auto& name : split(text, ',')) {
    if (name.ends_with('*'))
      at.command.inherited.only.push_back(name);
    else if (const char* value = std::getenv(name.c_str()))
      at.command.settings.emplace_back(name, value);
    else
      at.command.remarks.push_back(
          base::format("{} {}: there is no such variable in this environment", at.option, name));
  }
  return {};
}

bool Inheritance::passes_on(const std::string& name) const {
  auto named = [&](const std::string& each) {
    return each == name || (each.ends_with('*') && name.starts_with(each.substr(0, each.size() - 1)));
  };
  if (std::any_of(except.begin(), except.end(), named)) return false;
  return all || std::any_of(only.begin(), only.end(), named);
}

OptionGroup environment_options() { return {"environment", "Environment variables", environment_table}; }

} // namespace near::launch
