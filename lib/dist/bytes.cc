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

std::vector<std::string> all_gather_bytes(Group& group, const std::string& bytes) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::int64_t own = static_cast<std::int64_t>(bytes.size()), sum = 0;
  std::vector<std::int64_t> counts(ranks);
  group.all_gather(lend_number(own), lend(std::as_writable_bytes(std::span(counts)))).wait();
  for (const std::int64_t count : counts)
    sum += count;
  std::string copy = bytes, all(static_cast<std::size_t>(sum), '\0');
  if (sum > 0) group.all_gather(lend_text(copy), lend_text(all), counts).wait();
  std::vector<std::string> result;
  std::size_t at = 0;
  for (const std::int64_t count : counts) {
    result.push_back(all.substr(at, static_cast<std::size_t>(count)));
    at += static_cast<std::size_t>(count);
  }
  return result;
}

}  // namespace vfm::dist
