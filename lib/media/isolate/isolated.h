// Decodes (with --isolate) in separate processes without network, without files and with little
// memory, so that an attack on a decoder affects only the file that is decoded.
//
// A helper process without threads or data is forked before the program does anything. For each
// Decoder, AudioReader, SoundMeter and SoundSamples the helper forks a child. The parent opens the
// file and passes its descriptor. The child maps it, gives up all rights that it does not need
// (confine.h), and only then reads the bytes. If the helper is killed, its children end, too, and
// their files get an Error. The next file starts the program again as a new helper, up to eight
// times; then the run ends (base/run_end.h).
//
// Parent and child share memory for pictures, which only the child writes. The child decodes into
// it (picture_memory.h). Pictures that do not fit, or that a codec or conversion put elsewhere, are
// copied there (only the rows of cell_rows.h if no others are wanted). The child works only while
// its parent waits, so it uses its parent's slot; it decodes a few pictures at a time. Its pictures
// equal those of decoding in the parent; if it fails, the parent has the earlier pictures. A
// well-behaved child leaves a picture unchanged until the parent is done with it.
//
// The parent trusts nothing. It copies the facts of a picture, then checks that the picture lies
// within the memory. It also copies pictures before use, unless FrameUse says that changes at any
// time are harmless. So a hostile child can give wrong pictures, but not harm the parent. Only
// files and bytes in memory can be decoded; a URL is an Error, since a child has no network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::media {

/// With this as argv[1], and the number of a descriptor as argv[2], a program is the helper. Then
/// it must start no thread, do nothing but `return serve_isolated(number);`, and leave a terminal's
/// signals to its parent, which ends its children.
constexpr const char* kServeIsolated = "--serve-isolated";

/// Serves as the helper until the other end of `channel` is closed. Returns an exit status.
int serve_isolated(int channel);

/// Forks the helper if `wanted` (begin_isolation() will be called). Call it while the program has
/// one thread. In the helper it returns the number for serve_isolated(), in the program -1. If it
/// fails, begin_isolation() starts a helper, which takes as long as a start of the program.
int fork_isolation(bool wanted);

/// With input_limits().isolate: takes or starts the helper, which tests once whether a process can
/// be confined. Throws Error{usage} if vfm was built without libseccomp, or the system refuses.
void begin_isolation();

}  // namespace vfm::media
