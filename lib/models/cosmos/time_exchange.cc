// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/time_exchange.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace vfm::models {
bool TimeExchange::next_round() {
  if (begin_ >= 0 && !more()) return false;
  begin_ = begin_ < 0 ? 0 : begin_ + line_.size();
  return chunks_ > 0;
}

int TimeExchange::parts() const {
  return static_cast<int>(std::min<std::int64_t>(line_.size(), chunks_ - begin_));
}

void TimeExchange::pass_on(const Tensor& x, std::int64_t lead, Tensor& history) {
  const int rank = line_.place(), size = line_.size();
  const bool sends = rank + 1 < parts() || more(), receives = rank > 0 || more();
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  const Tensor tail = x.rows(x.size(0) - lead, x.size(0));
  Tensor front = x.rows(0, lead);
  if (rank == 0) front = history = more() ? Tensor(front.shape(), x.dtype(), x.device()) : Tensor();
  // Fewer frames than the next rank looks back at: some of those have to come first.
  if (rank > 0 && x.size(0) < 2 * lead) {
    line_.step(false, to, tail, true, from, front).wait();
    line_.step(sends, to, tail, false, from, front).wait();
  } else {
    line_.step(sends, to, tail, receives, from, front).wait();
  }
}

std::vector<Tensor> TimeExchange::share(const Tensor& own,
                                        const std::vector<std::int64_t>& frames) {
  const int rank = line_.place(), parts = this->parts();
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
    line_.step(sends, to, own, receives, from, in).wait();
  }
  return all;
}

ops::TimeKeys TimeExchange::with_past(ops::TimeKeys& past, const Tensor& keys,
                                      const Tensor& values) {
  // How many frames each chunk has here: the first and the last may have fewer.
  std::int64_t count = keys.size(0);
  std::vector<std::int64_t> frames;
  for (const Tensor& one : share(dist::lend(std::as_writable_bytes(std::span(&count, 1))),
                                 std::vector<std::int64_t>(line_.size(), sizeof count)))
    frames.push_back(one.defined() ? *reinterpret_cast<const std::int64_t*>(one.raw()) : 0);
  const std::vector<Tensor> all_keys = share(keys, frames), all_values = share(values, frames);
  ops::TimeKeys seen;
  for (std::size_t i = 0; i < all_keys.size(); ++i) {
    if (!all_keys[i].defined()) continue;
    past.keys.push_back(all_keys[i]);
    past.values.push_back(all_values[i]);
    if (static_cast<int>(i) == line_.place()) seen = past;
  }
  return seen;
}

}  // namespace vfm::models
