// What is known of all samples of a set without reading any: their sizes, and where they are.
//
// Works for a set of any size: questions about one sample are answered by its number, and answers
// about all of them are kept (forms(), fingerprint()). A set of few samples, or of made-up ones, is
// a list in memory (list_index); a large set is a mapped file (data/index_file.h).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/json_fwd.h"
#include "data/entry.h"

namespace vfm::data {

/// Sizes that samples have; samples of equal sizes have the same form. The memory layout is that of
/// the index file.
struct Form {
  std::int32_t frames = 1, height = 0, width = 0, unused = 0;
  double fps = 0;
  std::uint64_t count = 0;  ///< samples of this form
  std::uint64_t first = 0;  ///< number of the first sample of this form
};

/// The place of a sample on disk.
struct SamplePlace {
  std::uint32_t shard = 0;  ///< number of the shard
  std::int64_t row = 0;
};

class SampleIndex {
 public:
  virtual ~SampleIndex() = default;

  virtual std::size_t size() const = 0;
  /// The forms, ordered by the first sample that has each. So the first form with some property
  /// leads to the first sample with it.
  virtual std::span<const Form> forms() const = 0;
  /// The place of sample `i` in forms(). Here and in the following members `i` is below size().
  virtual std::uint32_t form_of(std::size_t i) const = 0;
  virtual int text_tokens(std::size_t i) const = 0;
  virtual SamplePlace place(std::size_t i) const = 0;
  virtual std::string_view shard_name(std::uint32_t shard) const = 0;
  virtual std::uint32_t shards() const = 0;
  /// entry_check() of sample `i`, and whether it includes the hash.
  virtual std::uint64_t check(std::size_t i) const = 0;
  virtual bool has_hash(std::size_t i) const = 0;
  /// The whole entry of sample `i`. May read a file. Throws Error.
  virtual Entry entry(std::size_t i) const = 0;
  /// The keys of all samples, for sets whose keys fit into memory. Throws Error.
  virtual std::vector<std::string> keys() const = 0;
  /// Identifies the data: a hash of `info`, which says what the samples have in common, and of each
  /// sample's key and sizes.
  virtual std::string fingerprint(const Json& info) const = 0;
  /// Says which samples will be asked for next, in any order, so that they are read together.
  virtual void expect(std::span<const std::uint64_t> /*samples*/) const {}

  /// The entry without key and hash, from memory.
  Entry sizes(std::size_t i) const;
  /// For messages: the key; or shard and row if the key cannot be read.
  std::string name(std::size_t i) const;
};

/// An index of these entries, in memory.
std::unique_ptr<SampleIndex> list_index(std::vector<Entry> entries);

/// A hash of a sample's key and of its own hash `xxh3`, which is "" if not known.
std::uint64_t entry_check(std::string_view key, std::string_view xxh3);

/// Finds the forms of samples that come in order.
class FormTable {
 public:
  /// Adds the next sample and returns the number of its form.
  std::uint32_t add(const Entry& entry);
  const std::vector<Form>& forms() const { return forms_; }
  std::uint64_t samples() const { return samples_; }

 private:
  std::map<std::tuple<int, int, int, double>, std::uint32_t> numbers_;
  std::vector<Form> forms_;
  std::uint64_t samples_ = 0;
};

/// Computes SampleIndex::fingerprint() of samples that come in order.
class Fingerprint {
 public:
  explicit Fingerprint(const Json& info);
  /// `form` is what FormTable::add() returned.
  void add(const Entry& entry, std::uint32_t form);
  std::string hex128() const { return hasher_.hex128(); }

 private:
  Hasher hasher_;
  std::vector<std::string> sizes_;  // hashed text of each form
  std::string line_;
};

}  // namespace vfm::data
