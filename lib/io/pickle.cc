// SPDX-License-Identifier: Apache-2.0
#include "io/pickle.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/pickle_machine.h"

namespace vfm::io {
namespace {

using Id = PickleMachine::Id;
using Kind = PickleMachine::Kind;
using Value = PickleMachine::Value;

constexpr std::size_t kMaxDepth = 64;

class Collector {
 public:
  Collector(const PickleMachine& machine, std::size_t bytes, std::string_view what)
      : machine_(machine), what_(what), budget_(PickleMachine::most_memory(bytes)) {}

  void collect(Id id, const std::string& name, std::size_t depth) {
    const Value& value = machine_.value(id);
    std::size_t cost = 16 + name.size();
    if (value.kind == Kind::tensor) cost += PickleMachine::memory_of(machine_.tensor(value));
    if (depth > kMaxDepth || cost > budget_)
      fail("the pickle in {} is nested too deep, or holds the same tensors too often", what_);
    budget_ -= cost;
    const auto below = [&](const std::string& key) {
      return name.empty() ? key : name + "." + key;
    };
    if (value.kind == Kind::tensor) {
      found.push_back(machine_.tensor(value));
      found.back().name = name;
    } else if (value.kind == Kind::object) {
      for (const Id state : value.items)
        collect(state, name, depth + 1);
    } else if (value.kind == Kind::list) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        collect(value.items[i], below(std::to_string(i)), depth + 1);
    } else if (value.kind == Kind::mapping) {
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const Value& key = machine_.value(value.items[i]);
        if (key.kind == Kind::text) collect(value.items[i + 1], below(key.text), depth + 1);
        if (key.kind == Kind::integer)
          collect(value.items[i + 1], below(std::to_string(key.integer)), depth + 1);
      }
    }
  }

  std::vector<PickledTensor> found;

 private:
  const PickleMachine& machine_;
  std::string_view what_;
  // Limits the work, because a container that is shared is visited many times.
  std::size_t budget_;
};

/// Returns the member `name` of a dictionary if the member is a dictionary, too. Else returns `id`.
Id member(const PickleMachine& machine, Id id, std::string_view name) {
  const Value& value = machine.value(id);
  if (value.kind == Kind::mapping)
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
      if (machine.value(value.items[i]).kind == Kind::text &&
          machine.value(value.items[i]).text == name &&
          machine.value(value.items[i + 1]).kind == Kind::mapping)
        return value.items[i + 1];
  return id;
}

}  // namespace

std::vector<PickledTensor> parse_pickle(std::span<const std::byte> bytes, std::string_view what) {
  PickleMachine machine(bytes, what);
  Id root = machine.run();
  for (const char* wrapper : {"state_dict", "model_state_dict", "model", "module"}) {
    const Id inner = member(machine, root, wrapper);
    if (inner != root && machine.value(root).items.size() > 2)
      log_info("of {} only '{}' is read, not what lies beside it", what, wrapper);
    root = inner;
  }
  Collector collector(machine, bytes.size(), what);
  collector.collect(root, "", 0);
  if (collector.found.empty()) fail("{} holds no tensors", what);
  if (collector.found.front().name.empty()) fail("{} holds one tensor, without a name", what);
  return std::move(collector.found);
}

}  // namespace vfm::io
