// SPDX-License-Identifier: Apache-2.0
#include "dataset/planned.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "io/file_cache.h"
#include "io/packed.h"
#include "io/places.h"
#include "io/remote/address.h"
#include "io/text_writer.h"

namespace vfm::dataset {
namespace {

constexpr std::string_view kPlanVersion = "vfm-shard plan 1";
constexpr int kFactsPlaceBytes = 8;
constexpr std::size_t kFactsHashBytes = 32;  // hex digits
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
constexpr std::size_t kPlanTail = kFactsPlaceBytes + kFactsHashBytes;

void put_shard(std::string& out, const PlannedShard& shard) {
  for (const std::string* text : {&shard.split, &shard.bin, &shard.path, &shard.plan, &shard.check})
    io::put_text(out, *text);
  for (const std::uint64_t value : {shard.samples, shard.begin, shard.end})
    io::put_number(out, value);
  io::put_real(out, shard.seconds);
  put_shape(out, shard.shape);
}

PlannedShard take_shard(std::string_view& rest) {
  PlannedShard shard;
  for (std::string* text : {&shard.split, &shard.bin, &shard.path, &shard.plan, &shard.check})
    *text = io::take_text(rest);
  for (std::uint64_t* value : {&shard.samples, &shard.begin, &shard.end})
    *value = io::take_number(rest);
  shard.seconds = io::take_real(rest);
  shard.shape = take_shape(rest);
  return shard;
}

std::string packed_plan(const WritePlan& plan) {
  std::string out;
  io::put_text(out, kPlanVersion);
  io::put_text(out, io::working_folder());
  io::put_text(out, plan.hash);
  io::put_text(out, dump_json(plan.options));
  io::put_text(out, dump_json(plan.counts));
  io::put_number(out, plan.rekey);
  io::put_number(out, plan.limits.member);
  io::put_number(out, plan.inputs.size());
  for (const InputShard& input : plan.inputs)
    put_input(out, input);
  io::put_number(out, plan.shapes.size());
  for (std::size_t i = 0; i < plan.shapes.size(); ++i)
    put_shape(out, plan.shapes[i]);
  io::put_number(out, plan.shards.size());
  for (const PlannedShard& shard : plan.shards)
    put_shard(out, shard);
  return out;
}

void take_plan_facts(std::string_view rest, const std::string& path, WritePlan& plan) {
  if (io::take_text(rest) != kPlanVersion) fail("it is of another version of vfm");
  const std::string folder(io::take_text(rest));
  plan.hash = io::take_text(rest);
  plan.options = parse_json(io::take_text(rest), path);
  plan.counts = parse_json(io::take_text(rest), path);
  plan.rekey = io::take_number(rest) != 0;
  plan.limits.member = io::take_number(rest);
  const bool moved = folder != io::working_folder();
  for (std::uint64_t left = io::take_number(rest); left > 0; --left) {
    plan.inputs.push_back(take_input(rest));
    if (moved)
      for (std::string& tar : plan.inputs.back().tars)
        tar = io::named_from(folder, tar);
  }
  for (std::uint64_t left = io::take_number(rest); left > 0; --left)
    plan.shapes.number(take_shape(rest));
  for (std::uint64_t left = io::take_number(rest); left > 0; --left) {
    plan.shards.push_back(take_shard(rest));
    const PlannedShard& shard = plan.shards.back();
    if (shard.begin > shard.end || shard.end > plan.items.size()) io::fail_packed();
  }
}

void take_plan_file(const std::string& path, WritePlan& plan) {
  const std::uint64_t size = plan.items.size();
  if (size < kPlanTail) fail("it is too short");
  std::string tail(kPlanTail, '\0');
  plan.items.read(tail.data(), tail.size(), size - kPlanTail);
  std::string_view rest = tail;
  const std::uint64_t place = io::take_ordered(rest, kFactsPlaceBytes);
  if (place > size - kPlanTail) fail("its end is not as it was written");
  // Before memory is taken for them: of a damaged file, `place` may be anything.
  Hasher hasher;
  std::string piece;
  for (std::uint64_t at = place; at < size - kPlanTail; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kPieceBytes, size - kPlanTail - at));
    plan.items.read(piece.data(), piece.size(), at);
    hasher.update(piece);
  }
  plan.digest = hasher.hex128();
  if (plan.digest != rest) fail("its end is not as it was written");
  std::string facts(size - kPlanTail - place, '\0');
  plan.items.read(facts.data(), facts.size(), place);
  take_plan_facts(facts, path, plan);
}

}  // namespace

Item take_planned(std::string_view& rest, const Shapes& shapes) {
  Item item;
  item.key = io::take_text(rest);
  item.shape = shapes[io::take_number(rest)];
  item.shard = static_cast<std::uint32_t>(io::take_number(rest));
  take_facts(rest, item, false);
  return item;
}

std::string planned_items(const WritePlan& plan, const PlannedShard& shard) {
  std::string items(shard.end - shard.begin, '\0');
  plan.items.read(items.data(), items.size(), shard.begin);
  if (hash_hex(items) != shard.check)
    fail("the samples of '{}' are not as they were planned; make the plan again", shard.path);
  return items;
}

bool PlannedItems::next(Item& item) {
  while (rest_.empty()) {
    if (shard_ == plan_.shards.size()) return false;
    items_ = planned_items(plan_, plan_.shards[shard_++]);
    rest_ = items_;
  }
  item = take_planned(rest_, plan_.shapes);
  return true;
}

void add_place(Json& meta, const PlannedShard& shard) {
  meta["split"] = shard.split;
  meta["bin"] = shard.bin;
}

std::string plan_file(const std::string& directory) {
  return io::join_path(directory, "plan.bin");
}

void write_plan_file(const WritePlan& plan, const std::string& path) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  io::TextWriter file(path);
  std::string piece;
  for (std::uint64_t at = 0; at < plan.items.size(); at += piece.size()) {
    piece.resize(std::min(kPiece, plan.items.size() - at));
    plan.items.read(piece.data(), piece.size(), at);
    file.add(piece);
  }
  const std::string facts = packed_plan(plan);
  file.add(facts);
  std::string tail;
  io::put_ordered(tail, plan.items.size(), kFactsPlaceBytes);
  file.add(tail + hash_hex(facts));
  file.update();
}

WritePlan read_plan_file(const std::string& path) {
  if (!io::file_exists(path)) fail("there is no '{}'; vfm-shard plan makes it", path);
  WritePlan plan{std::string()};
  try {
    plan.items =
        io::ScratchFile(io::is_remote(path) ? io::cached_copy(path) : io::File::open_regular(path));
    take_plan_file(path, plan);
  } catch (const Error& error) {
    fail("'{}' is no plan: {}; make it again with vfm-shard plan", path, error.what());
  }
  const std::string beside = io::join_path(io::dir_name(path), "plan.json");
  const Json json = parse_json(io::read_file(beside), "'" + beside + "'");
  if (need_string(json, "plan", "'" + beside + "'") != plan.hash)
    fail("'{}' is of another plan than '{}'; make it again with vfm-shard plan", path, beside);
  return plan;
}

}  // namespace vfm::dataset
