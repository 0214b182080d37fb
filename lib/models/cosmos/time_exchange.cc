// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/time_exchange.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace vfm::models {
namespace {

/// One step between ranks, of which a rank may only send, or only receive.
void step(dist::Group& group, bool sends, int to, const Tensor& out, bool receives, int from,
          const Tensor& in) {
  if (sends && receives)
    group.exchange(to, out, from, in).wait();
  else if (sends)
    group.send(to, out).wait();
  else if (receives)
    group.receive(from, in).wait();
}

}  // namespace

bool TimeExchange::next_round() {
  if (begin_ >= 0 && !more()) return false;
  begin_ = begin_ < 0 ? 0 : begin_ + group_.size();
  return chunks_ > 0;
}

int TimeExchange::parts() const {
  return static_cast<int>(std::min<std::int64_t>(group_.size(), chunks_ - begin_));
}

void TimeExchange::pass_on(const Tensor& x, std::int64_t lead, Tensor& history) {
  const int rank = group_.rank(), size = group_.size();
  const bool sends = rank + 1 < parts() || more(), receives = rank > 0 || more();
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  const Tensor tail = x.rows(x.size(0) - lead, x.size(0));
  Tensor front = x.rows(0, lead);
  if (rank == 0) front = history = more() ? Tensor(front.shape(), x.dtype(), x.device()) : Tensor();
  // Fewer frames than the next rank looks back at: some of those have to come first.
  if (rank > 0 && x.size(0) < 2 * lead) {
    step(group_, false, to, tail, true, from, front);
    step(group_, sends, to, tail, false, from, front);
  } else {
    step(group_, sends, to, tail, receives, from, front);
  }
}

std::vector<Tensor> TimeExchange::share(const Tensor& own,
                                        const std::vector<std::int64_t>& frames) {
  const int rank = group_.rank(), parts = this->parts();
  std::vector<Tensor> all(static_cast<std::size_t>(parts));
  all[static_cast<std::size_t>(rank)] = own;
  for (int apart = 1; apart < parts; ++apart) {
    const int to = (rank + apart) % parts, from = (rank + parts - apart) % parts;
    const bool sends = to > rank || more(), receives = from < rank || more();
    Tensor& in = all[static_cast<std::size_t>(from)];
    if (receives) {
      Shape shape = own.shape();
      shape[0] = frames[static_cast<std::size_t>(from)];
      in = Tensor(shape, own.dtype(), own.device());
    }
    step(group_, sends, to, own, receives, from, in);
  }
  return all;
}

ops::TimeKeys TimeExchange::with_past(ops::TimeKeys& past, const Tensor& keys,
                                      const Tensor& values) {
  // How many frames each chunk has here: the first and the last may have fewer.
  std::int64_t count = keys.size(0);
  std::vector<std::int64_t> frames;
  for (const Tensor& one : share(dist::lend(std::as_writable_bytes(std::span(&count, 1))),
                                 std::vector<std::int64_t>(group_.size(), sizeof count)))
    frames.push_back(one.defined() ? *reinterpret_cast<const std::int64_t*>(one.raw()) : 0);
  const std::vector<Tensor> all_keys = share(keys, frames), all_values = share(values, frames);
  ops::TimeKeys seen;
  for (std::size_t i = 0; i < all_keys.size(); ++i) {
    if (!all_keys[i].defined()) continue;
    past.keys.push_back(all_keys[i]);
    past.values.push_back(all_values[i]);
    if (static_cast<int>(i) == group_.rank()) seen = past;
  }
  return seen;
}

}  // namespace vfm::models
