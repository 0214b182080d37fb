// SPDX-License-Identifier: Apache-2.0
#include "dist/message_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "dist/ordered_sum.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::dist {
namespace {

using Messages = std::vector<Message>;

/// Where the parts of each rank begin in a tensor, and how long they are; bytes.
struct Parts {
  Parts(std::byte* data, const std::vector<std::int64_t>& counts, std::size_t element) {
    for (const std::int64_t count : counts) {
      at.push_back(data);
      bytes.push_back(static_cast<std::size_t>(count) * element);
      data += bytes.back();
    }
  }
  std::vector<std::byte*> at;
  std::vector<std::size_t> bytes;
};

void add(Messages& messages, bool sends, int peer, std::byte* data, std::size_t bytes) {
  if (bytes > 0) messages.push_back({sends, peer, data, bytes});
}

void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, bytes);
}

std::byte* bytes_of(const Tensor& tensor) {
  return static_cast<std::byte*>(tensor.raw());
}

Tensor bytes_tensor(std::size_t bytes, Device device) {
  return Tensor({static_cast<std::int64_t>(bytes)}, DType::u8, device);
}

/// sum_chunk() in bytes.
std::size_t chunk_of(std::size_t element, std::size_t size) {
  return sum_chunk(element, size) * element;
}

/// What a sum has of other ranks' parts at a time, where `own` bytes belong here.
std::size_t staging_of(std::size_t own, std::size_t element, std::size_t size) {
  return std::min(chunk_of(element, size), own) * (size - 1);
}

/// The parts of other ranks' tensors that belong to this one come here, a chunk at a time, and are
/// added up.
class Reduction {
 public:
  Reduction(const Call& call, const Parts& in, std::byte* out, int rank)
      : sum_(call.sum), element_(call.element), in_(in), out_(out), rank_(rank) {
    const std::size_t size = in_.at.size();
    const std::size_t largest = *std::max_element(in_.bytes.begin(), in_.bytes.end());
    chunk_ = chunk_of(element_, size);
    rounds_ = size == 1 ? 0 : (largest + chunk_ - 1) / chunk_;
    staging_ = bytes_tensor(staging_of(own(), element_, size), Device::cpu);
    if (size == 1) move_bytes(out_, in_.at[0], own());
  }

  /// False when there is nothing left.
  bool next(Messages& messages) {
    if (round_ > 0) add_up(round_ - 1);
    if (round_ == rounds_) return false;
    for (std::size_t peer = 0; peer < in_.at.size(); ++peer) {
      if (static_cast<int>(peer) == rank_) continue;
      const int to = static_cast<int>(peer);
      add(messages, true, to, in_.at[peer] + round_ * chunk_, length(in_.bytes[peer], round_));
      add(messages, false, to, slot(peer), length(own(), round_));
    }
    ++round_;
    return true;
  }

 private:
  std::size_t own() const { return in_.bytes[static_cast<std::size_t>(rank_)]; }
  std::size_t length(std::size_t bytes, std::size_t round) const {
    return bytes > round * chunk_ ? std::min(chunk_, bytes - round * chunk_) : 0;
  }
  std::byte* slot(std::size_t peer) {
    return bytes_of(staging_) + (peer - (static_cast<int>(peer) > rank_)) * std::min(chunk_, own());
  }
  void add_up(std::size_t round) {
    const std::size_t bytes = length(own(), round);
    if (bytes == 0) return;
    std::vector<const std::byte*> parts;
    for (std::size_t peer = 0; peer < in_.at.size(); ++peer)
      parts.push_back(static_cast<int>(peer) == rank_ ? in_.at[peer] + round * chunk_ : slot(peer));
    sum_in_order(sum_, parts, out_ + round * chunk_, bytes / element_);
  }

  const Sum sum_;
  const std::size_t element_;
  const Parts in_;
  std::byte* const out_;
  const int rank_;
  std::size_t chunk_ = 0, rounds_ = 0, round_ = 0;
  Tensor staging_;  // so that its memory is counted, and used again
};

Running::Next one_round(Messages messages) {
  return [messages = std::move(messages)](Messages& round) mutable {
    round = std::exchange(messages, {});
    return !round.empty();
  };
}

Running::Next gathering(const Call& call, int rank) {
  const Parts parts(bytes_of(call.out), call.from, call.element);
  const auto own = static_cast<std::size_t>(rank);
  move_bytes(parts.at[own], bytes_of(call.in), parts.bytes[own]);
  Messages messages;
  for (std::size_t peer = 0; peer < parts.at.size(); ++peer) {
    if (peer == own) continue;
    add(messages, true, static_cast<int>(peer), parts.at[own], parts.bytes[own]);
    add(messages, false, static_cast<int>(peer), parts.at[peer], parts.bytes[peer]);
  }
  return one_round(std::move(messages));
}

Running::Next reducing(const Call& call, int rank) {
  const auto reduction = std::make_shared<Reduction>(
      call, Parts(bytes_of(call.in), call.to, call.element), bytes_of(call.out), rank);
  return [reduction](Messages& messages) { return reduction->next(messages); };
}

Running::Next reducing_all(const Call& call, int rank) {
  const Parts parts(bytes_of(call.out), call.to, call.element);
  const auto own = static_cast<std::size_t>(rank);
  const auto reduction = std::make_shared<Reduction>(call, parts, parts.at[own], rank);
  Call gather = call;  // each rank's sum is its own part of the tensor
  gather.in = Tensor::borrow(parts.at[own], {0}, call.out.dtype(), nullptr);
  gather.from = call.to;
  return [reduction, gather, rank, second = Running::Next()](Messages& messages) mutable {
    if (!second) {
      if (reduction->next(messages)) return true;
      second = gathering(gather, rank);
    }
    return second(messages);
  };
}

Running::Next sending_parts(const Call& call, int rank) {
  const Parts to(bytes_of(call.in), call.to, call.element);
  const Parts from(bytes_of(call.out), call.from, call.element);
  const auto own = static_cast<std::size_t>(rank);
  move_bytes(from.at[own], to.at[own], to.bytes[own]);
  Messages messages;
  for (std::size_t peer = 0; peer < to.at.size(); ++peer) {
    if (peer == own) continue;
    add(messages, true, static_cast<int>(peer), to.at[peer], to.bytes[peer]);
    add(messages, false, static_cast<int>(peer), from.at[peer], from.bytes[peer]);
  }
  return one_round(std::move(messages));
}

Running::Next spreading(const Call& call, int rank, int size) {
  Messages messages;
  if (call.source != rank)
    add(messages, false, call.source, bytes_of(call.out), call.out.bytes());
  else
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank) add(messages, true, peer, bytes_of(call.out), call.out.bytes());
  return one_round(std::move(messages));
}

Running::Next passing(const Call& call, int rank) {
  Messages messages;
  if (call.target == rank)
    move_bytes(bytes_of(call.out), bytes_of(call.in), call.in.bytes());
  else if (call.target >= 0)
    add(messages, true, call.target, bytes_of(call.in), call.in.bytes());
  if (call.source >= 0 && call.source != rank)
    add(messages, false, call.source, bytes_of(call.out), call.out.bytes());
  return one_round(std::move(messages));
}

Running::Next rounds_of(const Call& call, int rank, int size) {
  switch (call.operation) {
    case Operation::all_gather:
      return gathering(call, rank);
    case Operation::reduce_scatter:
      return reducing(call, rank);
    case Operation::all_reduce:
      return reducing_all(call, rank);
    case Operation::all_to_all:
      return sending_parts(call, rank);
    case Operation::broadcast:
      return spreading(call, rank, size);
    case Operation::exchange:
    case Operation::send:
    case Operation::receive:
      return passing(call, rank);
    case Operation::barrier:
    case Operation::gather:
      break;
  }
  fail("{} has no tensors", operation_name(call.operation));
}

/// What a Transfer has of an operation, which keeps the tensors. Those of the GPU have copies on
/// the host; what came is copied back by the thread that drives the GPU, when it asks.
class Handle final : public Pending {
 public:
  Handle(Engine& engine, std::shared_ptr<Running> running, Tensor host = {}, Tensor device = {})
      : engine_(engine),
        running_(std::move(running)),
        host_(std::move(host)),
        device_(std::move(device)) {}
  ~Handle() override {
    if (running_ && !running_->finished()) engine_.drop(running_);
  }
  void wait() override {
    engine_.finish(*running_);
    copy_back();
  }
  bool done() override {
    if (!engine_.finished(*running_)) return false;
    copy_back();
    return true;
  }

 private:
  void copy_back() {
    if (const Tensor host = std::exchange(host_, Tensor()); host.defined()) copy(host, device_);
  }
  Engine& engine_;
  std::shared_ptr<Running> running_;
  Tensor host_, device_;
};

/// An operation on meta, which the account of memory (tensor/meta.h) takes to last until the rank
/// waits: for it, or for another one, as all go on then.
class Counted final : public Pending {
 public:
  Counted(Engine& engine, Tensor staging)
      : engine_(engine), waits_(engine.counted_waits), staging_(std::move(staging)) {}
  void wait() override {
    if (!done()) ++engine_.counted_waits;
    staging_ = Tensor();
  }
  bool done() override { return engine_.counted_waits > waits_; }

 private:
  Engine& engine_;
  const std::int64_t waits_;
  Tensor staging_;
};

bool between_two(Operation operation) {
  return operation == Operation::exchange || operation == Operation::send ||
         operation == Operation::receive;
}

}  // namespace

MessageGroup::MessageGroup(std::string axis, int rank, std::vector<int> ranks,
                           std::unique_ptr<Wire> wire, Engine& engine)
    : Group(std::move(axis), rank, std::move(ranks)),
      wire_(std::move(wire)),
      engine_(engine),
      recorded_as_(engine.recorder().add_group(this->axis(), this->ranks())) {}

Running::What MessageGroup::begin(Operation operation, const std::string& described) {
  if (!wire_ && size() > 1)
    fail("{} of '{}': the other ranks are not there, only what is on meta is counted", described,
         axis());
  Running::What what{axis(), {}, ranks(), 0};
  const bool alone = size() == 1;
  if (between_two(operation)) {
    what.place = fmt::format("{} of '{}'", described, axis());
    what.tag = static_cast<int>(Operation::send);
  } else {
    ++number_;
    what.place = fmt::format("{} ({} of '{}')", described, number_, axis());
    // Another operation has another tag, so that one is never taken for the other.
    constexpr std::int64_t kKinds = 16;
    what.tag =
        static_cast<int>(number_ % (Wire::kTags / kKinds) * kKinds) + static_cast<int>(operation);
    if (wire_ && !alone) wire_->begin(number_, described);
  }
  if (!alone) engine_.traffic().called(axis(), operation);
  return what;
}

FlightRecorder::Ticket MessageGroup::record(Operation operation, const std::string& described,
                                            int to, int from, bool gpu) {
  if (size() == 1) return {};
  FlightRecorder& recorder = engine_.recorder();
  if (!between_two(operation)) return recorder.begin(recorded_as_, number_, described, gpu);
  const auto in_world = [this](int rank) {
    return rank < 0 || rank == this->rank() ? -1 : ranks()[static_cast<std::size_t>(rank)];
  };
  return recorder.begin_message(recorded_as_, in_world(to), in_world(from), described, gpu);
}

std::shared_ptr<Running> MessageGroup::run(Operation operation, const std::string& described,
                                           std::size_t bytes, Running::Next next, int to,
                                           int from) {
  Running::What what = begin(operation, described);
  auto recorded = [next = std::move(next), &recorder = engine_.recorder(),
                   ticket = record(operation, described, to, from)](Messages& messages) mutable {
    if (next(messages)) return true;
    recorder.end(ticket);
    return false;
  };
  auto running = std::make_shared<Running>(std::move(what), wire_.get(), std::move(recorded));
  if (size() > 1) engine_.traffic().sent(axis(), operation, bytes);
  engine_.start(running);
  return running;
}

std::unique_ptr<Pending> MessageGroup::start(const Call& call) {
  const Device device = (call.out.defined() ? call.out : call.in).device();
  if (device == Device::meta) return count(call);
  const std::string described = describe(call);
  if (device == Device::cuda && carrier_) {
    const Running::What what = begin(call.operation, described);
    std::unique_ptr<Pending> pending = carrier_->start(
        call, what.place,
        [&recorder = engine_.recorder(),
         ticket = record(call.operation, described, call.target, call.source, true)] {
          recorder.end(ticket);
        });
    engine_.traffic().sent(axis(), call.operation, bytes_sent(call, rank(), size()));
    return pending;
  }
  if (device == Device::cuda && size() == 1) {
    if (call.in.defined() && call.out.defined()) copy(call.in, call.out);
    return nullptr;
  }
  Call host = call;
  const bool away = device != Device::cpu;
  if (away) {
    if (call.in.defined()) host.in = call.in.to(Device::cpu);
    if (call.out.defined()) host.out = call.out.to(Device::cpu);  // all_reduce reads it, too
  }
  // Holds the tensors as long as the operation lives.
  auto next = [host, rounds = rounds_of(host, rank(), size())](Messages& messages) mutable {
    return rounds(messages);
  };
  auto running = run(call.operation, described, bytes_sent(call, rank(), size()), std::move(next),
                     call.target, call.source);
  if (away && call.out.defined())
    return std::make_unique<Handle>(engine_, std::move(running), host.out, call.out);
  return std::make_unique<Handle>(engine_, std::move(running));
}

std::unique_ptr<Pending> MessageGroup::count(const Call& call) {
  if (size() == 1) return nullptr;
  engine_.traffic().called(axis(), call.operation);
  engine_.traffic().sent(axis(), call.operation, bytes_sent(call, rank(), size()));
  Tensor staging;
  if (call.sum != Sum::none && layout_device(Device::meta) == Device::cpu) {
    const auto own = static_cast<std::size_t>(call.to[static_cast<std::size_t>(rank())]);
    staging =
        bytes_tensor(staging_of(own * call.element, call.element, ranks().size()), Device::meta);
  }
  return std::make_unique<Counted>(engine_, std::move(staging));
}

void MessageGroup::barrier() {
  // In round k each rank hears, by way of others, of the 2^k ranks before it.
  const auto next = [rank = rank(), size = size(), step = 1,
                     sign =
                         std::make_shared<std::array<std::byte, 2>>()](Messages& messages) mutable {
    if (step >= size) return false;
    add(messages, true, (rank + step) % size, &(*sign)[0], 1);
    add(messages, false, (rank + size - step) % size, &(*sign)[1], 1);
    step *= 2;
    return true;
  };
  if (size() > 1) Handle(engine_, run(Operation::barrier, "barrier", 0, next)).wait();
}

std::vector<std::string> MessageGroup::gather(const std::string& text) {
  if (size() == 1) return {text};
  struct State {
    std::vector<std::uint64_t> lengths;
    std::vector<std::string> texts;
    int round = 0;
  };
  const auto state = std::make_shared<State>();
  state->texts.resize(rank() == 0 ? static_cast<std::size_t>(size()) : 1);
  state->texts[0] = text;
  state->lengths.assign(state->texts.size(), text.size());
  const auto next = [state, leads = rank() == 0](Messages& messages) {
    const int round = state->round++;
    if (round > 1) return false;
    for (std::size_t i = leads ? 1 : 0; i < state->texts.size(); ++i) {
      if (leads && round == 1) state->texts[i].resize(state->lengths[i]);
      std::string& each = state->texts[i];
      const int peer = static_cast<int>(i);
      if (round == 0)
        add(messages, !leads, peer, reinterpret_cast<std::byte*>(&state->lengths[i]), 8);
      else
        add(messages, !leads, peer, reinterpret_cast<std::byte*>(each.data()), each.size());
    }
    return true;
  };
  Handle(engine_, run(Operation::gather, "gather", rank() == 0 ? 0 : text.size(), next)).wait();
  if (rank() != 0) state->texts.clear();
  return std::move(state->texts);
}

int place_in(const std::vector<int>& ranks, int rank, int size, std::string_view axis) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end() || ranks.front() < 0 || ranks.back() >= size ||
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end())
    fail("group '{}': not ascending ranks of the world's {}, rank {} among them", axis, size, rank);
  return static_cast<int>(found - ranks.begin());
}

}  // namespace vfm::dist
