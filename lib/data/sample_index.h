// What is known of all samples of a set without reading any: their sizes, and where they are.
//
// Of a set of any size: what is asked of a sample is found by its number, what is asked of all of
// them is kept (forms(), fingerprint()). A list in memory (list_index) for few samples, and for
// made-up ones; for many a file that is mapped (data/index_file.h).
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

/// Sizes that samples have: of all that have the same there is one form. The bytes are those of the
/// index file.
struct Form {
  std::int32_t frames = 1, height = 0, width = 0, unused = 0;
  double fps = 0;
  std::uint64_t count = 0;  ///< samples of this form
  std::uint64_t first = 0;  ///< the number of the first of them
};

/// Where samples lie.
struct SamplePlace {
  std::uint32_t shard = 0;  ///< number of the name
  std::int64_t row = 0;
};

class SampleIndex {
 public:
  virtual ~SampleIndex() = default;

  virtual std::size_t size() const = 0;
  /// By the first sample that has each: so the first form of which something is true has the first
  /// sample of which it is.
  virtual std::span<const Form> forms() const = 0;
  /// Of sample `i` the place in forms(). Of the following members `i` is below size(), too.
  virtual std::uint32_t form_of(std::size_t i) const = 0;
  virtual int text_tokens(std::size_t i) const = 0;
  virtual SamplePlace place(std::size_t i) const = 0;
  virtual std::string_view shard_name(std::uint32_t shard) const = 0;
  virtual std::uint32_t shards() const = 0;
  /// entry_check() of sample `i`, and whether its hash is in it.
  virtual std::uint64_t check(std::size_t i) const = 0;
  virtual bool has_hash(std::size_t i) const = 0;
  /// All of sample `i`. May read a file. Throws Error.
  virtual Entry entry(std::size_t i) const = 0;
  /// The keys of all samples, for sets of which they fit into memory. Throws Error.
  virtual std::vector<std::string> keys() const = 0;
  /// Names the data: a hash of `info`, which is what is known of them together, and of each
  /// sample's key and sizes.
  virtual std::string fingerprint(const Json& info) const = 0;
  /// Says which samples will be asked for next, in no order, so that they are read together.
  virtual void expect(std::span<const std::uint64_t> /*samples*/) const {}

  /// What entry() says but for key and hash, from memory.
  Entry sizes(std::size_t i) const;
  /// For messages: the key, or, where it cannot be read, shard and row.
  std::string name(std::size_t i) const;
};

/// Of entries in memory.
std::unique_ptr<SampleIndex> list_index(std::vector<Entry> entries);

/// What a sample must be: a hash of its key and, where that is known, of its own.
std::uint64_t entry_check(std::string_view key, std::string_view xxh3);

/// Finds out the forms of samples that come in order.
class FormTable {
 public:
  /// The form of the next sample.
  std::uint32_t add(const Entry& entry);
  const std::vector<Form>& forms() const { return forms_; }
  std::uint64_t samples() const { return samples_; }

 private:
  std::map<std::tuple<int, int, int, double>, std::uint32_t> numbers_;
  std::vector<Form> forms_;
  std::uint64_t samples_ = 0;
};

/// Makes SampleIndex::fingerprint() of samples that come in order.
class Fingerprint {
 public:
  explicit Fingerprint(const Json& info);
  /// `form` is that of FormTable.
  void add(const Entry& entry, std::uint32_t form);
  std::string hex128() const { return hasher_.hex128(); }

 private:
  Hasher hasher_;
  std::vector<std::string> sizes_;  // of each form, as they are hashed
  std::string line_;
};

}  // namespace vfm::data
