// SPDX-License-Identifier: Apache-2.0
#include "dist/bytes.h"

#include <cstdint>
#include <span>

namespace vfm::dist {
namespace {

Tensor lend_number(std::int64_t& number) {
  return lend(std::as_writable_bytes(std::span(&number, 1)));
}

Tensor lend_text(std::string& bytes) {
  return lend(std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace

void send_bytes(Group& group, int to, const std::string& bytes) {
  auto count = static_cast<std::int64_t>(bytes.size());
  group.send(to, lend_number(count)).wait();
  std::string copy = bytes;
  if (count > 0) group.send(to, lend_text(copy)).wait();
}

std::string receive_bytes(Group& group, int from) {
  std::int64_t count = 0;
  group.receive(from, lend_number(count)).wait();
  std::string bytes(static_cast<std::size_t>(count), '\0');
  if (count > 0) group.receive(from, lend_text(bytes)).wait();
  return bytes;
}

std::string broadcast_bytes(Group& group, std::string bytes, int root) {
  auto count = static_cast<std::int64_t>(bytes.size());
  group.broadcast(lend_number(count), root).wait();
  bytes.resize(static_cast<std::size_t>(count));
  if (count > 0) group.broadcast(lend_text(bytes), root).wait();
  return bytes;
}

}  // namespace vfm::dist
