// Checks the names in options and arguments. They must be folders and files of this machine; videos
// may have an address.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace vfm::cli {

/// Throws Error{usage} for a file name that is not UTF-8, since records need UTF-8, and for an
/// address (base/address.h) where only files are allowed. Call it after the command line is parsed.
/// Opens nothing.
///
/// The word that help shows for a value, or an argument's name, tells the value's kind. TEXT,
/// PROMPT, EXPRESSION, NAME and URL name no file; of TEXT|@FILE only the part after @ names a file;
/// VIDEO may be an address; all other words name files.
void check_named_files(const CLI::App& app);

}  // namespace vfm::cli
