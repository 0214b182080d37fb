// SPDX-License-Identifier: Apache-2.0
#include "train/state/state_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "models/folder/load_tensors.h"
#include "nn/columns.h"
#include "ops/optim/block_codes.h"
#include "ops/pointwise/join.h"

namespace vfm::train {

using dist::Axes;

namespace {

/// The ranks of a stage that have the parameters together.
dist::Group* ranks_of_stage(const dist::Mesh* mesh, const nn::ParameterList& parameters) {
  if (mesh == nullptr) return nullptr;
  const bool shared = std::ranges::any_of(
      parameters, [](const nn::Parameter* p) { return !p->placement.part.empty(); });
  dist::Group& group = mesh->group(shared ? Axes::tp | Axes::cp | Axes::shard : Axes::tp);
  return group.size() > 1 ? &group : nullptr;
}

/// What this rank has, and of what it has not an equal share for each of the others.
std::vector<HeldPart> supposed_parts(const nn::Parameter& parameter, const dist::Group& group) {
  const io::TensorRange whole = io::TensorRange::whole(parameter.placement.global);
  std::vector<HeldPart> parts;
  for (int rank = 0; rank < group.size(); ++rank)
    parts.push_back({whole, nn::share(whole.elements(), rank, group.size()),
                     nn::share(whole.elements(), rank + 1, group.size())});
  const std::int64_t begin = parameter.placement.begin;
  parts[static_cast<std::size_t>(group.rank())] = {models::held_range(parameter), begin,
                                                   begin + parameter.elements()};
  return parts;
}

Tensor flat(const Tensor& tensor) {
  return tensor.reshape({tensor.elements()});
}

bool has_all_columns(const io::TensorRange& box) {
  return box.length[1] == box.shape[1];
}

/// The first element of a box with all columns, in the whole matrix.
std::int64_t first_of(const io::TensorRange& box) {
  return box.offset[0] * box.shape[1];
}

}  // namespace

StateParts::StateParts(const dist::Mesh* mesh, const nn::ParameterList& parameters)
    : group_(ranks_of_stage(mesh, parameters)), parameters_(parameters) {
  nn::ParameterList here;  // of this stage
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (models::held_range(*parameters[i]).elements() > 0) {
      here.push_back(parameters[i]);
      numbers.push_back(i);
    }
  if (here.empty()) return;
  if (group_ == nullptr) {
    own_ = numbers;
    return;
  }
  const bool counted = here.front()->device() == Device::meta;
  std::vector<bool> cut;
  if (counted)
    for (const nn::Parameter* parameter : here)
      cut.push_back(!parameter->whole());
  else
    cut = cut_parameters(*group_, here);
  std::vector<std::size_t> in_parts;  // of `here`
  for (std::size_t i = 0; i < here.size(); ++i)
    if (cut[i])
      in_parts.push_back(i);
    else
      own_.push_back(numbers[i]);
  std::ranges::stable_sort(in_parts, std::ranges::greater(),
                           [&](std::size_t i) { return element_count(here[i]->placement.global); });
  // A rank needs the parts of those that it owns (round()).
  const auto ranks = static_cast<std::size_t>(group_->size());
  TensorsOfRanks owned(ranks);
  for (std::size_t k = 0; k < in_parts.size(); ++k)
    owned[k % ranks].push_back(in_parts[k]);
  for (std::vector<std::size_t>& list : owned)
    std::ranges::sort(list);
  std::optional<HeldParts> held;
  if (!counted) held.emplace(*group_, here, owned);
  for (const std::size_t i : in_parts) {
    Shared& shared = shared_.emplace_back(Shared{numbers[i], here[i], {}});
    if (counted) {
      shared.parts = supposed_parts(*here[i], *group_);
      continue;
    }
    if (held->own(i).elements() != here[i]->elements())
      fail("several ranks of '{}' have the same part of '{}'", group_->axis(), here[i]->name);
    if (held->parts(i).empty()) continue;
    shared.parts.resize(ranks);
    for (const RankPart& one : held->parts(i))
      shared.parts[static_cast<std::size_t>(one.rank)] = one.part;
  }
}

Tensor StateParts::Shared::join(const Tensor& parts_in_order) const {
  const Tensor whole(parameter->placement.global, parts_in_order.dtype(), parts_in_order.device());
  std::map<std::int64_t, Tensor> columns;  // boxes of some columns, by the first
  std::int64_t at = 0;
  for (const HeldPart& part : parts) {
    const Tensor values = parts_in_order.rows(at, at + part.elements());
    at += part.elements();
    if (part.elements() == 0) continue;
    if (has_all_columns(part.box)) {
      const std::int64_t first = first_of(part.box);
      copy(values, flat(whole).rows(first + part.begin, first + part.end));
      continue;
    }
    Tensor& box = columns[part.box.offset[1]];
    if (!box.defined()) box = Tensor(part.box.length, whole.dtype(), whole.device());
    copy(values, flat(box).rows(part.begin, part.end));
  }
  for (const auto& [first, box] : columns)
    ops::copy_columns(box, 0, whole, first, box.size(1));
  return whole;
}

Tensor StateParts::Shared::split(const Tensor& whole) const {
  std::int64_t all = 0;
  for (const HeldPart& part : parts)
    all += part.elements();
  const Tensor result({all}, whole.dtype(), whole.device());
  std::map<std::int64_t, Tensor> columns;
  std::int64_t at = 0;
  for (const HeldPart& part : parts) {
    const Tensor place = result.rows(at, at + part.elements());
    at += part.elements();
    if (part.elements() == 0) continue;
    if (has_all_columns(part.box)) {
      const std::int64_t first = first_of(part.box);
      copy(flat(whole).rows(first + part.begin, first + part.end), place);
      continue;
    }
    Tensor& box = columns[part.box.offset[1]];
    if (!box.defined())
      box = nn::take_columns(whole, {part.box.offset[1], part.box.length[1], whole.size(1)});
    copy(flat(box).rows(part.begin, part.end), place);
  }
  return result;
}

void StateParts::each_whole(const Part& part, const Act& act, const Take& take) const {
  for (const std::size_t i : own_)
    take(i, flat(act(i, part(i).reshape(parameters_[i]->placement.global))));
  for (std::size_t first = 0; first < shared_.size();
       first += static_cast<std::size_t>(group_->size()))
    round(first, part, act, take);
}

void StateParts::greatest(std::span<const Numbered> tensors) const {
  std::vector<Tensor> cut;
  std::int64_t all = 0;
  for (const Numbered& one : tensors)
    if (std::ranges::find(shared_, one.number, &Shared::number) != shared_.end()) {
      cut.push_back(flat(one.values));
      all += one.values.elements();
    }
  if (all == 0) return;
  // Each rank finds the greatest of its share of them, and sends these to all.
  const int ranks = group_->size();
  const Tensor values({all}, DType::f32, cut.front().device());
  const auto each = [&](const auto& act) {
    std::int64_t at = 0;
    for (const Tensor& one : cut) {
      act(one, values.rows(at, at + one.elements()));
      at += one.elements();
    }
  };
  each([](const Tensor& one, const Tensor& place) { copy(one, place); });
  std::vector<std::int64_t> shares;
  for (int rank = 0; rank < ranks; ++rank)
    shares.push_back(nn::share(all, rank + 1, ranks) - nn::share(all, rank, ranks));
  const std::int64_t mine = shares[static_cast<std::size_t>(group_->rank())];
  const Tensor received({mine * ranks}, DType::f32, values.device());
  group_
      ->all_to_all(values, received, shares,
                   std::vector<std::int64_t>(static_cast<std::size_t>(ranks), mine))
      .wait();
  const Tensor own = received.rows(0, mine);
  for (int rank = 1; rank < ranks; ++rank)
    ops::greater_in_place(own, received.rows(rank * mine, (rank + 1) * mine));
  group_->all_gather(own, values, shares).wait();
  each([](const Tensor& one, const Tensor& place) { copy(place, one); });
}

/// Of the matrices from `first` on each rank owns one, as far as they go.
void StateParts::round(std::size_t first, const Part& part, const Act& act,
                       const Take& take) const {
  const auto ranks = static_cast<std::size_t>(group_->size());
  const std::size_t count = std::min(ranks, shared_.size() - first);
  const auto rank = static_cast<std::size_t>(group_->rank());
  const Shared* const mine = rank < count ? &shared_[first + rank] : nullptr;
  std::vector<std::int64_t> to(ranks), from(ranks);
  std::vector<Tensor> parts;
  for (std::size_t owner = 0; owner < count; ++owner) {
    parts.push_back(part(shared_[first + owner].number));
    to[owner] = parts.back().elements();
  }
  for (std::size_t other = 0; mine != nullptr && other < ranks; ++other)
    from[other] = mine->of_rank(static_cast<int>(other));
  const DType type = parts.front().dtype();
  const Device device = parts.front().device();
  const auto sum = [](const std::vector<std::int64_t>& rows) {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  };
  const Tensor sent({sum(to)}, type, device);
  Tensor received({sum(from)}, type, device);
  std::int64_t at = 0;
  for (const Tensor& one : parts) {
    copy(one, sent.rows(at, at + one.elements()));
    at += one.elements();
  }
  parts.clear();
  group_->all_to_all(sent, received, to, from).wait();
  if (mine != nullptr) received = mine->split(act(mine->number, mine->join(received)));
  group_->all_to_all(received, sent, from, to).wait();
  at = 0;
  for (std::size_t owner = 0; owner < count; ++owner) {
    take(shared_[first + owner].number, sent.rows(at, at + to[owner]));
    at += to[owner];
  }
}

}  // namespace vfm::train
