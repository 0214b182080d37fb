// SPDX-License-Identifier: Apache-2.0
#include "share/card_look.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/harmless.h"
#include "base/units.h"

namespace vfm::share {
namespace {

// Of the cards, or of the time: from here on all of it counts as used, and most.
constexpr double kAllCards = 0.85, kMostTime = 0.5;

std::string join_names(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names)
    all += (all.empty() ? "" : ", ") + harmless(name);
  return all;
}

}  // namespace

std::vector<CardLook> cards_between(const CardStates& before, const CardStates& after,
                                    double seconds, std::int64_t pid) {
  std::vector<CardLook> looks;
  for (const CardStageState& state : after.stages) {
    if (state.pid != pid || seconds <= 0) continue;
    CardStageState old;
    for (const CardStageState& other : before.stages)
      if (other.pid == pid && other.stage == state.stage && other.kind == state.kind) old = other;
    CardLook& look = looks.emplace_back();
    look.state = state;
    look.busy = std::max(0.0, (state.busy_seconds - old.busy_seconds) / seconds);
    look.short_of = std::clamp((state.short_seconds - old.short_seconds) / seconds, 0.0, 1.0);
  }
  return looks;
}

std::string card_text(const CardLook& look) {
  const CardStageState& state = look.state;
  std::string text = fmt::format("{:.1f}", look.busy);
  if (!state.loaded.empty()) text += fmt::format(" of {}", state.loaded.size());
  text += state.kind == "compute" ? " GPUs" : fmt::format(" {} sessions", harmless(state.kind));
  if (!state.loading.empty()) text += fmt::format(", {} changing", state.loading.size());
  if (state.waiting > 0) {
    text += fmt::format(", {} waiting", state.waiting);
    if (state.lacks_memory) text += " for memory";
  }
  for (const std::string& name : state.left_out)
    text += fmt::format(", GPU '{}' left out", harmless(name));
  return text;
}

bool waits_for_cards(const CardLook& look) {
  return look.short_of >= kMostTime;
}

bool is_short_of_cards(const CardLook& look) {
  const int loaded = static_cast<int>(look.state.loaded.size());
  return waits_for_cards(look) &&
         (look.state.kind == "compute" ? all_cards_busy(look.busy, loaded) : look.busy > 0);
}

bool all_cards_busy(double busy, int cards) {
  return cards > 0 && busy >= kAllCards * cards;
}

std::vector<std::string> card_columns() {
  return {"GPU", "memory", "in use", "models of", "left out by"};
}

std::vector<std::vector<std::string>> card_rows(const CardStates& states) {
  std::vector<std::vector<std::string>> rows;
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const CardState& card : states.cards) {
    std::vector<std::string> models, left_out;
    for (const CardStageState& stage : states.stages) {
      if (has(stage.loaded, card.name)) models.push_back(stage.stage);
      if (has(stage.loading, card.name)) models.push_back(stage.stage + " (changing)");
      if (has(stage.left_out, card.name)) left_out.push_back(stage.stage);
    }
    rows.push_back({card.name, format_bytes(static_cast<double>(card.memory)),
                    format_bytes(static_cast<double>(card.used)), join_names(models),
                    join_names(left_out)});
  }
  return rows;
}

std::vector<std::string> card_stage_columns() {
  return {"program",     "needs GPUs to", "items",    "GPUs busy, mean",
          "without one", "waiting",        "model on", "left out"};
}

std::vector<std::string> card_stage_row(const std::string& name, const CardStageState& state,
                                        double seconds) {
  seconds = std::max(seconds, 1e-9);
  return {name,
          state.kind,
          fmt::format("{}", state.items),
          fmt::format("{:.2f}", state.busy_seconds / seconds),
          fmt::format("{:.0f} %", 100 * std::min(1.0, state.short_seconds / seconds)),
          fmt::format("{}{}", state.waiting, state.lacks_memory ? ", for memory" : ""),
          join_names(state.loaded),
          join_names(state.left_out)};
}

}  // namespace vfm::share
