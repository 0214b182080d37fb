// An interpreter of a pickle's instructions, which builds plain values. Only for io/pickle.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/pickle.h"

namespace vfm::io {

class PickleMachine {
 public:
  enum class Kind {
    plain,  // Unused value, such as None, a float or true.
    integer,
    text,
    list,     // List or tuple.
    mapping,  // Items are key, value, key, value ...
    object,   // Object of a scripted module, with one item: its attributes.
    global,   // Text is "module name".
    storage,
    tensor,
    mark,
  };
  using Id = std::uint32_t;  // Number of a value. Containers store numbers, so cycles are harmless.
  struct Value {
    Kind kind = Kind::plain;
    std::int64_t integer = 0;  // Index, for a storage or tensor.
    std::string text;
    std::vector<Id> items;
  };

  PickleMachine(std::span<const std::byte> bytes, std::string_view what);

  /// Runs all instructions, and returns the value that remains on the stack.
  Id run();
  const Value& value(Id id) const { return values_[id]; }
  /// Returns the tensor of a value of Kind::tensor. The tensor has no name yet.
  const PickledTensor& tensor(const Value& value) const;
  /// Returns how many bytes of memory a PickledTensor takes.
  static std::size_t memory_of(const PickledTensor& tensor) {
    return sizeof tensor + tensor.storage.size() + 16 * tensor.shape.size();
  }
  /// Returns the limit, in bytes of memory, for all PickledTensors of a pickle of `bytes` bytes.
  static std::size_t most_memory(std::size_t bytes) { return 16 * bytes + 65536; }

 private:
  struct Storage {
    std::string dtype, key;
    std::int64_t elements = 0;
  };

  // These functions read bytes, and throw Error at the end of the bytes.
  [[noreturn]] void damaged() const;
  std::string_view take(std::uint64_t size);
  std::uint64_t number(std::size_t size);
  std::string_view line();

  void push(Value value);
  void push_integer(std::int64_t integer) { push({Kind::integer, integer, {}, {}}); }
  void push_text(std::string_view text) { push({Kind::text, 0, std::string(text), {}}); }
  void push_tuple(std::size_t size);
  Id pop();
  Id top() const;
  std::vector<Id> pop_to_mark();
  void add_to(Kind kind, const std::vector<Id>& items);
  void recall(std::uint64_t slot);

  // Each of these functions executes one instruction, or returns false if another of them must do
  // so.
  bool step_simple(unsigned char instruction);
  bool step_container(unsigned char instruction);
  bool step_object(unsigned char instruction);
  void push_global();
  void push_long();
  void call();
  void rebuild(const std::vector<Id>& arguments);
  void construct();
  void set_state();
  void load_storage();
  std::vector<std::int64_t> integers(Id id) const;
  std::int64_t need_integer(Id id) const;

  std::span<const std::byte> bytes_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::vector<Value> values_;
  std::vector<Id> stack_;
  std::map<std::uint64_t, Id> memo_;
  std::vector<Storage> storages_;
  std::vector<PickledTensor> tensors_;
  std::size_t budget_;  // Bytes left for tensors_.
};

}  // namespace vfm::io
