// SPDX-License-Identifier: Apache-2.0
#include "train/plan/candidate.h"

#include <fmt/format.h>

#include "base/error.h"
#include "models/dit/network.h"
#include "train/parallel.h"

namespace vfm::train {
namespace {

using models::CpKind;

std::vector<int> divisors_of(int number) {
  std::vector<int> all;
  for (int i = 1; i <= number; ++i)
    if (number % i == 0) all.push_back(i);
  return all;
}

/// The first rule that refuses it, in few words, or "".
std::string why_refused(const Recipe& recipe, const data::Entry& shortest, int gpus, int per_node,
                        const Candidate& candidate) {
  try {
    const Recipe one = candidate.of(recipe);
    check_layout(one, gpus, per_node);
    check_share(one, shortest);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    const std::string text = error.what();
    if (text.find("packs a step") != std::string::npos) return "more ranks than packs a step";
    if (text.find("too few for the ranks") != std::string::npos)
      return "samples with fewer tokens than ranks";
    if (text.find("heads") != std::string::npos) return "heads that are not dealt out evenly";
    return "the model's own rule";
  }
  const std::int64_t tokens = recipe.data.tokens / candidate.tp / candidate.cp;
  if (candidate.tp * candidate.cp > 1 && tokens < kLeastTokens)
    return fmt::format("fewer than {} tokens of a pack on a rank, not looked at", kLeastTokens);
  return "";
}

/// Those that differ in what ranks of cp exchange.
std::vector<Candidate> kinds_of(Candidate candidate) {
  if (candidate.cp == 1) return {candidate};
  std::vector<Candidate> all;
  for (const CpKind kind : {CpKind::gather, CpKind::all_to_all, CpKind::ring}) {
    candidate.cp_kind = kind;
    all.push_back(candidate);
  }
  candidate.cp_kind = CpKind::all_to_all_ring;
  for (const int heads : divisors_of(candidate.cp)) {
    if (heads == 1 || heads == candidate.cp) continue;
    candidate.cp_heads = heads;
    all.push_back(candidate);
  }
  return all;
}

}  // namespace

Recipe Candidate::of(Recipe recipe) const {
  if (pp > 1 || vpp > 1 || shard != ShardKind::none)
    fail_usage("no layout with pp, vpp or shard is proposed yet");
  recipe.parallel.tp = tp;
  recipe.parallel.cp = cp;
  recipe.parallel.cp_kind = cp > 1 ? models::cp_kind_name(cp_kind) : "auto";
  recipe.parallel.cp_heads = cp > 1 && cp_kind == CpKind::all_to_all_ring ? cp_heads : 0;
  recipe.model.recompute = models::recompute_name(recompute);
  recipe.model.offload = offload;
  recipe.data.micro_packs = micro_packs;
  return recipe;
}

std::vector<std::string> Candidate::settings() const {
  std::vector<std::string> all = {fmt::format("parallel.tp={}", tp),
                                  fmt::format("parallel.cp={}", cp)};
  if (cp > 1) all.push_back(fmt::format("parallel.cp_kind={}", models::cp_kind_name(cp_kind)));
  if (cp > 1 && cp_kind == CpKind::all_to_all_ring)
    all.push_back(fmt::format("parallel.cp_heads={}", cp_heads));
  all.push_back(fmt::format("model.recompute={}", models::recompute_name(recompute)));
  if (offload) all.emplace_back("model.offload=true");
  all.push_back(fmt::format("data.micro_packs={}", micro_packs));
  return all;
}

std::string Candidate::layout() const {
  std::string text = fmt::format("tp={} cp={}", tp, cp);
  if (cp > 1) text += fmt::format(" {}", models::cp_kind_name(cp_kind));
  if (cp > 1 && cp_kind == CpKind::all_to_all_ring) text += fmt::format(" of {}", cp_heads);
  text += fmt::format(" dp={}", dp);
  if (pp > 1) text += fmt::format(" pp={} vpp={}", pp, vpp);
  if (shard != ShardKind::none)
    text += shard == ShardKind::full ? " shard=full" : " shard=optimizer";
  return text;
}

bool Candidate::same_layout(const Candidate& other) const {
  return tp == other.tp && cp == other.cp && pp == other.pp && vpp == other.vpp &&
         shard == other.shard &&
         (cp == 1 || (cp_kind == other.cp_kind &&
                      (cp_kind != CpKind::all_to_all_ring || cp_heads == other.cp_heads)));
}

Layouts enumerate_layouts(const Recipe& recipe, const data::Entry& shortest, int gpus,
                          int per_node) {
  Layouts layouts;
  for (const int tp : divisors_of(gpus))
    for (const int cp : divisors_of(gpus / tp))
      for (const Candidate& one : kinds_of({.tp = tp, .cp = cp, .dp = gpus / tp / cp})) {
        ++layouts.drawn;
        if (std::string why = why_refused(recipe, shortest, gpus, per_node, one); why.empty())
          layouts.accepted.push_back(one);
        else
          ++layouts.refused[why];
      }
  return layouts;
}

}  // namespace vfm::train
