// Folders and the files in them, on a disk or in a bucket (io/remote/address.h).
//
// In a bucket a folder is a prefix. It exists if an object is below it. Every error names the path.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vfm::io {

struct FolderEntry {
  std::string name;  ///< Below the folder.
  bool folder = false;
  std::uint64_t bytes = 0;  ///< 0 for a folder.
};

/// Return whether a regular file or an object, or a folder, of this path exists. Symbolic links are
/// followed. Throw Error if a server does not tell.
bool is_file(const std::string& path);
bool is_folder(const std::string& path);
/// Returns whether a file or a folder of this path exists.
bool path_exists(const std::string& path);
/// Returns the size of a file in bytes, or nullopt if there is none.
std::optional<std::uint64_t> size_of(const std::string& path);
/// Returns the entries of a folder in order of bytes of their names. Returns an empty list if there
/// is no such folder. Throws Error if it cannot be read.
std::vector<FolderEntry> entries(const std::string& folder);
/// Returns the files below a folder, of all depths, with names such as "a/b.tar", in order of
/// bytes. Does not go into folders that are symbolic links.
std::vector<FolderEntry> files_below(const std::string& folder);
/// Removes a file. Returns whether there was one. Throws Error.
bool remove_file(const std::string& path);
/// Removes a folder with all that is in it. No error if there is none. Throws Error.
void remove_folder(const std::string& path);
/// Removes a folder if nothing is in it. Nothing in a bucket.
void remove_if_empty(const std::string& folder) noexcept;
/// Gives a file or folder another name, over what has that name. In a bucket the objects are copied
/// by the server and then removed, so what reads them must look at a file that is written last.
void rename_path(const std::string& from, const std::string& to);
/// Returns a name that is equal for equal files or folders: a canonical path, or the address.
std::string canonical_path(const std::string& path);
/// Return a local folder for files of a folder: the folder itself, or for an address a folder of
/// this user that is named by the hash of the address. This call makes the latter. For growing
/// files (io/growing_file.h), it is in VFM_STATE ($XDG_STATE_HOME/vfm, ~/.local/state/vfm). For
/// temporary files, which may be large, it is in TMPDIR.
std::string local_folder_of(const std::string& folder);
std::string scratch_folder_of(const std::string& folder);
/// Ends uploads that killed programs left below a folder of a bucket, and not those of living
/// programs. Does so once a process for each folder and those below it. Nothing on a disk. Throws
/// Stopped, and Error{usage} if there are no credentials. Another Error is logged, because a user
/// may have no right to list uploads.
void end_left_uploads(const std::string& folder);

}  // namespace vfm::io
