// Writes the files about all shards of a folder of latents. Facts about samples are read from the
// shards' notes, by split and name, one shard at a time (of a bucket, some shards).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <vector>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "data/channel_sums.h"
#include "data/index_file.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/remote/address.h"
#include "io/text_writer.h"
#include "pack/folder.h"
#include "shard/dataset_card.h"
#include "shard/dataset_meta.h"
#include "shard/receipt.h"

namespace vfm::pack {

struct PackFolder::Totals {
  Json splits = Json::object(), text_encoder;
  std::string text_of;  // a shard with text of this encoder
  ChannelSums train, all;

  /// Parts do not know of each other's texts.
  void take_encoder(const std::string& tar, const Json& encoder) {
    if (encoder.is_null()) return;
    if (text_encoder.is_null()) {
      text_encoder = encoder;
      text_of = tar;
    } else if (encoder_identity(encoder) != encoder_identity(text_encoder)) {
      fail(
          "the text encoder of '{}', {}, is not that of '{}', {}: embed all captions by one "
          "encoder, "
          "and pack them again",
          tar, dump_json(encoder), text_of, dump_json(text_encoder));
    }
  }
};

namespace {

void check_keys(const std::string& tar, const ShardNotes& notes, io::FirstNames& keys) {
  for (const data::Entry& entry : notes.entries)
    if (const auto first = keys.put(entry.key, tar))
      fail(
          "key '{}' is in '{}' and in '{}': make a dataset of the shards with vfm-shard, and pack "
          "that",
          entry.key, *first, tar);
}

}  // namespace

/// Reads the notes of a tar again. Throws Error if they no longer fit `facts`.
ShardNotes PackFolder::read_notes(const std::string& tar, const TarFacts& facts) const {
  const std::string path = shard::receipt_path(tar);
  std::string why;
  try {
    ShardNotes notes = parse_notes(parse_json(io::read_file(path), path), path, channels_);
    const TarFacts now = facts_of(notes);
    if (std::tie(now.samples, now.tokens, now.xxh3) ==
        std::tie(facts.samples, facts.tokens, facts.xxh3))
      return notes;
    why = "it is of other samples";
  } catch (const std::exception& error) {
    why = error.what();
  }
  fail("'{}' was changed while this program ran ({}): run the same command again", path, why);
}

/// Writes index.jsonl. If the old index.jsonl differs, removes latents.json first.
void PackFolder::write_list(const std::string& split, Totals& totals, io::FirstNames* keys) const {
  const Split& shards = splits_.at(split);
  const std::string folder = io::join_path(directory_, split);
  std::optional<io::TextWriter> list;
  std::int64_t samples = 0, tokens = 0, count = 0;
  std::vector<std::uint32_t> numbers;
  std::ranges::copy_if(shards.order, std::back_inserter(numbers),
                       [&](std::uint32_t number) { return shards.facts[number].samples > 0; });
  const auto tar_of = [&](std::uint32_t number) {
    return tar_path(split, std::string(shards.names.name(number)));
  };
  const bool far = io::is_remote(directory_);
  const std::size_t together = far ? 32 : 1;
  for (std::size_t begin = 0; begin < numbers.size(); begin += together) {
    std::vector<ShardNotes> some(std::min(together, numbers.size() - begin));
    io::for_each_at_once(some.size(), far ? io::kRequestsAtOnce : 1, [&](std::size_t i) {
      const std::uint32_t number = numbers[begin + i];
      some[i] = read_notes(tar_of(number), shards.facts[number]);
    });
    for (std::size_t i = 0; i < some.size(); ++i) {
      check_stop();
      const ShardNotes& notes = some[i];
      const std::uint32_t number = numbers[begin + i];
      const std::string tar = tar_of(number);
      if (keys) check_keys(tar, notes, *keys);
      if (!list) list.emplace(io::join_path(folder, "index.jsonl"));
      for (const data::Entry& entry : notes.entries)
        list->add(dump_json(data::to_json(entry)) + "\n");
      samples += shards.facts[number].samples;
      tokens += shards.facts[number].tokens;
      ++count;
      totals.all.add(notes.sums);
      if (split == "train") totals.train.add(notes.sums);
      totals.take_encoder(tar, notes.text_encoder);
    }
  }
  if (!list) return;
  if (list->differs()) {
    remove_latents_json();
    list->commit();
  }
  totals.splits[split] = {{"samples", samples}, {"shards", count}, {"tokens", tokens}};
}

void PackFolder::write_index(const std::string& split, const Json& info) const {
  const std::string folder = io::join_path(directory_, split);
  const std::string list = io::join_path(folder, "index.jsonl");
  const std::string path = io::join_path(folder, "index.bin");
  if (data::index_fits(path, list, info)) return;
  io::AtomicFile file = io::AtomicFile::await(path);
  data::make_index(list, file, info);
  file.commit();
}

/// Writes .nv-meta for Energon and the dataset card for load_dataset(). If `alone` is false, other
/// shards are in the folder, and the card lists each shard of this run.
void PackFolder::write_for_others(bool alone, bool discrete) const {
  struct Place {
    const std::string* split;
    std::uint32_t number;
  };
  std::vector<Place> places;
  for (const auto& [split, shards] : splits_)
    for (const std::uint32_t number : shards.order)
      if (shards.facts[number].samples > 0) places.push_back({&split, number});
  const auto path_of = [&](const Place& at) {
    return io::join_path(*at.split, splits_.at(*at.split).names.name(at.number));
  };
  const auto shard_at = [&](std::size_t i) {
    const TarFacts& facts = splits_.at(*places[i].split).facts[places[i].number];
    return shard::DatasetShard{path_of(places[i]),
                               *places[i].split,
                               facts.samples,
                               facts.bytes,
                               {facts.xxh3.begin(), facts.xxh3.end()}};
  };
  shard::write_energon_meta(directory_, {places.size(), shard_at},
                            [](auto&&...) { return shard::MediaMetadata{}; });
  shard::CardConfig card{
      "default", {discrete ? "codes.npy" : "latent.npy", "text.npy", "json"}, {}};
  for (const Place& at : places) {
    std::vector<std::string>& files = card.files[*at.split];
    if (!alone || files.empty()) files.push_back(alone ? *at.split + "/*.tar" : path_of(at));
  }
  shard::write_dataset_card(
      directory_, "vfm-pack",
      "# Latents of videos\n\nWebDataset shards that vfm-pack wrote, with the "
      "tokenizer and the statistics in latents.json.\nThe format is described in "
      "vfm-latents(5).",
      {card});
}

void PackFolder::finish(const LatentTokenizer& tokenizer, io::FirstNames* keys) {
  std::int64_t total = 0;
  for (auto& [split, shards] : splits_) {
    shards.order.clear();
    for (std::uint32_t number = 0; number < shards.facts.size(); ++number) {
      shards.order.push_back(number);
      total += shards.facts[number].samples;
    }
    std::ranges::sort(shards.order, {},
                      [&names = shards.names](std::uint32_t number) { return names.name(number); });
  }
  if (total == 0) fail("no sample could be packed");
  Totals totals;
  for (const auto& [split, shards] : splits_)
    write_list(split, totals, keys);
  const bool strangers = settle_strangers();
  write_for_others(!strangers, tokenizer.vocabulary > 0);
  Json json = {{"version", 1},
               {"tokenizer", tokenizer.config},
               {"text_encoder", totals.text_encoder},
               {"channels", channels_}};
  if (tokenizer.vocabulary > 0) {
    json["vocabulary"] = tokenizer.vocabulary;
  } else if (!tokenizer.statistics->is_null()) {
    json.update(tokenizer.statistics);
  } else {
    if (totals.train.count == 0)
      log_warning("there is no 'train' split: the channel statistics are of all samples");
    json.update(data::channel_statistics(totals.train.count > 0 ? totals.train : totals.all));
  }
  json["splits"] = totals.splits;
  json["clip_frames"] = to_json(frames());
  json["settings"] = settings_;
  const std::string text = dump_json_pretty(json);
  for (const auto& [split, shards] : splits_) {
    if (totals.splits.contains(split))
      write_index(split, parse_json(text, "latents.json"));
    else
      remove_indexes(io::join_path(directory_, split));
  }
  io::update_file(io::join_path(directory_, "latents.json"), text);
}

}  // namespace vfm::pack
