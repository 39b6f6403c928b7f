#include "runtime/bootstrap/wire.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace xccl::bootstrap {
namespace {

struct Head {
  uint32_t magic = kMagic;
  uint16_t protocol = kProtocol, type = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(Head) == 16);

}  // namespace

std::string Encode(MessageType type, std::string_view body) {
  const Head head{kMagic, kProtocol, static_cast<uint16_t>(type), body.size()};
  std::string message(sizeof head, '\0');
  std::memcpy(message.data(), &head, sizeof head);
  message.append(body);
  return message;
}

StatusOr<std::optional<Message>> MessageReader::Next(uint64_t most) {
  const std::string_view left = std::string_view(bytes_).substr(at_);
  if (left.size() < sizeof(Head)) return std::optional<Message>();
  Head head;
  std::memcpy(&head, left.data(), sizeof head);
  if (head.magic != kMagic) return InvalidInput("what came is no message of XCCL");
  if (head.bytes > most)
    return InvalidInput(fmt::format("a message of {} bytes; expected at most {}", head.bytes, most));
  if (left.size() - sizeof head < head.bytes) return std::optional<Message>();
  Message message{static_cast<MessageType>(head.type), head.protocol,
                  std::string(left.substr(sizeof head, head.bytes))};
  at_ += sizeof head + head.bytes;
  if (at_ == bytes_.size() || at_ > (size_t{1} << 16)) {
    bytes_.erase(0, at_);
    at_ = 0;
  }
  return std::optional<Message>(std::move(message));
}

std::string PackStatus(const Status& status) {
  return Packer().Put(static_cast<uint16_t>(status.code())).PutText(status.message()).Take();
}

Status UnpackStatus(std::string_view body, size_t most) {
  Unpacker reader(body);
  const auto code = reader.Get<uint16_t>();
  const std::string_view text = reader.GetText();
  if (!reader.ok() || code == 0 || code > static_cast<uint16_t>(StatusCode::kPeerEnded))
    return InvalidInput("a notice of failure that cannot be read");
  return Status(static_cast<StatusCode>(code), Cleaned(text, most));
}

}  // namespace xccl::bootstrap
