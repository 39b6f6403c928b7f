// A folder of directories that are expensive to make and cheap to read, shared by all processes of a user. An
// entry is named by the hash of its key, a text that has everything that the entry is made from. One process
// makes an entry while the others wait; a kill at any moment leaves no half-made entry. The folder has
//   HASH/            an entry: its files, `key`, and `manifest` with the hash of every file
//   HASH.lock        held with flock by the process that makes the entry, and so never stale
//   HASH.tmp-XXXXXX  an entry that is being made; whoever makes the next entry removes those without a maker
//   HASH.failed      why the last attempt failed, for the processes that waited for it
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace xccl {

struct CacheRequest {
  std::string folder;  // made where it is missing
  std::string key;
  // Writes the entry's files into a new directory. It may be killed at any time.
  std::function<Status(const std::string& directory)> make;
  std::function<void()> on_wait = {};  // called once, when another process has been awaited for a second
  double wait_s = 60;                  // to wait for other processes at most
};

// The directory of a key's entry, whether it is there or not.
std::string CachePathOf(const std::string& folder, const std::string& key);

// The directory of the entry if it is there and all its files are as they were written. Changes nothing.
std::optional<std::string> FindInCache(const std::string& folder, const std::string& key);

// As FindInCache; an entry that is missing or damaged is made and then renamed in place. An attempt of
// another process that failed during the call, or up to ten seconds before it, is not repeated: all ranks of
// a job fail alike. Errors: those of `make`; kInvalidInput if the folder cannot be written; kLimit after
// wait_s.
StatusOr<std::string> FindOrMake(const CacheRequest& request);

// The error that FindOrMake meets before it makes anything: a folder that cannot be written, or an attempt
// that failed less than ten seconds ago. For processes that would begin what this one then leaves out.
Status CheckCanMake(const std::string& folder, const std::string& key);

}  // namespace xccl
