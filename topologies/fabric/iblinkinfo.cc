#include "topologies/fabric/iblinkinfo.h"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "topologies/fabric/ib_ports.h"
#include "topologies/fabric/ib_rates.h"
#include "topologies/fabric/line_scanner.h"

namespace xccl {
namespace {

constexpr std::string_view kLinkBegins = "==(";
constexpr std::string_view kLinkEnds = "==>";

// The three parts of "   7    1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==>   21    1[  ] \"node1\" ( )".
struct PortText {
  std::string_view here, link, there;
};

std::optional<PortText> SplitPort(std::string_view line) {
  const size_t begin = line.find(kLinkBegins);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view link = line.substr(begin + kLinkBegins.size());
  const size_t end = link.find(kLinkEnds);
  if (end == std::string_view::npos) return std::nullopt;
  return PortText{line.substr(0, begin), link.substr(0, end), link.substr(end + kLinkEnds.size())};
}

struct Link {
  IbRate rate;
  std::string_view state;  // "Active", "Down"; empty: there is none
};

// "25.78125 Gbps", "10.0 Gbps (FDR10)", from the word at `at`.
IbSpeed SpeedOf(const std::vector<std::string_view>& words, size_t at) {
  if (at + 1 >= words.size() || !words[at + 1].starts_with("Gbps")) return IbSpeed::kUnknown;
  if (at + 2 < words.size() && words[at + 2].starts_with("(FDR10)")) return IbSpeed::kFdr10;
  return IbSpeedOfLaneGbps(words[at]);
}

Link ReadLink(std::string_view text) {
  Link link;
  const std::vector<std::string_view> words = WordsOf(text);
  for (size_t i = 0; i < words.size(); ++i) {
    if (const int32_t lanes = IbLanes(words[i]); lanes != 0) link.rate.lanes = lanes;
    if (const IbSpeed speed = SpeedOf(words, i); speed != IbSpeed::kUnknown) link.rate.speed = speed;
    if (const size_t slash = words[i].find('/'); slash != std::string_view::npos) {
      link.state = words[i].substr(0, slash);
      break;
    }
  }
  return link;
}

// The rate by "(Could be 4X Could be 25.78125 Gbps)".
IbRate FullRate(std::string_view text, IbRate rate) {
  const std::vector<std::string_view> words = WordsOf(text);
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (!words[i].ends_with("Could") || words[i + 1] != "be") continue;
    const std::string_view could = words[i + 2].substr(0, words[i + 2].find(')'));
    if (const int32_t lanes = IbLanes(could); lanes != 0) rate.lanes = lanes;
    if (const IbSpeed speed = SpeedOf(words, i + 2); speed != IbSpeed::kUnknown) rate.speed = speed;
    if (could == "FDR10") rate.speed = IbSpeed::kFdr10;
  }
  return rate;
}

struct End {
  uint64_t guid = 0;   // 0: not printed
  bool named = false;  // has a name in quotes
  std::string_view name;
  int32_t lid = 0;
  int32_t port = 0;
};

// Takes "21 1[  ]".
bool TakeLidAndPort(LineScanner& scanner, End& end) {
  scanner.SkipBlanks();
  const std::optional<int32_t> lid = scanner.Number();
  scanner.SkipBlanks();
  const std::optional<int32_t> port = scanner.Number();
  if (!lid || !port || !scanner.Take("[")) return false;
  const size_t close = scanner.rest().find(']');  // an external number may stand before it
  if (close == std::string_view::npos) return false;
  scanner.Take(scanner.rest().substr(0, close + 1));
  end.lid = *lid;
  end.port = *port;
  return true;
}

// Takes a name in quotes, which may hold quotes itself.
std::optional<std::string_view> TakeName(LineScanner& scanner) {
  scanner.SkipBlanks();
  const std::string_view rest = scanner.rest();
  const size_t last = rest.rfind('"');
  if (!rest.starts_with('"') || last == 0) return std::nullopt;
  scanner.Take(rest.substr(0, last + 1));
  return rest.substr(1, last - 1);
}

// "0x0000b10 \"  node1 mlx5_0\"   21    1[  ] ", "   0x0000b10   21   1[  ] " or "   7    1[  ] "
std::optional<End> ReadHere(std::string_view text) {
  LineScanner scanner(text);
  End end;
  scanner.SkipBlanks();
  if (scanner.rest().starts_with("0x")) {
    const std::optional<uint64_t> guid = scanner.Hex();
    if (!guid) return std::nullopt;
    end.guid = *guid;
    const std::optional<std::string_view> name = TakeName(scanner);
    end.named = name.has_value();
    end.name = name.value_or("");
  }
  if (!TakeLidAndPort(scanner, end)) return std::nullopt;
  return end;
}

struct FarEnd {
  End end;
  std::string_view remarks;  // "(Could be 4X )"
};

std::optional<FarEnd> ReadThere(std::string_view text) {
  LineScanner scanner(text);
  FarEnd far;
  scanner.SkipBlanks();
  if (scanner.rest().starts_with("0x")) far.end.guid = scanner.Hex().value_or(0);
  if (!TakeLidAndPort(scanner, far.end)) return std::nullopt;
  const std::optional<std::string_view> name = TakeName(scanner);
  if (!name) return std::nullopt;
  far.end.name = *name;
  far.remarks = scanner.rest();
  return far;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view file)
      : text_(WithoutByteOrderMark(text)), file_(file), ports_("iblinkinfo", file) {}

  StatusOr<Fabric> Read() {
    while (!text_.empty()) {
      const size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++number_;
      line = Trim(line);
      if (line.empty() || line.starts_with('#')) continue;
      if (const std::optional<PortText> port = SplitPort(line)) {
        XCCL_RETURN_IF_ERROR(ReadPort(*port));
      } else if (!ReadHead(line)) {
        head_ = Head();
        ports_.Warn("other text", number_,
                    fmt::format("'{}' is no line of iblinkinfo; left out", Shortened(line)));
      }
    }
    return std::move(ports_).Build(/*infer_degraded=*/false);
  }

 private:
  struct Head {
    IbKind kind = IbKind::kUnknown;
    std::string_view name;
    uint64_t guid = 0;  // of a switch
    int32_t lid = 0;    // of a switch, after its first port
  };

  Status Bad(std::string_view message) const { return InvalidAt({file_, number_, 1}, message); }

  // "Switch: 0x0000000000000a00 leaf-1:", "CA: node1 mlx5_0:"; old tools print no colon behind the kind.
  bool ReadHead(std::string_view line) {
    LineScanner scanner(line);
    Head head;
    if (scanner.Take("Switch"))
      head.kind = IbKind::kSwitch;
    else if (scanner.Take("CA"))
      head.kind = IbKind::kAdapter;
    else if (scanner.Take("Router"))
      head.kind = IbKind::kRouter;
    else
      return false;
    scanner.Take(":");
    if (!scanner.Take(" ") || !line.ends_with(':')) return false;
    scanner.SkipBlanks();
    if (head.kind == IbKind::kSwitch && scanner.rest().starts_with("0x"))
      head.guid = scanner.Hex().value_or(0);
    head.name = scanner.rest();
    if (head.name.ends_with(':')) head.name.remove_suffix(1);
    head_ = head;
    return true;
  }

  // With --line devices are told by their GUIDs, else by LIDs; where there is no LID, names are left.
  int32_t NodeOf(const End& end, bool by_guid) {
    const uint64_t id = by_guid       ? end.guid
                        : HasLid(end) ? static_cast<uint64_t>(end.lid)
                                      : HashOf(Trim(end.name));
    const int32_t node = ports_.NodeOf(IbKind::kUnknown, id);
    ports_.Name(node, end.name);
    if (by_guid) ports_.node(node).guid = end.guid;
    return node;
  }

  static bool HasLid(const End& end) { return end.lid > 0 && end.lid < 0xffff; }

  // The node of a port below a head, which has its kind and name, and a switch's GUID.
  StatusOr<int32_t> NodeBelowHead(End here) {
    here.name = head_.name;
    if (head_.kind == IbKind::kSwitch) {
      here.guid = head_.guid;
      if (head_.lid != 0 && head_.lid != here.lid)
        return Bad(fmt::format("LID {} of a switch whose port above has LID {}; expected one LID", here.lid,
                               head_.lid));
      head_.lid = here.lid;
    }
    const int32_t index = NodeOf(here, /*by_guid=*/false);
    IbNode& node = ports_.node(index);
    node.kind = head_.kind;
    if (head_.kind != IbKind::kSwitch && here.guid != 0) ports_.SetPortGuid(index, here.port, here.guid);
    if (!HasLid(here) && head_.kind != IbKind::kSwitch) return index;
    if (node.guid != 0 && here.guid != 0 && node.guid != here.guid)
      return Bad(
          fmt::format("LID {} is that of '{}' and of '{}'; expected one subnet; hint: iblinkinfo --line",
                      here.lid, Shortened(node.name), Shortened(Trim(here.name))));
    if (here.guid != 0) node.guid = here.guid;
    return index;
  }

  Status ReadPort(const PortText& text) {
    const std::optional<End> here = ReadHere(text.here);
    if (!here) return Bad("expected a LID and a port before '==(', such as 7 1[  ]");
    if (!here->named && head_.kind == IbKind::kUnknown)
      return Bad(
          "a port without its device; expected a line such as 'Switch: 0x0002c90300000001 leaf-1:' before "
          "it");
    const Link link = ReadLink(text.link);
    if (link.state.empty()) return Bad("expected a state such as Active/ between '==(' and '==>'");
    const bool down = link.state == "Down" || Trim(text.there).starts_with("\"Port not available\"");
    const std::optional<FarEnd> far = down ? std::nullopt : ReadThere(text.there);
    if (!down && !far) return Bad("expected the far end's LID, port and name behind '==>'");
    if (far && here->named && (here->guid == 0 || far->end.guid == 0))
      return Bad("expected the GUIDs of both ends, as --line prints them");
    if (down) ports_.AddDown();
    if (down && !here->named && head_.kind != IbKind::kSwitch) return OkStatus();  // its LID is no LID
    int32_t node = 0;
    if (here->named) {
      node = NodeOf(*here, /*by_guid=*/true);
    } else {
      XCCL_ASSIGN_OR_RETURN(node, NodeBelowHead(*here));
    }
    if (down) {
      ports_.See(node, here->port);
      return OkStatus();
    }
    AddCable(node, *here, *far, text.link, link);
    return OkStatus();
  }

  void AddCable(int32_t node, const End& here, const FarEnd& far, std::string_view text, const Link& link) {
    if (link.state != "Active")
      ports_.Warn(
          "state", number_,
          fmt::format("a port is in state {} instead of Active; its cable counts", Shortened(link.state)));
    if (IbBytesPerS(link.rate) == 0)
      ports_.Warn("rate", number_,
                  fmt::format("'{}' states no known rate of InfiniBand", Shortened(Trim(text))));
    IbPortLine line;
    line.node = node;
    line.port = here.port;
    line.peer = NodeOf(far.end, here.named);
    line.peer_port = far.end.port;
    line.rate = link.rate;
    line.full = FullRate(far.remarks, link.rate);
    line.line = number_;
    ports_.Add(line);
  }

  std::string_view text_;
  std::string file_;
  IbPorts ports_;
  int32_t number_ = 0;
  Head head_;
};

}  // namespace

bool IsIblinkinfo(std::string_view text) {
  constexpr size_t kMostRead = 64 << 10;
  text = text.substr(0, kMostRead);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (const std::optional<PortText> port = SplitPort(text.substr(0, end)))
      if (ReadHere(port->here) && !ReadLink(port->link).state.empty()) return true;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

StatusOr<Fabric> ReadIblinkinfo(std::string_view text, std::string_view file) {
  return Reader(text, file).Read();
}

}  // namespace xccl
