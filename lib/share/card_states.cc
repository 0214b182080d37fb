// SPDX-License-Identifier: Apache-2.0
#include "share/card_states.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "share/card_map.h"

namespace vfm::share {
namespace {

template <std::size_t N>
std::string card_text(const char (&from)[N]) {
  return {from, ::strnlen(from, N)};
}

const char* kind_name(std::int32_t kind) {
  const auto is = [kind](CardKind other) { return kind == static_cast<std::int32_t>(other); };
  return is(CardKind::compute) ? "compute" : is(CardKind::decode) ? "decode" : "encode";
}

CardStageState read_stage(const CardMap& map, const CardRecord& record,
                          const std::vector<CardState>& cards) {
  CardStageState state{.stage = card_text(record.stage), .kind = kind_name(record.kind)};
  state.pid = record.pid;
  state.alive = record.gone == 0;
  state.waiting = state.alive ? record.waiting : 0;
  const CardCounts counts = state.alive ? map.counts_now(record, card_clock()) : record.counts;
  state.short_seconds = counts.short_of;
  for (std::size_t c = 0; c < cards.size(); ++c) {
    const CardSet bit = card_bit(static_cast<int>(c));
    state.busy_seconds += counts.busy[c];
    state.items += static_cast<std::int64_t>(counts.items[c]);
    if ((record.may & bit) != 0) ++state.cards;
    if ((record.left_out & bit) != 0) state.left_out.push_back(cards[c].name);
    if (!state.alive) continue;
    state.held += record.items[c];
    if (record.model[c] == CardModel::loaded)
      state.loaded.push_back(cards[c].name);
    else if (record.model[c] != CardModel::none)
      state.loading.push_back(cards[c].name);
  }
  state.lacks_memory = record.kind == static_cast<std::int32_t>(CardKind::compute) &&
                       state.waiting > 0 && state.loaded.empty() && state.loading.empty();
  return state;
}

}  // namespace

CardWatch::CardWatch(std::string share) : share_(std::move(share)) {}

CardWatch::~CardWatch() = default;

CardStates CardWatch::look() {
  CardStates states;
  std::error_code error;
  if (!map_ && !std::filesystem::exists(CardMap::file_of(share_), error)) return states;
  try {
    if (!map_) map_ = std::make_unique<CardMap>(share_);
  } catch (const Error&) {
    return states;
  } catch (const Stopped&) {
    return states;  // a stop is not for a view to tell, which has a thread of its own
  }
  const CardMap::Locked lock(*map_);
  if (lock.stops()) return states;
  map_->end_dead();
  for (std::size_t c = 0; c < map_->cards(); ++c) {
    const CardEntry& entry = map_->file().head.card[c];
    const int card = static_cast<int>(c);
    states.cards.push_back({card_text(entry.name), entry.memory,
                            map_->loaded_memory(card) + map_->session_memory(card)});
  }
  std::vector<std::pair<int, CardStageState>> found;
  for (const CardRecord& record : map_->file().records)
    if (record.used != 0) found.emplace_back(record.place, read_stage(*map_, record, states.cards));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [place, state] : found)
    states.stages.push_back(std::move(state));
  return states;
}

}  // namespace vfm::share
