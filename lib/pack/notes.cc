// SPDX-License-Identifier: Apache-2.0
#include "pack/notes.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "shard/receipt.h"

namespace vfm::pack {

Json to_json(const data::FrameCount& frames) {
  return {{"read", frames.read},
          {"latents", frames.latents},
          {"rate", frames.rate},
          {"windows", frames.windows},
          {"remainder", frames.remainder}};
}

data::FrameCount parse_frame_count(const Json& json) {
  const auto number = [&](const char* name) {
    return need_integer(json, name, "a count of frames");
  };
  return {number("read"), number("latents"), number("rate"), number("windows"),
          number("remainder")};
}

std::string notes_text(const ShardNotes& notes) {
  Json json = {{"tool", "vfm-pack"},
               {"input", notes.input},
               {"made_from", notes.made_from},
               {"splits", notes.splits},
               {"max_member", notes.max_member ? Json(*notes.max_member) : Json()},
               {"record", notes.record},
               {"clips", notes.clips},
               {"frames", to_json(notes.frames)},
               {"text_encoder", notes.text_encoder},
               {"without_text", notes.without_text},
               {"sums", notes.sums.to_json()},
               {"errors", io::to_json(notes.errors)}};
  if (Json limits = shard::limits_of_errors(notes.errors); !limits.is_null())
    json["error_limits"] = std::move(limits);
  // Add one entry at a time, because all entries as one Json take ten times the memory of the text.
  std::string text = dump_json(json);
  text.pop_back();
  text += ",\"entries\":[";
  for (const data::Entry& entry : notes.entries) {
    if (&entry != &notes.entries.front()) text += ',';
    text += dump_json(data::to_json(entry));
  }
  return text + "]}\n";
}

ShardNotes parse_notes(const Json& json, const std::string& path, int channels) {
  ShardNotes notes;
  notes.input = json.value("input", "");
  notes.made_from = json.at("made_from");
  notes.splits = json.at("splits").get<std::vector<std::string>>();
  if (const Json& limit = json.at("max_member"); !limit.is_null())
    notes.max_member = limit.get<std::uint64_t>();
  notes.record = json.at("record");
  notes.clips = json.at("clips").get<std::int64_t>();
  notes.frames = parse_frame_count(json.at("frames"));
  notes.text_encoder = json.at("text_encoder");
  notes.without_text = json.at("without_text").get<std::int64_t>();
  notes.sums = ChannelSums::from_json(json.at("sums"), channels);
  notes.errors = io::parse_faults(json.at("errors"));
  for (const Json& entry : json.at("entries"))
    notes.entries.push_back(data::parse_entry(entry, path));
  return notes;
}

TarFacts facts_of(const ShardNotes& notes) {
  TarFacts facts;
  facts.samples = static_cast<std::int64_t>(notes.entries.size());
  facts.without_text = notes.without_text;
  facts.clips = notes.clips;
  facts.frames = notes.frames;
  for (const data::Entry& entry : notes.entries)
    facts.tokens += data::token_count(entry);
  if (notes.record->is_null()) {
    if (facts.samples > 0) fail("the notes have samples and no record of their tar");
    return facts;
  }
  const std::string hash = need_string(notes.record, "xxh3", "the record of the tar");
  if (need_integer(notes.record, "samples", "the record of the tar") != facts.samples ||
      hash.size() != facts.xxh3.size())
    fail("the record of the tar does not fit its entries");
  facts.bytes =
      static_cast<std::uint64_t>(need_integer(notes.record, "bytes", "the record of the tar"));
  std::ranges::copy(hash, facts.xxh3.begin());
  return facts;
}

FinishedPart::FinishedPart(const ShardNotes& notes)
    : facts(facts_of(notes)),
      record(notes.record),
      text_encoder(notes.text_encoder),
      errors(notes.errors) {
  std::size_t bytes = 0;
  for (const data::Entry& entry : notes.entries)
    bytes += entry.key.size();
  keys.reserve(bytes);
  key_ends.reserve(notes.entries.size());
  for (const data::Entry& entry : notes.entries) {
    keys += entry.key;
    key_ends.push_back(keys.size());
  }
}

std::size_t held_bytes(const FinishedPart& part) {
  return held_bytes(part.record) + held_bytes(part.text_encoder) + held_bytes(part.errors) +
         part.keys.size() + held_bytes(part.key_ends);
}

}  // namespace vfm::pack
