// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

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
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < index.size(); ++i)
    tokens.push_back(of_form[index.form_of(i)]);
  const std::vector<data::Pack> packs =
      data::epoch_packs(tokens, options.packs, options.seed, options.epoch);
  Lines out;
  out.add("# pack\tkey\tshard\toffset\ttokens\n");
  for (std::size_t p = 0; p < packs.size(); ++p)
    for (const std::size_t i : packs[p]) {
      const data::Entry entry = index.entry(i);
      out.add(fmt::format("{}\t{}\t{}/{}\t{}\t{}\n", p, entry.key, options.split, entry.shard,
                          set.offset(i), tokens[i]));
    }
  const data::PackStats stats = data::pack_stats(tokens, packs, options.packs);
  out.add(fmt::format("# fill {:.4f}\tsquare_spread {:.4f}\tpacks {}\tsamples {}\n", stats.fill,
                      stats.square_spread, packs.size(), tokens.size()));
  out.flush();
}

}  // namespace vfm::pack
