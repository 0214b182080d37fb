// The processor time that vfm's client of object stores takes. Run by bucket_client.sh.
//
//   bucket_client write|read|stream ADDRESS MIB ROUNDS
//
// Writes an object of MIB MiB from memory, reads it into memory by ranges at once, or reads it in
// order with read-ahead, ROUNDS times. Prints the processor seconds and the elapsed seconds of all
// rounds after a first one, which is not counted.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "io/remote/remote_file.h"
#include "io/remote/upload.h"

using namespace vfm;

namespace {

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void act(const std::string& what, const std::string& address, std::vector<char>& bytes) {
  if (what == "write") {
    io::ObjectUpload upload(address);
    upload.write(bytes.data(), bytes.size());
    upload.commit();
  } else if (what == "read") {
    io::RemoteFile::open(address)->pread_exact(bytes.data(), bytes.size(), 0);
  } else {
    io::RemoteReader reader(io::RemoteFile::open(address));
    while (reader.read_some(bytes.data(), std::size_t{1} << 20) > 0)
      continue;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string what = argv[1], address = argv[2];
  std::vector<char> bytes(std::strtoull(argv[3], nullptr, 10) << 20);
  std::uint32_t state = 1;
  for (char& c : bytes)
    c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  try {
    act(what, address, bytes);
    const double before = processor_seconds();
    const Stopwatch watch;
    for (int round = 0; round < std::atoi(argv[4]); ++round)
      act(what, address, bytes);
    std::printf("%.4f %.4f\n", processor_seconds() - before, watch.seconds());
  } catch (const Error& error) {
    std::fprintf(stderr, "bucket_client: %s\n", error.what());
    return 1;
  }
}
