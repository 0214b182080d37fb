// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "base/json.h"
#include "base/units.h"
#include "report/html.h"
#include "train/plan/plan.h"

namespace vfm::train {
namespace {

std::vector<std::vector<std::string>> rows_of(const Json& layouts) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : layouts) {
    std::string settings;
    for (const Json& setting : one["settings"])
      settings += (settings.empty() ? "" : " ") + setting.get<std::string>();
    std::vector<std::string> row = {one["layout"].get<std::string>()};
    if (one["fits"].get<bool>())
      row.insert(row.end(), {fmt::format("{:.4g}", one["seconds"].get<double>()),
                             format_count(one["tokens_per_second"].get<double>()),
                             fmt::format("{:.1f}", 100 * one["mfu"].get<double>())});
    else
      row.resize(4);
    row.insert(row.end(), {format_bytes(one["memory_bytes"].get<double>()),
                           one["why"].get<std::string>(), settings});
    rows.push_back(std::move(row));
  }
  return rows;
}

report::Bars bars_of(const Json& layouts) {
  report::Bars bars;
  for (const Json& one : layouts) {
    bars.names.push_back(one["layout"].get<std::string>());
    for (const auto& [term, seconds] : one["terms"].items()) {
      auto part = std::ranges::find(bars.parts, term, &report::Bars::Part::name);
      if (part == bars.parts.end()) part = bars.parts.insert(part, {term, {}});
      part->values.resize(bars.names.size());
      part->values.back() = seconds.get<double>();
    }
  }
  for (report::Bars::Part& part : bars.parts)
    part.values.resize(bars.names.size());
  return bars;
}

}  // namespace

void write_plan_page(const std::string& path, const Json& plan) {
  report::Page page(
      fmt::format("A layout for {} {}", plan["gpus"].dump(), plan["gpu"].get<std::string>()));
  page.paragraph(fmt::format(
      "{} on a node; {:.0f} tokens a step in {} packs; data: {}. All times are predicted from "
      "published rates, none is measured.",
      plan["per_node"].dump(), plan["tokens_per_step"].get<double>(), plan["packs"].dump(),
      plan["data"].get<std::string>()));
  const std::vector<std::string> header = {"layout",       "s a step", "tokens/s", "MFU, %",
                                           "memory a GPU", "why",      "settings"};
  if (!plan["best"].empty()) {
    page.heading("The time of a step");
    page.svg(report::stacked_bars(bars_of(plan["best"]), "seconds a step"),
             "What computing hides is left out.");
    page.heading("The best");
    page.table(header, rows_of(plan["best"]));
    for (const Json& sign : plan["best"][0]["signs"])
      page.paragraph("The first layout: " + sign.get<std::string>() + ".");
  }
  page.paragraph(plain_words(plan["plain"]) + ".");
  if (const std::string words = conditioning_words(plan["conditioning"]); !words.empty())
    page.paragraph("Pipelines: " + words + ".");
  if (!plan["too_big"].empty()) {
    page.heading("Too big: the smallest of them");
    page.table(header, rows_of(plan["too_big"]));
  }
  page.heading("What was refused");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [why, count] : plan["layouts"]["refused"].items())
    rows.push_back({why, count.dump()});
  page.table({"rule", "layouts"}, rows);
  page.write(path);
}

}  // namespace vfm::train
