// A made stage of a work in parts, whose items need no processor: it claims a part as the real
// programs do, sleeps, and writes the marker. The name by which it is called is the stage:
//   vfm-caption DIR SCALE SLOWER --part next  one part; SCALE times as fast as unlike_nodes.h says.
//                                             The captions of the second half take SLOWER times as
//                                             long.
//   vfm-clip status DIR --next STAGES         as the real vfm-clip does
//   made_part plan PARTS SLOWER               prints the seconds of the best split, and of arrays
//                                             of jobs, before they are scaled
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_choice.h"
#include "parts/part_notes.h"
#include "parts/part_run.h"
#include "parts/stage_look.h"
#include "support/unlike_nodes.h"

namespace {

using namespace vfm;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int stage_of(const std::string& tool) {
  for (int stage = 0; stage < unlike::kStages; ++stage)
    if (tool == unlike::kTools[static_cast<std::size_t>(stage)]) return stage;
  fail_usage("'{}' is no stage", tool);
}

void do_part(const std::string& tool, const std::string& directory, double scale, double slower,
             const std::string& choice_text) {
  parts::PartChoice choice = parts::parse_part(choice_text, environment);
  choice.lease_seconds = std::stod(environment("VFM_LEASE_SECONDS"));
  parts::RunTerms terms;
  if (tool != "clip") terms.clips = directory;
  if (tool == "embed") terms.reads = {"caption"};
  parts::PartRun run(directory, tool, choice, terms);
  std::optional<parts::Part> part = run.next([](int) { return std::string("made"); });
  if (!part) return;
  unlike::Work work;
  work.parts = run.parts();
  work.slower = slower;
  const io::FileStore store(io::join_path(directory, "parts"));
  const int kind = choice.node_kind == unlike::kKindNames[0] ? 0 : 1;
  const int place = tool == "caption" ? static_cast<int>(parts::read_notes(store, tool).size()) : 0;
  const double seconds =
      unlike::part_seconds(work, kind, stage_of(tool), part->number(), place) / scale;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  part->complete({});
}

void print_next(const std::string& directory, const std::string& list) {
  std::vector<std::string> tools;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    tools.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const auto tool = parts::await_stage(directory, tools, parts::node_kind_of(environment)))
    fmt::print("{}\n", *tool);
}

void print_plan(int parts, double slower) {
  unlike::Work work;
  work.parts = parts;
  work.slower = slower;
  fmt::print("{:.0f} {:.0f}\n", unlike::best_split(work), unlike::array_seconds(work));
}

int run(const std::vector<std::string>& words) {
  const std::string name = io::base_name(words.at(0));
  if (words.at(1) == "status" && words.at(3) == "--next")
    print_next(words.at(2), words.at(4));
  else if (words.at(1) == "plan")
    print_plan(std::stoi(words.at(2)), std::stod(words.at(3)));
  else if (words.at(4) == "--part")
    do_part(name.substr(name.find('-') + 1), words.at(1), std::stod(words.at(2)),
            std::stod(words.at(3)), words.at(5));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv, argv + argc});
  } catch (const Error& error) {
    fmt::print(stderr, "made_part: {}\n", error.what());
    return error.kind() == ErrorKind::no_part ? 4 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "made_part: {}\n", error.what());
    return 2;
  }
}
