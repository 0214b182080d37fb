// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/stop.h"
#include "data/order.h"
#include "io/file.h"
#include "pack/pack.h"

namespace vfm::pack {
namespace {

/// Standard output, in large writes.
class Lines {
 public:
  Lines() : file_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "standard output") {
    if (!file_) fail_output(errno, "cannot write to standard output");
  }
  void add(const std::string& line) {
    text_ += line;
    if (text_.size() > 1 << 16) flush();
  }
  void flush() {
    check_stop();
    file_.write_all(text_.data(), text_.size());
    text_.clear();
  }

 private:
  io::File file_;
  std::string text_;
};

}  // namespace

void print_plan(const PlanOptions& options) {
  const data::LatentSet set(options.directory, options.split);
  const data::SampleIndex& index = set.index();
  std::vector<std::int64_t> of_form;
  for (const data::Form& form : index.forms()) {
    const std::int64_t length = data::token_count(index.sizes(form.first), options.patch);
    of_form.push_back(length);
    if (length < 1)
      fail_usage("sample '{}' is smaller than one token: give a smaller --patch",
                 index.name(form.first));
    if (length > options.packs.tokens)
      fail_usage("sample '{}' has {} tokens, more than a pack's {}: give more --tokens",
                 index.name(form.first), length, options.packs.tokens);
  }
  const auto lengths = [&](std::span<const std::uint64_t> numbers) {
    std::vector<std::int64_t> tokens;
    for (const std::uint64_t i : numbers)
      tokens.push_back(of_form[index.form_of(i)]);
    return tokens;
  };
  const auto block_lengths = [&](std::span<const std::uint64_t> numbers) {
    index.expect(numbers);
    return lengths(numbers);
  };
  Lines out;
  out.add("# pack\tkey\tshard\toffset\ttokens\n");
  data::PackTally tally(options.packs.tokens);
  const std::uint64_t samples = index.size();
  for (std::uint64_t block = 0; block < data::block_count(samples, options.packs.packing); ++block)
    for (const data::Pack& pack : data::block_packs(samples, block_lengths, options.packs,
                                                    options.seed, options.epoch, block)) {
      const std::vector<std::int64_t> tokens = lengths(pack);
      for (std::size_t k = 0; k < pack.size(); ++k) {
        const data::Entry entry = index.entry(pack[k]);
        out.add(fmt::format("{}\t{}\t{}/{}\t{}\t{}\n", tally.packs(), entry.key, options.split,
                            entry.shard, set.offset(pack[k]), tokens[k]));
      }
      tally.add(tokens);
    }
  const data::PackStats stats = tally.stats();
  out.add(fmt::format("# fill {:.4f}\tsquare_spread {:.4f}\tpacks {}\tsamples {}\n", stats.fill,
                      stats.square_spread, tally.packs(), samples));
  out.flush();
}

}  // namespace vfm::pack
