#include "topologies/fabric/ibnetdiscover.h"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "topologies/fabric/ib_ports.h"
#include "topologies/fabric/ib_rates.h"
#include "topologies/fabric/line_scanner.h"

namespace xccl {
namespace {

// "Switch" opens a record of the full form, "SW" a line of the list of ports.
struct KindName {
  std::string_view text;
  IbKind kind;
};
constexpr KindName kRecords[] = {{"Switch", IbKind::kSwitch},
                                 {"Ca", IbKind::kAdapter},
                                 {"Hca", IbKind::kAdapter},  // ibsim's own files
                                 {"Rt", IbKind::kRouter}};
constexpr KindName kPorts[] = {{"SW", IbKind::kSwitch}, {"CA", IbKind::kAdapter}, {"RT", IbKind::kRouter}};

// Takes a kind's name and the blank behind it.
template <size_t kCount>
std::optional<IbKind> TakeKind(const KindName (&names)[kCount], LineScanner& scanner) {
  for (const KindName& name : names) {
    LineScanner after = scanner;
    if (!after.Take(name.text) || (!after.Take(" ") && !after.Take("\t"))) continue;
    scanner = after;
    scanner.SkipBlanks();
    return name.kind;
  }
  return std::nullopt;
}

// One end of a line of the list of ports: "SW  1719 10 0x7cfe900300".
struct ListedPort {
  IbKind kind = IbKind::kUnknown;
  int32_t port = 0;
  uint64_t guid = 0;
};

std::optional<ListedPort> TakeListedPort(LineScanner& scanner) {
  scanner.SkipBlanks();
  const std::optional<IbKind> kind = TakeKind(kPorts, scanner);
  if (!kind || !scanner.Number()) return std::nullopt;  // the number is a LID
  scanner.SkipBlanks();
  const std::optional<int32_t> port = scanner.Number();
  scanner.SkipBlanks();
  if (!port || !scanner.rest().starts_with("0x")) return std::nullopt;
  const std::optional<uint64_t> guid = scanner.Hex();
  if (!guid) return std::nullopt;
  return ListedPort{*kind, *port, *guid};
}

// Takes "[12]" and an "[ext 3]" behind it.
std::optional<int32_t> TakePort(LineScanner& scanner) {
  if (!scanner.Take("[")) return std::nullopt;
  const std::optional<int32_t> port = scanner.Number();
  if (!port || !scanner.Take("]")) return std::nullopt;
  LineScanner after = scanner;
  if (after.Take("[ext ") && after.Number() && after.Take("]")) scanner = after;
  return port;
}

// Takes "(2c90300)", maybe behind blanks; 0: there is none.
uint64_t TakePortGuid(LineScanner& scanner) {
  LineScanner after = scanner;
  after.SkipBlanks();
  if (!after.Take("(")) return 0;
  const std::optional<uint64_t> guid = after.Hex();
  if (!guid || !after.Take(")")) return 0;
  scanner = after;
  return *guid;
}

// Takes "\"S-0002c9\"" without its quotes.
std::optional<std::string_view> TakeQuoted(LineScanner& scanner) {
  if (!scanner.Take("\"")) return std::nullopt;
  const size_t end = scanner.rest().find('"');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const std::string_view quoted = scanner.rest().substr(0, end);
  scanner.Take(quoted);
  scanner.Take("\"");
  return quoted;
}

IbRate RateOf(std::string_view word) {
  const size_t x = word.find('x');
  if (x == std::string_view::npos) return {};
  return {IbLanes(word.substr(0, x + 1)), IbSpeedOfName(word.substr(x + 1))};
}

// The part behind the "#" of a head or a port: a name in quotes, which may hold quotes itself, and the
// words after it, "lid 7 4xNDR".
struct Comment {
  std::string_view name;
  IbRate rate;
};

Comment ReadComment(std::string_view rest) {
  Comment comment;
  const size_t hash = rest.find('#');
  if (hash == std::string_view::npos) return comment;
  const size_t first = rest.find('"', hash);
  const size_t last = rest.rfind('"');
  std::string_view behind = rest.substr(hash + 1);
  if (first != std::string_view::npos && last > first) {
    comment.name = rest.substr(first + 1, last - first - 1);
    behind = rest.substr(last + 1);
  }
  for (const std::string_view word : WordsOf(behind))
    if (const IbRate rate = RateOf(word); rate != IbRate()) comment.rate = rate;
  return comment;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view file)
      : text_(WithoutByteOrderMark(text)), file_(file), ports_("ibnetdiscover", file) {}

  StatusOr<Fabric> Read() {
    while (!text_.empty()) {
      const size_t end = text_.find('\n');
      line_ = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      XCCL_RETURN_IF_ERROR(ReadLine());
    }
    return std::move(ports_).Build(/*infer_degraded=*/true);
  }

 private:
  Status Bad(const LineScanner& at, std::string_view message) const {
    return InvalidAt({file_, number_, static_cast<int>(at.at()) + 1}, message);
  }

  Status ReadLine() {
    LineScanner scanner(line_);
    scanner.SkipBlanks();
    if (scanner.AtEnd()) node_.reset();
    if (scanner.AtEnd() || scanner.Take("#")) return OkStatus();
    if (scanner.rest().starts_with('[')) return ReadPort(scanner);
    if (ReadProperty(scanner)) return OkStatus();
    if (LineScanner after = scanner; TakeKind(kRecords, after)) return ReadHead(scanner);
    if (LineScanner after = scanner; TakeKind(kPorts, after)) return ReadListed(scanner);
    for (const std::string_view heading : {"Chassis ", "Non-Chassis Nodes", "Hostname:"})
      if (scanner.Take(heading)) return OkStatus();
    node_.reset();
    ports_.Warn("other text", number_,
                fmt::format("'{}' is no line of ibnetdiscover; left out", Shortened(scanner.rest())));
    return OkStatus();
  }

  // "sysimgguid=0x2c90300\t\t# Chassis 1"
  bool ReadProperty(LineScanner scanner) {
    if (scanner.Take("vendid=")) {
      device_id_ = 0;
      system_guid_ = 0;
      node_.reset();
      return true;
    }
    if (scanner.Take("devid=")) {
      device_id_ = static_cast<int32_t>(scanner.Hex().value_or(0));
      return true;
    }
    if (scanner.Take("sysimgguid=")) {
      system_guid_ = scanner.Hex().value_or(0);
      return true;
    }
    return scanner.Take("switchguid=") || scanner.Take("caguid=") || scanner.Take("rtguid=");
  }

  // A node by its quoted name: "S-0002c903" has its kind and GUID; the files of ibsim have any other text.
  StatusOr<int32_t> TakeNode(LineScanner& scanner) {
    const LineScanner before = scanner;
    const std::optional<std::string_view> id = TakeQuoted(scanner);
    if (!id) return Bad(before, "expected a device in quotes, such as \"S-0002c90300000001\"");
    IbKind kind = IbKind::kUnknown;
    if (id->starts_with("S-")) kind = IbKind::kSwitch;
    if (id->starts_with("H-")) kind = IbKind::kAdapter;
    if (id->starts_with("R-")) kind = IbKind::kRouter;
    if (kind == IbKind::kUnknown) {
      const int32_t node = ports_.NodeOf(kind, HashOf(*id));
      ports_.Name(node, *id);
      return node;
    }
    LineScanner guid(id->substr(2));
    const std::optional<uint64_t> number = guid.Hex();
    if (!number || !guid.AtEnd())
      return Bad(before, fmt::format("device '{}'; expected a GUID in hexadecimal behind its first letter",
                                     Shortened(*id)));
    const int32_t node = ports_.NodeOf(kind, *number);
    ports_.node(node).guid = *number;
    return node;
  }

  // "Switch\t65 \"S-0002c903\"\t\t# \"MF0;leaf-1:MQM9700/U1\" enhanced port 0 lid 7 lmc 0"
  Status ReadHead(LineScanner scanner) {
    const IbKind kind = TakeKind(kRecords, scanner).value();
    node_.reset();
    if (!scanner.Number()) return Bad(scanner, "expected the number of the device's ports");
    scanner.SkipBlanks();
    XCCL_ASSIGN_OR_RETURN(const int32_t index, TakeNode(scanner));
    ports_.Name(index, ReadComment(scanner.rest()).name);
    IbNode& node = ports_.node(index);
    if (node.kind != IbKind::kUnknown && node.kind != kind)
      return Bad(scanner, "the letter of the device's GUID is not that of its kind");
    node.kind = kind;
    node.system_guid = std::exchange(system_guid_, 0);
    node.device_id = std::exchange(device_id_, 0);
    node_ = index;
    return OkStatus();
  }

  // "[1](2c90301) \t\"S-0002c903\"[3]\t\t# lid 21 lmc 0 \"leaf\" lid 7 4xNDR"
  Status ReadPort(LineScanner scanner) {
    if (!node_)
      return Bad(scanner, "a port outside of a record; expected a line of 'Switch' or 'Ca' before it");
    IbPortLine line;
    line.node = *node_;
    line.line = number_;
    const std::optional<int32_t> port = TakePort(scanner);
    if (!port) return Bad(scanner, "expected a port, such as [1]");
    line.port = *port;
    if (const uint64_t guid = TakePortGuid(scanner); guid != 0)
      ports_.SetPortGuid(line.node, line.port, guid);
    scanner.SkipBlanks();
    XCCL_ASSIGN_OR_RETURN(line.peer, TakeNode(scanner));
    const std::optional<int32_t> peer_port = TakePort(scanner);
    if (!peer_port) return Bad(scanner, "expected the port at the cable's other end, such as [1]");
    line.peer_port = *peer_port;
    if (const uint64_t guid = TakePortGuid(scanner); guid != 0)
      ports_.SetPortGuid(line.peer, line.peer_port, guid);
    const Comment comment = ReadComment(scanner.rest());
    ports_.Name(line.peer, comment.name);
    line.rate = comment.rate;
    ports_.Add(line);
    return OkStatus();
  }

  int32_t NodeOf(const ListedPort& port, std::string_view name) {
    const int32_t node = ports_.NodeOf(port.kind, port.guid);
    ports_.node(node).guid = port.guid;
    ports_.Name(node, name);
    return node;
  }

  // "SW  1719 10 0x7cfe900300 4x EDR - CA   134  1 0x7cfe900301 ( 'leaf' - 'node1 HCA-1' )", and for a port
  // without a peer "SW  2052 37 0x7cfe900300 4x ???     'leaf'"
  Status ReadListed(LineScanner scanner) {
    const std::optional<ListedPort> here = TakeListedPort(scanner);
    if (!here) return Bad(scanner, "expected a port, such as 'SW 12 1 0x0002c90300000001 4x EDR'");
    scanner.SkipBlanks();
    const std::string_view width = scanner.Word();
    scanner.SkipBlanks();
    const std::string_view speed = scanner.Word();
    scanner.SkipBlanks();
    if (!scanner.Take("- ")) {
      ports_.AddDown();
      std::string_view name = Trim(scanner.rest());
      if (name.starts_with('\'')) name.remove_prefix(1);
      if (name.ends_with('\'')) name.remove_suffix(1);
      if (here->kind == IbKind::kSwitch) NodeOf(*here, name);
      return OkStatus();
    }
    const std::optional<ListedPort> there = TakeListedPort(scanner);
    scanner.SkipBlanks();
    if (!there || !scanner.Take("( '"))
      return Bad(scanner, "expected the port at the cable's other end and the names of both");
    const std::string_view names = scanner.rest();
    constexpr std::string_view kBetween = "' - '";
    const size_t between = names.find(kBetween);
    const size_t end = names.rfind('\'');
    if (between == std::string_view::npos || end < between + kBetween.size())
      return Bad(scanner, "expected two names, such as ( 'node1 HCA-1' - 'leaf-1' )");
    IbPortLine line;
    line.node = NodeOf(*here, names.substr(0, between));
    const size_t second = between + kBetween.size();
    line.peer = NodeOf(*there, names.substr(second, end - second));
    line.port = here->port;
    line.peer_port = there->port;
    line.rate = {IbLanes(width), IbSpeedOfName(speed)};
    line.line = number_;
    ports_.Add(line);
    return OkStatus();
  }

  std::string_view text_;
  std::string file_;
  IbPorts ports_;
  std::string_view line_;
  int32_t number_ = 0;
  // The record that is being read: what stands before its head, then its node.
  int32_t device_id_ = 0;
  uint64_t system_guid_ = 0;
  std::optional<int32_t> node_;
};

// A line that no other format has.
bool IsTelling(std::string_view line) {
  LineScanner scanner(line);
  scanner.SkipBlanks();
  for (const std::string_view key : {"switchguid=0x", "caguid=0x", "rtguid=0x"})
    if (scanner.rest().starts_with(key)) return true;
  if (LineScanner head = scanner; TakeKind(kRecords, head)) {
    if (!head.Number()) return false;
    head.SkipBlanks();
    return TakeQuoted(head).has_value();
  }
  return TakeListedPort(scanner).has_value();
}

}  // namespace

bool IsIbnetdiscover(std::string_view text) {
  constexpr size_t kMostRead = 64 << 10;
  text = WithoutByteOrderMark(text.substr(0, kMostRead));
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (IsTelling(text.substr(0, end))) return true;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

StatusOr<Fabric> ReadIbnetdiscover(std::string_view text, std::string_view file) {
  return Reader(text, file).Read();
}

}  // namespace xccl
