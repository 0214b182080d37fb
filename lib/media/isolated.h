// Decoding in processes of their own, which have no network, no files and little memory: what a
// hostile file does to a decoder there ends that file alone.
//
// The program starts itself once more, as a helper that has no threads and has read nothing. For
// each Decoder, AudioReader, SoundMeter and SoundSamples the helper forks a child. The parent opens
// the file that was named, and hands over its descriptor; the child maps it, gives up all it does
// not need (confine.h), and only then looks at the bytes. Pictures come back in memory that both
// map, one at a time and when they are asked for: so a child works on its parent's slot, and what
// it decodes is what is decoded without it. The parent copies them before it uses them, and
// believes nothing: sizes and layouts are checked, and where planes lie both sides compute.
//
// It takes what the parent may read as it is: a picture that is wrong, not a parent that fails.
// Files and bytes in memory alone; an address is an Error (a child has no network).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::media {

/// The argument by which a program is the helper: argv[1], followed by the number of a descriptor.
/// The program then does nothing but `return serve_isolated(number);`, starts no thread before, and
/// leaves signals of a terminal to its parent, which ends its children.
constexpr const char* kServeIsolated = "--serve-isolated";

/// Serves until the other end of `channel` is closed. Returns an exit status.
int serve_isolated(int channel);

/// With input_limits().isolate: starts the helper. Throws Error{usage} where this vfm was built
/// without what confines a child (libseccomp), or this system refuses it.
void begin_isolation();

}  // namespace vfm::media
