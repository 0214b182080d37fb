// SPDX-License-Identifier: Apache-2.0
#include "shard/receipt.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/log.h"
#include "base/work_limit.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"

namespace vfm::shard {

Receipt::Receipt(std::string path, std::string member, Json made_from)
    : path_(std::move(path)), member_(std::move(member)), made_from_(std::move(made_from)) {}

Json Receipt::find(const Check& check) const {
  if (!io::file_exists(path_)) return nullptr;
  try {
    Json receipt = parse_json(io::read_file(path_), path_);
    if (receipt.at(member_) != made_from_) return nullptr;
    check(receipt);
    return receipt;
  } catch (const std::exception& error) {
    log_info("'{}' is remade: {}", path_, error.what());
    return nullptr;
  }
}

Json Receipt::find_or_hold(const Check& check, bool redo) {
  if (!redo)
    if (Json receipt = find(check); !receipt.is_null()) return receipt;
  io::make_directories(io::dir_name(path_));
  held_.emplace(io::AtomicFile::await(path_));
  Json receipt = redo ? Json() : find(check);
  if (!receipt.is_null()) held_.reset();
  return receipt;
}

Json Receipt::hold_and_find(const Check& check) {
  find_or_hold(check, true);
  return find(check);
}

void Receipt::write(std::string_view json) {
  if (!held_) held_.emplace(io::AtomicFile::await(path_));
  held_->write(json);
  held_->commit();
  held_.reset();
}

std::string receipt_path(const std::string& tar) {
  const std::string plain = plain_tar_path(tar);
  return plain.substr(0, plain.size() - std::string_view(".tar").size()) + ".json";
}

std::vector<std::string> shard_files(const std::string& tar) {
  return {receipt_path(tar), tar, energon_index_path(tar), dali_index_path(tar)};
}

void check_written(const std::string& tar, const Json& record, const WriterOptions& indexes) {
  const auto said = static_cast<std::uint64_t>(need_integer(record, "bytes", "the record"));
  const std::string files[] = {tar, energon_index_path(tar), dali_index_path(tar)};
  const bool wanted[] = {true, indexes.energon_index, indexes.dali_index};
  std::optional<std::uint64_t> sizes[3];
  io::for_each_at_once(3, io::requests_at_once(tar), [&](std::size_t i) {
    if (wanted[i]) sizes[i] = io::size_of(files[i]);
  });
  if (!sizes[0]) fail_errno(ENOENT, "cannot open '{}'", tar);
  if (*sizes[0] != said) fail("'{}' has {} bytes, its record says {}", tar, *sizes[0], said);
  for (int i = 1; i < 3; ++i)
    if (wanted[i] && !sizes[i]) fail("'{}' is missing", files[i]);
  if (indexes.energon_index) {
    const std::uint64_t bytes = *sizes[1];
    const std::int64_t samples = need_integer(record, "samples", "the record");
    if (bytes != (static_cast<std::uint64_t>(samples) + 1) * sizeof(std::uint64_t))
      fail("'{}' has {} bytes: it is not an index of {} samples", files[1], bytes, samples);
  }
  if (indexes.dali_index && *sizes[2] == 0) fail("'{}' is empty", files[2]);
}

void check_limit(const Json& receipt, const ReadLimits& limits) {
  const auto limit = get_integer(receipt, "max_member");
  if (limit && *limit != static_cast<std::int64_t>(limits.member))
    fail("samples were refused under another --max-member");
}

namespace {

Json limits_now() {
  const InputLimits& limits = input_limits();
  return {{"timeout", limits.timeout},
          {"max-work", work_limit().seconds},
          {"isolate", limits.isolate},
          {"isolate-memory", limits.isolate_memory}};
}

}  // namespace

Json limits_of_errors(const std::vector<io::Fault>& errors) {
  const bool any = std::any_of(errors.begin(), errors.end(),
                               [](const io::Fault& error) { return may_pass(error.cause); });
  return any ? limits_now() : Json();
}

void check_error_limits(const Json& receipt) {
  const auto then = receipt.find("error_limits");
  if (then != receipt.end() && !then->is_null() && *then != limits_now())
    fail("samples had errors under another --timeout, --max-work or --isolate");
}

}  // namespace vfm::shard
