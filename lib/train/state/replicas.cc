// SPDX-License-Identifier: Apache-2.0
#include "train/state/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "dist/bytes.h"
#include "dist/together.h"
#include "train/step/messages.h"

namespace vfm::train {
namespace {

/// A tensor of a parameter, of which each rank of a group has a copy.
struct Copy {
  const std::string* name;
  Tensor tensor;
};
/// By the axes of these ranks.
using Copies = std::map<dist::Axes, std::vector<Copy>>;

void add_values(const nn::Parameter& parameter, std::vector<Copy>& copies) {
  for (const Tensor& tensor : {parameter.value, parameter.high, parameter.low})
    if (tensor.defined() && !parameter.sharded) copies.push_back({&parameter.name, tensor});
}

Copies copies_of(std::span<const NetworkState> networks) {
  Copies copies;
  for (const NetworkState& network : networks) {
    std::map<std::string_view, dist::Axes> axes;  // of the state
    for (const nn::Parameter* parameter : *network.parameters) {
      dist::Axes& of_state = axes[parameter->name];
      of_state = dist::Axes::cp | dist::Axes::dp;
      if (parameter->whole()) of_state = of_state | dist::Axes::tp;
      add_values(*parameter, copies[of_state]);
      if (!parameter->state) continue;
      of_state = dist::Axes::replicate;
      add_values(*parameter->state, copies[of_state]);
    }
    if (network.optimizer == nullptr) continue;
    for (const OptimizerState& state : network.optimizer->state())
      for (std::size_t i = 0; i < state.tensors.size(); ++i) {
        const std::string& name = state.parameters[i]->name;
        copies[axes.at(name)].push_back({&name, state.tensors[i]});
      }
    const nn::ParameterList& states = network.optimizer->parameters();
    for (std::size_t i = 0; network.optimizer->has_ema() && i < states.size(); ++i)
      copies[axes.at(states[i]->name)].push_back({&states[i]->name, network.optimizer->ema()[i]});
  }
  return copies;
}

/// By pieces of many tensors at a time, so that no thread waits for those of one tensor.
std::vector<std::string> hashes_of(const std::vector<Copy>& copies) {
  constexpr std::size_t kPiece = std::size_t{1} << 20, kTogether = std::size_t{256} << 20;
  struct Piece {
    std::size_t copy;
    std::string_view bytes;
    std::string hash = {};
  };
  std::vector<std::string> hashes(copies.size());
  for (std::size_t next = 0; next < copies.size();) {
    std::vector<Tensor> here;
    std::vector<Piece> pieces;
    for (std::size_t bytes = 0; next < copies.size() && bytes < kTogether; ++next) {
      const Tensor& tensor = here.emplace_back(copies[next].tensor.to(Device::cpu));
      bytes += tensor.bytes();
      const std::string_view all(tensor.data<const char>(), tensor.bytes());
      for (std::size_t at = 0; at < all.size(); at += kPiece)
        pieces.push_back({next, all.substr(at, kPiece)});
    }
    const auto count = static_cast<std::int64_t>(pieces.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t i = 0; i < count; ++i) {
      Piece& piece = pieces[static_cast<std::size_t>(i)];
      piece.hash = Hasher().update(piece.bytes).hex64();
    }
    for (const Piece& piece : pieces)
      hashes[piece.copy] += piece.hash;
  }
  for (std::string& hash : hashes)
    hash = hash_hex(hash);
  return hashes;
}

/// What is wrong with this rank, where the hashes of a group are not all the same; or "".
std::string judge(dist::Group& group, const std::string& host, const std::vector<Copy>& copies,
                  const std::vector<std::string>& hashes) {
  std::vector<Json> ranks;
  for (const std::string& text :
       dist::all_gather_bytes(group, dump_json({{"host", host}, {"hashes", hashes}})))
    ranks.push_back(parse_json(text, "a rank's hashes"));
  const auto same_as = [&](std::size_t rank) {
    return std::ranges::count_if(
        ranks, [&](const Json& other) { return other["hashes"] == ranks[rank]["hashes"]; });
  };
  std::size_t usual = 0;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    if (same_as(rank) > same_as(usual)) usual = rank;
  const auto most = same_as(usual), all = std::ssize(ranks);
  const auto own = static_cast<std::size_t>(group.rank());
  const auto name = [&](std::size_t rank) {
    return fmt::format("rank {} on host {}", group.ranks()[rank],
                       ranks[rank]["host"].get<std::string>());
  };
  const auto differs = [&](std::size_t a, std::size_t b) {
    std::size_t i = 0;
    while (i + 1 < copies.size() && ranks[a]["hashes"][i] == ranks[b]["hashes"][i])
      ++i;
    return *copies[i].name;
  };
  constexpr const char* kWhy =
      "computes wrongly, or its memory was changed. Leave that host out, and give the same command "
      "again: checkpoints were written only while all were the same";
  if (2 * most > all)
    return same_as(own) == most
               ? ""
               : fmt::format("{} has another '{}' than {} that should have the same: it {}",
                             name(own), differs(own, usual), name(usual), kWhy);
  if (own != 0) return "";
  std::size_t other = 1;
  while (ranks[other]["hashes"] == ranks[0]["hashes"])
    ++other;
  return fmt::format("{} and {} have different '{}', and should have the same: one of them {}",
                     name(0), name(other), differs(0, other), kWhy);
}

}  // namespace

void compare_replicas(const dist::Mesh& mesh, std::span<const NetworkState> networks) {
  std::string wrong;
  for (const auto& [axes, copies] : copies_of(networks)) {
    dist::Group& group = mesh.group(axes);
    if (group.size() == 1) continue;
    const std::vector<std::string> hashes = hashes_of(copies);
    Hasher all;
    for (const std::string& hash : hashes)
      all.update(hash);
    const std::vector<std::string> of_ranks = dist::all_gather_bytes(group, all.hex64());
    if (std::ranges::count(of_ranks, of_ranks.front()) == std::ssize(of_ranks)) continue;
    const std::string found = judge(group, mesh.world().host(), copies, hashes);
    if (wrong.empty()) wrong = found;
  }
  double differ = wrong.empty() ? 0 : 1;
  mesh.world().all_reduce_sum(std::span<double>(&differ, 1));
  if (differ == 0) return;
  on_all_ranks(mesh.world(), [&] {
    if (!wrong.empty()) fail("{}", wrong);
  });
}

}  // namespace vfm::train
