// Keeps directories that are expensive to make and cheap to read. They are entries of a folder that all
// processes of a user share. The name of an entry is the hash of its key, a text with all that it is made
// from. One process makes an entry while the others wait. A kill leaves no half-made entry. The folder has
//   HASH/            an entry: its files, `key`, and `manifest` with the hash of every file
//   HASH.lock        held with flock by the process that makes the entry, and so never stale
//   HASH.tmp-XXXXXX  an entry that is being made; the next maker of an entry removes leftovers of kills
//   HASH.failed      why the last attempt failed, for processes that waited for it or start soon after it
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace xccl {

struct CacheRequest {
  std::string folder;  // created if missing
  std::string key;
  // Writes the entry's files into a new directory. It may be killed at any time.
  std::function<Status(const std::string& directory)> make;
  std::function<void()> on_wait = {};  // called once, when another process has been awaited for a second
  double wait_s = 60;                  // longest wait for other processes, in seconds
};

// Returns the directory of a key's entry, whether it is there or not.
std::string CachePathOf(const std::string& folder, const std::string& key);

// Returns the directory of the entry if it is there and its files are as they were written. Changes nothing.
std::optional<std::string> FindInCache(const std::string& folder, const std::string& key);

// Returns the directory of the entry. An entry that is missing or damaged is made and then renamed to its
// place. An attempt that failed during the call, or up to ten seconds before it, is not repeated, so that all
// ranks of a job fail alike; its message comes back as kInvalidInput. Errors: also those of `make`;
// kInvalidInput if the folder cannot be written; kLimit after wait_s.
StatusOr<std::string> FindOrMake(const CacheRequest& request);

// Returns the error that FindOrMake would meet before it makes a missing entry: a folder that cannot be
// written, or an attempt that failed up to ten seconds ago. Creates the folder and HASH.lock. Ranks of a job
// call it before they make an entry together, so that an error of one rank ends all.
Status CheckCanMake(const std::string& folder, const std::string& key);

}  // namespace xccl
