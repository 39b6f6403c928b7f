// The bytes and open files that processes of a communicator give each other, and the packing of several
// things into one. All of it travels between processes of one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/host/owned_file.h"

namespace xccl {

// One party's data for all: bytes, and files in order.
struct Parcel {
  std::string bytes;
  std::vector<OwnedFile> files;
};

// Appends values to a parcel; ParcelReader then reads them in the same order.
void AppendNumber(Parcel& to, uint64_t number);
void AppendText(Parcel& to, const std::string& text);
void AppendParcel(Parcel& to, Parcel one);

// Takes a parcel apart. Values behind an end that comes too early are 0 or empty.
class ParcelReader {
 public:
  explicit ParcelReader(Parcel parcel) : parcel_(std::move(parcel)) {}
  uint64_t Number();
  std::string Text();
  Parcel One();
  bool AtEnd() const { return at_ == parcel_.bytes.size(); }
  bool broken() const { return broken_; }  // something was asked for behind the end

 private:
  Parcel parcel_;
  size_t at_ = 0, file_ = 0;
  bool broken_ = false;
};

}  // namespace xccl
