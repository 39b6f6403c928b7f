// The messages on the sockets of a group: each has a fixed head and a body. The head is the same in every
// version of the protocol, so that versions can refuse each other by name.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace xccl::bootstrap {

inline constexpr uint32_t kMagic = 0x4c434358;  // "XCCL"
inline constexpr uint16_t kProtocol = 2;

// A connection begins with a knock and a challenge, or, between partners, with what the rendezvous told both.
// All that follows is closed by their seal (proof.h), but a refusal of who does not know the secret.
enum class MessageType : uint16_t {
  kHello = 1,        // to the rendezvous: who I am
  kAccepted,         // from it: who I am, wait
  kRefused,          // from it: a status, the last message
  kWelcome,          // from it: all have come, these are your partners
  kPartner,          // to a partner's door: which rank I am
  kPartnerAccepted,  // from it
  kConnected,        // to the rendezvous: all my partners are reached
  kAllConnected,     // from it: so it is for all ranks
  kHeartbeat,        // between partners: progress, the call that I am in, whom I wait for
  kData,             // call, round, blobs
  kLeft,             // this rank has left in good order
  kFail,             // a status: the group has failed; to the rendezvous, a hello and why it does not come
  kNote,             // a key and a text, for all
  kKnock,            // to the rendezvous: a random challenge, in every version of the protocol
  kChallenge,        // from it: its own
};

struct Message {
  MessageType type = MessageType::kHello;
  uint16_t protocol = kProtocol;
  std::string body;
};

std::string Encode(MessageType type, std::string_view body);

// Takes bytes as they come and gives messages. Memory: what has come.
class MessageReader {
 public:
  void Add(std::string_view bytes) { bytes_.append(bytes); }
  // The next message, if it is complete. Errors: kInvalidInput where the bytes are none of XCCL's, or the
  // body has more than `most` bytes.
  StatusOr<std::optional<Message>> Next(uint64_t most);

 private:
  std::string bytes_;
  size_t at_ = 0;  // bytes before are used up
};

// Values one after the other.
class Packer {
 public:
  template <typename T>
  Packer& Put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    std::array<char, sizeof value> raw;
    std::memcpy(raw.data(), &value, sizeof value);
    bytes_.append(raw.data(), raw.size());
    return *this;
  }
  Packer& PutText(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads them back. Past the end it gives zeros and is not ok().
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  T Get() {
    static_assert(std::is_arithmetic_v<T>);
    T value = 0;
    if (!Has(sizeof value)) return value;
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view GetText() {
    const auto size = Get<uint32_t>();
    if (!Has(size)) return {};
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  bool AtEnd() const { return left_.empty(); }

 private:
  bool Has(size_t bytes) { return ok_ = ok_ && left_.size() >= bytes; }
  std::string_view left_;
  bool ok_ = true;
};

// The longest text that a peer may send as a reason, and the longest from somebody who has not proved that it
// knows the secret: a paragraph, which is more than this program's own refusals have.
inline constexpr size_t kMostOfAReason = 4096, kMostOfAStrangersReason = 1024;

std::string PackStatus(const Status& status);
// The text is Cleaned, and has at most so many bytes. A body that is no status gives kInvalidInput.
Status UnpackStatus(std::string_view body, size_t most = kMostOfAReason);

}  // namespace xccl::bootstrap
