// SPDX-License-Identifier: Apache-2.0
#include "parts/run_file.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "parts/clip_list.h"
#include "parts/parts_look.h"

namespace vfm::parts {
namespace {

constexpr const char* kShares[] = {"names", "clips"};

std::string run_name(const std::string& tool) {
  return tool + "/run.json";
}

[[noreturn]] void fail_conflict(const std::string& message) {
  throw Error(message, ErrorKind::conflict);
}

/// Returns the number of parts of the list of clips in a folder, which must have one.
int listed_parts(const std::string& directory) {
  const std::optional<ClipList> list = read_list(directory);
  if (!list)
    fail_usage("'{}' has no list of parts; make it with: vfm-clip list VIDEO... -o {} -n N",
               directory, directory);
  return list->parts;
}

RunFile parse_run(const Json& json, const std::string& what) {
  RunFile run;
  const std::int64_t parts = json.contains("parts") ? need_integer(json, "parts", what) : 1;
  if (parts < 1 || parts > kMostParts) fail("{} has {} parts", what, parts);
  run.parts = static_cast<int>(parts);
  run.of_clips = get_string(json, "shares") == kShares[1];
  run.grows = run.of_clips && get_bool(json, "grows").value_or(false);
  for (const Json& tool : json.value("after", Json::array()))
    if (tool.is_string()) run.after.push_back(tool.get<std::string>());
  run.digest = get_string(json, "digest").value_or("");
  return run;
}

std::string digest_of(const Json& settings) {
  return settings.is_null() ? "" : hash_hex(dump_json(settings));
}

/// The work that the first process of a tool begins.
Json new_run(const std::string& tool, const PartChoice& choice, const RunTerms& terms,
             std::vector<std::string> after) {
  Json run = {{"version", 1}, {"tool", command_of(tool)}};
  const bool of_clips = !terms.clips.empty();
  if (tool != kListed) {
    std::optional<int> parts = choice.parts;
    const int listed = of_clips ? listed_parts(terms.clips) : 0;
    if (!parts && of_clips) parts = listed;
    if (!parts)
      fail_usage(
          "nobody has said how many parts this work has; say it with the part, such as 3/16, "
          "env/16 or auto/16");
    run["parts"] = *parts;
    run["shares"] = kShares[of_clips];
    if (of_clips) run["grows"] = *parts == listed;
    if (!after.empty()) run["after"] = std::move(after);
  }
  if (!terms.settings->is_null()) {
    run["digest"] = digest_of(terms.settings);
    run["settings"] = terms.settings;
  }
  return run;
}

std::string shortened(std::string text) {
  constexpr std::size_t kMost = 80;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

/// Where two settings differ.
struct Difference {
  std::vector<std::string> clauses;  // such as "size is 64 there, and 32 here"
  std::set<std::string> names;       // such as "recipe.encoder"

  void find(const Json& there, const Json& here, const std::string& name) {
    if (there == here) return;
    if (!there.is_object() || !here.is_object()) {
      clauses.push_back(fmt::format("{} is {} there, and {} here", name,
                                    shortened(dump_json(there)), shortened(dump_json(here))));
      names.insert(name);
      return;
    }
    std::set<std::string> members;
    for (const Json* each : {&there, &here})
      for (const auto& [member, value] : each->items())
        members.insert(member);
    for (const std::string& member : members)
      find(there.value(member, Json()), here.value(member, Json()),
           name.empty() ? member : name + "." + member);
  }
};

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts)
    all += (all.empty() ? "" : between) + text;
  return all;
}

/// Returns the option for a member such as "model.compute", or for what has the member, or "".
std::string option_of(const RunTerms& terms, std::string name) {
  for (;;) {
    if (const auto option = terms.options.find(name); option != terms.options.end())
      return option->second;
    const std::size_t point = name.rfind('.');
    if (point == std::string::npos) return "";
    name.resize(point);
  }
}

void check_settings(const Json& there, const RunTerms& terms, const std::string& parts,
                    const std::string& tool) {
  constexpr std::size_t kMostNamed = 3;
  if (terms.settings->is_null() || digest_of(there) == digest_of(terms.settings)) return;
  Difference found;
  found.find(there, parse_json(dump_json(terms.settings), "the settings"), "");
  std::vector<std::string> options;
  for (const std::string& name : found.names)
    if (const std::string option = option_of(terms, name);
        !option.empty() && std::ranges::find(options, option) == options.end())
      options.push_back(option);
  if (found.clauses.empty()) found.clauses.emplace_back("their members have another order");
  if (found.clauses.size() > kMostNamed) found.clauses.resize(kMostNamed);
  const std::string advice = options.empty()
                                 ? "give the same options"
                                 : "give " + joined(options, " and ") + " here as there";
  fail_conflict(fmt::format(
      "the parts of {} in '{}' have other settings: {}; {}, or remove '{}' to begin again",
      command_of(tool), parts, joined(found.clauses, "; "), advice, parts));
}

/// Throws Error{conflict} if the work was begun with another input.
void check_input(const RunFile& run, const RunTerms& terms, const std::string& parts,
                 const std::string& tool) {
  if (run.of_clips != terms.clips.empty()) return;
  fail_conflict(fmt::format(
      "the parts of {} in '{}' have {}; give the same input, or remove '{}' to begin again",
      command_of(tool), parts,
      run.of_clips ? "the shards of parts of vfm-clip, whose folder was the only input"
                   : "shards by their names, and the input was not one folder of vfm-clip",
      parts));
}

/// Returns the programs of terms.reads that have parts.
std::vector<std::string> begun(const RunTerms& terms) {
  std::vector<std::string> tools;
  for (const std::string& tool : terms.reads)
    if (!terms.clips.empty() && read_run_file(terms.clips, tool)) tools.push_back(tool);
  return tools;
}

}  // namespace

std::string command_of(const std::string& tool) {
  return tool == "plan" ? "vfm-shard plan" : "vfm-" + tool;
}

std::optional<RunFile> read_run_file(const std::string& directory, const std::string& tool) {
  const std::optional<io::Store::Object> object = open_parts(directory)->read(run_name(tool));
  if (!object) return std::nullopt;
  const std::string what = "'" + parts_path(directory, run_name(tool)) + "'";
  RunFile run = parse_run(parse_json(object->contents, what), what);
  if (run.grows || tool == kListed)
    if (const std::optional<ClipList> list = read_list(directory))
      run.parts = std::max(run.parts, list->parts);
  return run;
}

std::optional<int> count_parts(const std::string& directory, const std::string& tool) {
  if (tool == kListed) {
    const std::optional<ClipList> list = read_list(directory);
    return list ? std::optional(list->parts) : std::nullopt;
  }
  const std::optional<RunFile> run = read_run_file(directory, tool);
  return run ? std::optional(run->parts) : std::nullopt;
}

RunFile agree_on_run(const std::string& directory, const std::string& tool,
                     const PartChoice& choice, const RunTerms& terms) {
  const std::unique_ptr<io::Store> store = open_leases(directory);
  const std::string name = run_name(tool), what = "'" + parts_path(directory, name) + "'";
  const bool clip = tool == kListed;
  const int listed = clip ? listed_parts(directory) : 0;
  std::vector<std::string> after = terms.awaits;
  for (const std::string& other : begun(terms))
    if (std::ranges::find(after, other) == after.end()) after.push_back(other);
  if (!store->facts(name))  // Another process may create it first.
    store->create(name, dump_json(new_run(tool, choice, terms, after)) + "\n");
  const std::optional<io::Store::Object> object = store->read(name);
  if (!object) fail("{} has disappeared", what);
  Json json = parse_json(object->contents, what);
  RunFile run = parse_run(json, what);
  if (clip) run.parts = listed;
  if (!clip) check_input(run, terms, parts_path(directory, tool), tool);
  check_begun(run, directory, tool, terms);
  if (const int now = run.grows ? listed_parts(terms.clips) : 0; now > run.parts) {
    json["parts"] = run.parts = now;
    store->write(name, dump_json(json) + "\n");
  }
  if (choice.parts && *choice.parts != run.parts)
    fail_conflict(fmt::format(
        "the work of '{}' has {} parts, not {}; leave out the number, or use another folder",
        directory, run.parts, *choice.parts));
  if (choice.part && *choice.part >= run.parts)
    fail_usage("there is no part {}: '{}' has the parts 0 to {}", *choice.part, directory,
               run.parts - 1);
  check_settings(json.value("settings", Json()), terms, parts_path(directory, tool), tool);
  return run;
}

void check_begun(const RunFile& run, const std::string& directory, const std::string& tool,
                 const RunTerms& terms) {
  const std::string parts = parts_path(directory, tool);
  for (const std::string& other : begun(terms))
    if (std::ranges::find(run.after, other) == run.after.end())
      fail_conflict(
          fmt::format("the parts of {} in '{}' were begun before those of vfm-{}, whose "
                      "columns they would read; remove '{}' to begin again",
                      command_of(tool), parts, other, parts));
}

std::vector<int> clip_parts_of(int part, int parts, int listed) {
  std::vector<int> numbers;
  for (int number = part; number < listed; number += parts)
    numbers.push_back(number);
  return numbers;
}

std::set<int> parts_with(const RunFile& run, const std::vector<int>& clip_parts) {
  std::set<int> parts;
  if (run.of_clips)
    for (const int number : clip_parts)
      parts.insert(number % run.parts);
  else
    for (int part = 0; part < run.parts; ++part)
      parts.insert(part);
  return parts;
}

}  // namespace vfm::parts
