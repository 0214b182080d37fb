// SPDX-License-Identifier: Apache-2.0
#include "clip/store/clip_output.h"

#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/json_members.h"
#include "clip/store/names.h"

namespace vfm::clip {

void pass_on(const Json& from, Json& to) {
  add_members(to, from);
}

ClipOutput::ClipOutput(const ClipSource& source, const ClipOptions& options, ClipSink& store)
    : source_(source), options_(options), store_(store) {}

/// The key depends only on facts that change the clip, so other settings do not change the key.
std::string ClipOutput::key_of(const media::StreamInfo& info, const Clip& clip) const {
  ClipRecipe recipe = options_.recipe;
  recipe.keep_hdr = recipe.keep_hdr && clip.hdr;
  Json identity = {{"source", source_.hash},
                   {"stream", info.stream},
                   {"begin", clip.span.begin},
                   {"end", clip.span.end},
                   {"base", {clip.span.base.num, clip.span.base.den}},
                   {"recipe", recipe.json()}};
  if (info.is_hdr() && !clip.hdr) identity["tone_map"] = "bt2390";
  if (info.is_wide_sdr()) identity["gamut"] = "bt709";
  if (info.interlaced && recipe.deinterlace) identity["deinterlace"] = "auto";
  const std::string key = hash_hex(dump_json(identity));
  return options_.readable_names ? readable_key(source_.path, clip.span, key) : key;
}

shard::Sample ClipOutput::sample_of(const std::string& key, Clip&& clip) const {
  Json facts = {
      {"key", key}, {"media", "video"}, {"source", source_.path}, {"source_hash", source_.hash}};
  facts.update(clip.facts);
  if (clip.given) pass_on(clip.given->fields, facts);
  shard::Sample sample{key, {}};
  sample.members.push_back({"mp4", std::move(clip.mp4)});
  sample.members.push_back({"json", dump_json(facts)});
  return sample;
}

void ClipOutput::add(const media::StreamInfo& info, Clip&& clip) {
  if (!fits_) return;
  const std::string key = key_of(info, clip);
  if (!clip.known) {
    fits_ = kept_.empty();
    if (fits_) store_.add(sample_of(key, std::move(clip)));
    return;
  }
  const KeptClip kept = std::move(kept_.front());
  kept_.pop_front();
  fits_ = kept.key == key && kept.end == clip.span.end;
  if (fits_) store_.add_kept();
}

Json ClipOutput::finish(const Json& summary) {
  if (!fits_ || !kept_.empty()) return nullptr;
  Json all = {{"kind", "clips"}, {"source", source_.path}, {"source_hash", source_.hash}};
  all.update(summary);
  return store_.finish(std::move(all));
}

}  // namespace vfm::clip
