// SPDX-License-Identifier: Apache-2.0
#include "io/pickle_machine.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "io/tensor_set.h"

namespace vfm::io {
namespace {

constexpr std::size_t kLongestKey = 255;  // PyTorch's keys are small numbers.
// A tensor takes about twenty values. A value takes a hundred times the memory of its byte in the
// file.
constexpr std::size_t kMostValues = std::size_t{1} << 22;

std::string storage_dtype(std::string_view global) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 10> known = {{
      {"torch FloatStorage", "F32"},
      {"torch HalfStorage", "F16"},
      {"torch BFloat16Storage", "BF16"},
      {"torch DoubleStorage", "F64"},
      {"torch LongStorage", "I64"},
      {"torch IntStorage", "I32"},
      {"torch ShortStorage", "I16"},
      {"torch CharStorage", "I8"},
      {"torch ByteStorage", "U8"},
      {"torch BoolStorage", "BOOL"},
  }};
  for (const auto& [name, dtype] : known)
    if (name == global) return dtype;
  return {};
}

bool is_scripted(std::string_view global) {
  return global.starts_with("__torch__.") || global.starts_with("__torch__ ");
}

// Returns true for functions that return their first argument, as far as tensors are concerned.
bool is_passing(std::string_view global) {
  return global == "torch._utils _rebuild_parameter" || global == "torch Size" ||
         global == "torch.jit._pickle build_intlist" ||
         global == "torch.jit._pickle build_doublelist" ||
         global == "torch.jit._pickle build_boollist" ||
         global == "torch.jit._pickle build_tensorlist";
}

bool is_allowed(std::string_view global) {
  return global == "collections OrderedDict" || global == "torch._utils _rebuild_tensor_v2" ||
         is_passing(global) || is_scripted(global) || !storage_dtype(global).empty();
}

}  // namespace

PickleMachine::PickleMachine(std::span<const std::byte> bytes, std::string_view what)
    : bytes_(bytes), what_(what), budget_(most_memory(bytes.size())) {
  values_.resize(1);  // Value 0 stands for all unused values.
}

const PickledTensor& PickleMachine::tensor(const Value& value) const {
  return tensors_[static_cast<std::size_t>(value.integer)];
}

void PickleMachine::damaged() const {
  fail("the pickle in {} is damaged", what_);
}

std::string_view PickleMachine::take(std::uint64_t size) {
  if (size > bytes_.size() - at_) damaged();
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
  at_ += size;
  return {begin, size};
}

std::uint64_t PickleMachine::number(std::size_t size) {
  std::uint64_t value = 0;
  std::size_t shift = 0;
  for (const char c : take(size)) {
    value |= std::uint64_t{static_cast<unsigned char>(c)} << shift;
    shift += 8;
  }
  return value;
}

std::string_view PickleMachine::line() {
  const std::size_t begin = at_;
  while (take(1) != "\n") {
  }
  return {reinterpret_cast<const char*>(bytes_.data()) + begin, at_ - begin - 1};
}

void PickleMachine::push(Value value) {
  if (values_.size() >= kMostValues)
    fail("the pickle in {} has more than {} values; save the state dict alone", what_, kMostValues);
  stack_.push_back(static_cast<Id>(values_.size()));
  values_.push_back(std::move(value));
}

void PickleMachine::push_tuple(std::size_t size) {
  if (size > stack_.size()) damaged();
  std::vector<Id> items(stack_.end() - static_cast<std::ptrdiff_t>(size), stack_.end());
  stack_.resize(stack_.size() - size);
  push({Kind::list, 0, {}, std::move(items)});
}

PickleMachine::Id PickleMachine::pop() {
  const Id id = top();
  stack_.pop_back();
  return id;
}

PickleMachine::Id PickleMachine::top() const {
  if (stack_.empty()) damaged();
  return stack_.back();
}

std::vector<PickleMachine::Id> PickleMachine::pop_to_mark() {
  std::size_t begin = stack_.size();
  while (begin > 0 && values_[stack_[begin - 1]].kind != Kind::mark)
    --begin;
  if (begin == 0) damaged();
  std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
  stack_.resize(begin - 1);
  return items;
}

void PickleMachine::add_to(Kind kind, const std::vector<Id>& items) {
  Value& container = values_[top()];
  if (container.kind != kind || (kind == Kind::mapping && items.size() % 2 != 0)) damaged();
  container.items.insert(container.items.end(), items.begin(), items.end());
}

void PickleMachine::recall(std::uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) damaged();
  stack_.push_back(found->second);
}

std::int64_t PickleMachine::need_integer(Id id) const {
  if (values_[id].kind != Kind::integer || values_[id].integer < 0) damaged();
  return values_[id].integer;
}

std::vector<std::int64_t> PickleMachine::integers(Id id) const {
  const Value& list = values_[id];
  if (list.kind != Kind::list || list.items.size() > kMaxDims) damaged();
  std::vector<std::int64_t> numbers;
  for (const Id item : list.items)
    numbers.push_back(need_integer(item));
  return numbers;
}

void PickleMachine::push_global() {
  const std::string module(line());
  const std::string global = module + " " + std::string(line());
  if (!is_allowed(global))
    fail(
        "{} holds more than tensors: it names '{}', which is not loaded, as it might run code; "
        "save the state dict alone",
        what_, global);
  push({Kind::global, 0, global, {}});
}

// Integers of more than 64 bits are not used.
void PickleMachine::push_long() {
  const std::string_view digits = take(number(1));
  if (digits.size() > 8) return stack_.push_back(0);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < digits.size(); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(digits[i])} << 8 * i;
  const bool negative = !digits.empty() && (digits.back() & 0x80) != 0;
  if (negative && digits.size() < 8) value |= ~std::uint64_t{0} << 8 * digits.size();
  push_integer(static_cast<std::int64_t>(value));
}

// The arguments are ("storage", type, key, location, elements).
void PickleMachine::load_storage() {
  const Value& id = values_[pop()];
  if (id.kind != Kind::list || id.items.size() != 5) damaged();
  const Value& type = values_[id.items[1]];
  const Value& key = values_[id.items[2]];
  const std::string dtype = type.kind == Kind::global ? storage_dtype(type.text) : "";
  if (values_[id.items[0]].text != "storage" || dtype.empty() || key.kind != Kind::text) damaged();
  if (key.text.size() > kLongestKey) damaged();  // Each tensor of the storage copies the key.
  storages_.push_back({dtype, key.text, need_integer(id.items[4])});
  push({Kind::storage, static_cast<std::int64_t>(storages_.size()) - 1, {}, {}});
}

// The arguments are (storage, offset, shape, strides, ...).
void PickleMachine::rebuild(const std::vector<Id>& arguments) {
  if (arguments.size() < 4 || values_[arguments[0]].kind != Kind::storage) damaged();
  const Storage& storage = storages_[static_cast<std::size_t>(values_[arguments[0]].integer)];
  PickledTensor tensor{{},
                       storage.dtype,
                       storage.key,
                       storage.elements,
                       need_integer(arguments[1]),
                       integers(arguments[2]),
                       integers(arguments[3])};
  if (tensor.shape.size() != tensor.strides.size()) damaged();
  // In the file, many tensors may share a key and a shape. In memory, each tensor has its own.
  const std::size_t cost = memory_of(tensor);
  if (cost > budget_) fail("{} has more tensors than its bytes can hold", what_);
  budget_ -= cost;
  tensors_.push_back(std::move(tensor));
  push({Kind::tensor, static_cast<std::int64_t>(tensors_.size()) - 1, {}, {}});
}

void PickleMachine::call() {
  const Value& arguments = values_[pop()];
  const Value& function = values_[pop()];
  if (function.kind != Kind::global || arguments.kind != Kind::list) damaged();
  if (function.text == "torch._utils _rebuild_tensor_v2") return rebuild(arguments.items);
  if (is_passing(function.text)) {
    if (arguments.items.empty()) damaged();
    return stack_.push_back(arguments.items[0]);
  }
  // pickle makes an empty OrderedDict, and adds the items later.
  if (function.text != "collections OrderedDict" || !arguments.items.empty()) damaged();
  push({Kind::mapping, 0, {}, {}});
}

void PickleMachine::construct() {
  pop();  // Arguments.
  const Value& type = values_[pop()];
  if (type.kind != Kind::global || !is_scripted(type.text)) damaged();
  push({Kind::object, 0, {}, {}});
}

void PickleMachine::set_state() {
  const Id state = pop();
  Value& target = values_[top()];
  if (target.kind == Kind::object) {
    target.items.assign(1, state);
  } else if (target.kind != Kind::mapping) {
    damaged();  // Attributes of a dictionary are ignored.
  }
}

bool PickleMachine::step_simple(unsigned char instruction) {
  switch (instruction) {
    case 'N':  // None
    case 0x88:
    case 0x89:  // True, False
      stack_.push_back(0);
      return true;
    case 'G':  // a float
      take(8);
      stack_.push_back(0);
      return true;
    case 'J':
      push_integer(static_cast<std::int32_t>(number(4)));
      return true;
    case 'K':
      push_integer(static_cast<std::int64_t>(number(1)));
      return true;
    case 'M':
      push_integer(static_cast<std::int64_t>(number(2)));
      return true;
    case 0x8a:
      push_long();
      return true;
    case 'X':
    case 'T':
      push_text(take(number(4)));
      return true;
    case 'U':
      push_text(take(number(1)));
      return true;
    case 'q':
      memo_[number(1)] = top();
      return true;
    case 'r':
      memo_[number(4)] = top();
      return true;
    case 'h':
      recall(number(1));
      return true;
    case 'j':
      recall(number(4));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_container(unsigned char instruction) {
  switch (instruction) {
    case '}':
      push({Kind::mapping, 0, {}, {}});
      return true;
    case ']':
    case ')':
      push({Kind::list, 0, {}, {}});
      return true;
    case '(':
      push({Kind::mark, 0, {}, {}});
      return true;
    case 't': {
      std::vector<Id> items = pop_to_mark();
      push({Kind::list, 0, {}, std::move(items)});
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87:
      push_tuple(instruction - 0x84u);
      return true;
    case 'a':
      add_to(Kind::list, {pop()});
      return true;
    case 'e':
      add_to(Kind::list, pop_to_mark());
      return true;
    case 's': {
      const Id value = pop(), key = pop();
      add_to(Kind::mapping, {key, value});
      return true;
    }
    case 'u':
      add_to(Kind::mapping, pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_object(unsigned char instruction) {
  switch (instruction) {
    case 'c':
      push_global();
      return true;
    case 'R':
      call();
      return true;
    case 0x81:
      construct();
      return true;
    case 'b':
      set_state();
      return true;
    case 'Q':
      load_storage();
      return true;
    default:
      return false;
  }
}

PickleMachine::Id PickleMachine::run() {
  if (number(1) != 0x80) damaged();
  if (const std::uint64_t protocol = number(1); protocol != 2)
    fail("the pickle in {} has protocol {}; only 2, which torch.save uses, is read", what_,
         protocol);
  for (;;) {
    const auto instruction = static_cast<unsigned char>(number(1));
    if (instruction == '.') return pop();
    if (!step_simple(instruction) && !step_container(instruction) && !step_object(instruction))
      fail("the pickle in {} has an instruction (0x{:02x}) that no tensors need", what_,
           static_cast<unsigned>(instruction));
  }
}

}  // namespace vfm::io
