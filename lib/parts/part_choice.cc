// SPDX-License-Identifier: Apache-2.0
#include "parts/part_choice.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "base/error.h"

namespace vfm::parts {
namespace {

/// Returns nullopt for a text that is not a number from 0 to `most`.
std::optional<int> small_number(std::string_view text, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all && number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

/// Returns nullopt if the variable is not set.
std::optional<int> variable(const Environment& environment, const char* name) {
  const std::string text = environment(name);
  if (text.empty()) return std::nullopt;
  const std::optional<int> number = small_number(text, kMostParts - 1);
  if (!number) fail_usage("{} is '{}'; the number of a part is 0 or more", name, text);
  return number;
}

int part_of_environment(const Environment& environment) {
  if (const auto part = variable(environment, "VFM_PART")) return *part;
  if (const auto task = variable(environment, "SLURM_ARRAY_TASK_ID"))
    return *task + variable(environment, "VFM_PART_OFFSET").value_or(0);
  for (const char* name : {"JOB_COMPLETION_INDEX", "HQ_TASK_ID"})
    if (const auto index = variable(environment, name)) return *index;
  fail_usage(
      "--part env: none of VFM_PART, SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX and HQ_TASK_ID is "
      "set; start the command in an array of jobs, or name the part as in --part 3/16");
}

}  // namespace

std::string node_kind_of(const Environment& environment) {
  std::string kind = environment("VFM_NODE_KIND");
  const bool plain = std::all_of(kind.begin(), kind.end(), [](unsigned char letter) {
    return std::isalnum(letter) || std::string_view(".-_+").find(letter) != std::string_view::npos;
  });
  if (!plain || kind.size() > kLongestKind)
    fail_usage("VFM_NODE_KIND is '{}'; it has at most {} letters, digits, '.', '-', '_' and '+'",
               kind, kLongestKind);
  return kind;
}

PartChoice parse_part(std::string_view text, const Environment& environment) {
  const std::size_t slash = text.find('/');
  const std::string_view first = text.substr(0, slash);
  PartChoice choice;
  choice.node_kind = node_kind_of(environment);
  choice.kind = first == "auto"   ? PartChoice::Kind::automatic
                : first == "next" ? PartChoice::Kind::next
                                  : PartChoice::Kind::fixed;
  if (slash != std::string_view::npos) {
    choice.parts = small_number(text.substr(slash + 1), kMostParts);
    if (!choice.parts || *choice.parts == 0)
      fail_usage("--part '{}': the number of parts is from 1 to {}", text, kMostParts);
  }
  if (choice.kind != PartChoice::Kind::fixed) return choice;
  choice.part =
      first == "env" ? part_of_environment(environment) : small_number(first, kMostParts - 1);
  if (!choice.part || (first != "env" && !choice.parts))
    fail_usage("--part is '{}'; it is a part such as 3/16, or env, auto or next", text);
  if (choice.parts && *choice.part >= *choice.parts)
    fail_usage("--part '{}': parts are counted from 0, so the last of {} is {}/{}", text,
               *choice.parts, *choice.parts - 1, *choice.parts);
  return choice;
}

}  // namespace vfm::parts
