#include "runtime/host/parcel.h"

#include <algorithm>
#include <cstring>

namespace xccl {

void AppendNumber(Parcel& to, uint64_t number) {
  to.bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void AppendText(Parcel& to, const std::string& text) {
  AppendNumber(to, text.size());
  to.bytes += text;
}

void AppendParcel(Parcel& to, Parcel one) {
  AppendText(to, one.bytes);
  AppendNumber(to, one.files.size());
  std::ranges::move(one.files, std::back_inserter(to.files));
}

uint64_t ParcelReader::Number() {
  uint64_t number = 0;
  if (parcel_.bytes.size() - at_ < sizeof number) {
    at_ = parcel_.bytes.size();
    broken_ = true;
    return 0;
  }
  std::memcpy(&number, parcel_.bytes.data() + at_, sizeof number);
  at_ += sizeof number;
  return number;
}

std::string ParcelReader::Text() {
  const uint64_t length = Number(), left = parcel_.bytes.size() - at_;
  broken_ = broken_ || length > left;
  std::string text = parcel_.bytes.substr(at_, std::min(length, left));
  at_ += text.size();
  return text;
}

Parcel ParcelReader::One() {
  Parcel one{Text(), {}};
  uint64_t files = Number();
  for (; files > 0 && file_ < parcel_.files.size(); --files)
    one.files.push_back(std::move(parcel_.files[file_++]));
  broken_ = broken_ || files > 0;
  return one;
}

}  // namespace xccl
