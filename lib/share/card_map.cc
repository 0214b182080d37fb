// SPDX-License-Identifier: Apache-2.0
#include "share/card_map.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "share/pipe_places.h"

namespace vfm::share {
namespace {

// Seconds.
constexpr double kLook = 0.25, kLookOfStarved = 0.05;
constexpr double kSettles = 1;  // after a load, until what it did is seen
constexpr double kAnswers = 1;  // a program that did not look for so long is not counted on
constexpr double kUnloads = 5;  // a model that was to go for so long stays

constexpr CardKind kSessionKinds[] = {CardKind::decode, CardKind::encode};

bool is_of(const CardRecord& record, CardKind kind) {
  return record.kind == static_cast<std::int32_t>(kind);
}
bool is_compute(const CardRecord& record) {
  return is_of(record, CardKind::compute);
}
bool counts(const CardRecord& record) {
  return record.used != 0 && record.gone == 0;
}

template <std::size_t N>
void set_name(char (&to)[N], std::string_view name) {
  std::memset(to, 0, N);
  std::memcpy(to, name.data(), std::min(name.size(), N - 1));
}

/// Cards in that state.
template <class Is>
CardSet cards_where(Is is) {
  CardSet set = 0;
  for (int c = 0; c < kMostCards; ++c)
    if (is(static_cast<std::size_t>(c))) set |= card_bit(c);
  return set;
}

/// Of so many, those for which that memory is enough.
int fitting_sessions(int sessions, std::int64_t memory) {
  return static_cast<int>(
      std::max<std::int64_t>(0, std::min<std::int64_t>(sessions, memory / kSessionBytes)));
}

/// Where its model is in that state.
CardSet cards_with(const CardRecord& record, CardModel state) {
  return cards_where([&](std::size_t c) { return record.model[c] == state; });
}

}  // namespace

double card_clock() {
  return static_cast<double>(pipe_clock()) * 1e-9;
}

std::string CardMap::file_of(const std::string& share) {
  return share.empty() ? share : share + ".gpus";
}

CardMap::CardMap(const std::string& share)
    : shared_(file_of(share), sizeof(CardFile), {kCardWords, sizeof kCardWords}, "VFM_SHARE") {}

std::size_t CardMap::cards() const {
  return static_cast<std::size_t>(std::clamp<std::int32_t>(file().head.cards, 0, kMostCards));
}

void CardMap::join(std::span<const Card> cards, const CardNeed& need) {
  const Locked lock(*this);
  lock.need();
  end_dead();
  const auto is_free = [&](std::size_t i) {
    return !counts(file().records[i]) && !shared_.lives(i);
  };
  std::size_t best = kCardRecords;
  for (std::size_t i = 0; i < kCardRecords; ++i) {
    const auto left = [&](std::size_t at) {
      return file().records[at].used == 0 ? 0 : file().records[at].left;
    };
    if (is_free(i) && (best == kCardRecords || left(i) < left(best))) best = i;
  }
  if (std::none_of(std::begin(file().records), std::end(file().records), counts)) {
    // Nothing of an earlier pipe is left; its cards may have had other numbers.
    for (CardRecord& record : file().records)
      record.used = 0;
    file().head.cards = 0;
    file().head.looked = file().head.changed = 0;
  }
  for (const Card& card : cards)
    add_card(card, need.kind);
  if (best == kCardRecords || !shared_.live(best, true))
    fail_usage("{} programs share GPUs, as many as can; name another file by VFM_SHARE",
               kCardRecords);
  own_index_ = best;
  CardRecord& record = own();
  record.used = 0;  // a kill from here on leaves a record that nobody has
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  set_name(record.stage, need.stage);
  record.pid = ::getpid();
  record.input = pipe_name(need.input);
  record.output = pipe_name(need.output);
  record.memory = need.memory;
  record.kind = static_cast<std::int32_t>(need.kind);
  record.beside = need.beside;
  record.joined = record.beat = record.last_item = card_clock();
  for (const int place : places_)
    record.may |= card_bit(place);
  record.used = 1;
  set_places(file().records);
}

/// Finds it by its name, or adds it.
void CardMap::add_card(const Card& card, CardKind kind) {
  CardFile::Head& head = file().head;
  const std::size_t known = cards();
  const auto is = [&](const CardEntry& entry) {
    return std::string_view(entry.name, ::strnlen(entry.name, kCardName)) == card.name;
  };
  const auto end = head.card.begin() + static_cast<std::ptrdiff_t>(known);
  const auto at = std::find_if(head.card.begin(), end, is);
  places_.push_back(static_cast<int>(at - head.card.begin()));
  if (at == end) {
    if (known == kMostCards)
      fail_usage("programs that share GPUs name more than {}; name fewer with --device",
                 kMostCards);
    set_name(at->name, card.name);
    at->memory = card.memory;
    at->sessions = {};
    head.cards = static_cast<std::int32_t>(known + 1);
  }
  at->memory = std::min(at->memory, card.memory);
  std::int32_t& sessions = at->sessions[static_cast<std::size_t>(kind)];
  sessions = sessions == 0 ? card.sessions : std::min(sessions, card.sessions);
}

void CardMap::leave() {
  const Locked lock(*this);
  own().left = pipe_clock();
  own().gone = 1;
  for (std::size_t c = 0; c < cards(); ++c)
    call_for(static_cast<int>(c));
}

void CardMap::end_dead() {
  for (std::size_t i = 0; i < kCardRecords; ++i) {
    CardRecord& record = file().records[i];
    if (!counts(record) || i == own_index_ || shared_.lives(i)) continue;
    record.left = pipe_clock();
    record.gone = 1;
  }
}

bool CardMap::answers(const CardRecord& record) const {
  return counts(record) && (&record == &own() || card_clock() - record.beat < kAnswers);
}

CardSet CardMap::free() const {
  CardSet set = ~CardSet{0};
  for (const CardRecord& record : file().records)
    if (counts(record) && is_compute(record))
      set &= ~cards_where([&](std::size_t c) { return record.items[c] > 0; });
  return set;
}

/// Of programs with sessions, which all of these have to themselves.
std::int64_t CardMap::program_memory(int card) const {
  std::int64_t memory = 0;
  for (const CardRecord& record : file().records)
    if (counts(record) && !is_compute(record) && (record.may & card_bit(card)) != 0)
      memory += record.memory;
  return memory;
}

std::int64_t CardMap::model_memory(int card) const {
  const CardEntry& entry = file().head.card[static_cast<std::size_t>(card)];
  std::int64_t memory = entry.memory - program_memory(card);
  for (const CardKind kind : kSessionKinds) {
    const auto takes = [&](const CardRecord& record) {
      return counts(record) && is_of(record, kind) && (record.may & card_bit(card)) != 0;
    };
    if (std::any_of(std::begin(file().records), std::end(file().records), takes))
      memory -= entry.sessions[static_cast<std::size_t>(kind)] * kSessionBytes;
  }
  return memory;
}

std::int64_t CardMap::loaded_memory(int card) const {
  std::int64_t memory = 0;
  for (const CardRecord& record : file().records)
    if (counts(record) && record.model[static_cast<std::size_t>(card)] != CardModel::none)
      memory += record.memory;
  return memory;
}

/// Those whose memory is no model's.
int CardMap::sessions_used(int card, CardKind kind) const {
  int used = 0;
  for (const CardRecord& record : file().records)
    if (counts(record) && is_of(record, kind)) used += record.items[static_cast<std::size_t>(card)];
  return used;
}

std::int64_t CardMap::session_memory(int card) const {
  std::int64_t memory = program_memory(card);
  for (const CardKind kind : kSessionKinds)
    memory += sessions_used(card, kind) * kSessionBytes;
  return memory;
}

/// Models that have a session beside them; `at_work`: on which an item is.
int CardMap::beside_models(int card, CardKind kind, bool at_work) const {
  const auto at = static_cast<std::size_t>(card);
  const auto has = [&](const CardRecord& record) {
    const bool there = at_work ? record.items[at] > 0 : record.model[at] != CardModel::none;
    return counts(record) && (record.beside & card_flag(kind)) != 0 && there;
  };
  return static_cast<int>(std::count_if(std::begin(file().records), std::end(file().records), has));
}

int CardMap::free_sessions(int card, CardKind kind) const {
  const CardEntry& entry = file().head.card[static_cast<std::size_t>(card)];
  const int sessions = entry.sessions[static_cast<std::size_t>(kind)] - sessions_used(card, kind) -
                       beside_models(card, kind, true);
  return fitting_sessions(sessions, entry.memory - loaded_memory(card) - session_memory(card));
}

int CardMap::most_sessions(int card, CardKind kind) const {
  const CardEntry& entry = file().head.card[static_cast<std::size_t>(card)];
  const int sessions =
      entry.sessions[static_cast<std::size_t>(kind)] - beside_models(card, kind, false);
  return fitting_sessions(sessions, entry.memory - loaded_memory(card) - program_memory(card));
}

std::vector<std::string> CardMap::names_on(int card) const {
  std::vector<std::string> names;
  for (const CardRecord& record : file().records)
    if (counts(record) && record.model[static_cast<std::size_t>(card)] != CardModel::none)
      names.push_back(
          vfm::format("{} (process {})",
                      std::string_view(record.stage, ::strnlen(record.stage, sizeof record.stage)),
                      record.pid));
  return names;
}

std::vector<CardClaim> CardMap::claims(CardKind kind) const {
  std::vector<CardClaim> all(kCardRecords);
  for (std::size_t i = 0; i < kCardRecords; ++i) {
    const CardRecord& record = file().records[i];
    if (!answers(record) || !is_of(record, kind)) continue;
    CardSet ready = record.may & ~record.left_out;
    if (kind == CardKind::compute) ready &= record.wanted & cards_with(record, CardModel::loaded);
    all[i] = {record.place, record.waiting, ready};
  }
  return all;
}

std::vector<CardPlace> CardMap::card_places() const {
  std::vector<CardPlace> all;
  for (std::size_t c = 0; c < cards(); ++c)
    all.push_back({model_memory(static_cast<int>(c))});
  return all;
}

CardCounts CardMap::counts_now(const CardRecord& record, double now) const {
  CardCounts sums = record.counts;
  for (std::size_t c = 0; c < kMostCards; ++c)
    if (record.items[c] > 0) sums.busy[c] += record.items[c] * now - record.since[c];
  if (record.waiting > 0) sums.short_of += now - record.waits_since;
  return sums;
}

CardStage CardMap::stage_of(const CardRecord& record, double now) const {
  CardStage stage;
  stage.place = record.place;
  stage.memory = record.memory;
  stage.may = record.may & ~record.left_out;
  stage.load_seconds = record.load_seconds;
  const CardSet there = ~cards_with(record, CardModel::none);
  if (!answers(record) || record.finished != 0) {
    // What it has stays, as long as it does.
    stage.may = 0;
    stage.idle = now;
    stage.loaded = stage.fixed = there;
    return stage;
  }
  const CardSet stays = there & ~record.wanted & cards_where([&](std::size_t c) {
                          return now - record.unwanted[c] > kUnloads;
                        });
  stage.loaded = record.wanted | stays;
  stage.fixed = cards_with(record, CardModel::loading) | stays;
  stage.waiting = record.waiting;
  stage.known = record.load_seconds > 0;
  const bool works = record.waiting > 0 || std::any_of(record.items.begin(), record.items.end(),
                                                       [](int items) { return items > 0; });
  stage.idle = works ? 0 : now - record.last_item;
  return stage;
}

void CardMap::plan() {
  CardFile::Head& head = file().head;
  const double now = card_clock();
  std::vector<std::size_t> records;
  bool starved = false;
  for (std::size_t i = 0; i < kCardRecords; ++i) {
    const CardRecord& record = file().records[i];
    if (!counts(record) || !is_compute(record)) continue;
    records.push_back(i);
    starved = starved || (answers(record) && record.waiting > 0 && record.wanted == 0);
  }
  const double passed = now - head.looked;
  if (passed < (starved ? kLookOfStarved : kLook)) return;
  head.looked = now;
  std::vector<CardStage> stages;
  std::vector<const CardAverages*> averages;
  for (const std::size_t i : records) {
    CardRecord& record = file().records[i];
    record.averages.add(counts_now(record, now), std::min(passed, now - record.joined));
    averages.push_back(&record.averages);
    stages.push_back(stage_of(record, now));
    const auto reads = [&](std::size_t other) {
      return record.output != 0 && file().records[other].input == record.output;
    };
    const auto next = std::find_if(records.begin(), records.end(), reads);
    if (next != records.end()) stages.back().next = static_cast<int>(next - records.begin());
  }
  if (stages.empty() || (now - head.changed < kSettles && !starved)) return;
  const std::vector<CardSet> plan =
      plan_by_averages(stages, averages, card_places(), now - head.changed);
  for (std::size_t s = 0; s < records.size(); ++s) {
    CardRecord& record = file().records[records[s]];
    const CardSet wanted = plan[s] & stages[s].may;
    if (wanted == record.wanted || !answers(record) || record.finished != 0) continue;
    for (int c = 0; c < kMostCards; ++c)
      if ((record.wanted & ~wanted & card_bit(c)) != 0)
        record.unwanted[static_cast<std::size_t>(c)] = now;
    record.wanted = wanted;
    call(record.call_keeper, INT_MAX);
  }
}

void CardMap::call_for(int card) {
  const std::vector<CardClaim> all = claims(CardKind::compute);
  std::size_t latest = kCardRecords;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].waiting > 0 && (all[i].ready & card_bit(card)) != 0 &&
        (latest == kCardRecords || all[i].place > all[latest].place))
      latest = i;
  if (latest != kCardRecords) call(file().records[latest].call_items, 1);
  // Those who wait for sessions, of whatever card.
  for (CardRecord& record : file().records)
    if (counts(record) && !is_compute(record) && record.waiting > 0) call(record.call_items, 1);
}

}  // namespace vfm::share
