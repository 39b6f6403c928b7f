// Ports as tools of InfiniBand print them, put together as a Fabric. A cable shows twice, as a line of
// each end's port that names the other port; it comes out once, at the line that is first. Only the readers
// of InfiniBand's formats need this header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "topologies/fabric/fabric.h"
#include "topologies/fabric/ib_rates.h"

namespace xccl {

enum class IbKind : uint8_t { kUnknown, kSwitch, kAdapter, kRouter };

struct IbNode {
  IbKind kind = IbKind::kUnknown;
  std::string name;
  uint64_t guid = 0;         // 0: unknown
  uint64_t system_guid = 0;  // 0: unknown
  int32_t device_id = 0;     // 0: unknown
  int32_t lines = 0;         // of its ports that have peers
  // The one port that lines name, its own or its peers'; 0: none, kSeveralPorts: more than one.
  int32_t port = 0;
};

inline constexpr int32_t kSeveralPorts = -1;

// A line of a port that has a peer.
struct IbPortLine {
  int32_t node = 0, port = 0;  // index of the node
  int32_t peer = 0, peer_port = 0;
  IbRate rate;
  IbRate full;  // where the tool says that the cable could do more
  int32_t line = 0;
};

class IbPorts {
 public:
  // `file` opens warnings and errors.
  IbPorts(std::string_view format, std::string_view file);

  // The node that has this kind and identifier, a GUID or a LID; a node without a name yet. Constant time.
  int32_t NodeOf(IbKind kind, uint64_t id);
  IbNode& node(int32_t index) { return nodes_[index]; }
  // `name` is the first one that is not empty.
  void Name(int32_t node, std::string_view name);
  void SetPortGuid(int32_t node, int32_t port, uint64_t guid) { port_guids_[Key(node, port)] = guid; }
  void See(int32_t node, int32_t port);  // a port without a peer
  void Add(const IbPortLine& line);
  void AddDown() { ++fabric_.down_ports; }
  // A warning at a line. Warnings with one `sort` come out as one: the first text and the lines of the rest.
  void Warn(std::string_view sort, int32_t line, std::string_view text);

  // `infer_degraded`: the tool does not say which cables are degraded; they are told by cables alike that are
  // faster (degraded.h). Linear in the lines. Errors: kInvalidInput "FILE: ..." if there is no cable.
  StatusOr<Fabric> Build(bool infer_degraded) &&;

 private:
  struct Warning {
    std::string text;
    std::vector<int32_t> lines;
  };
  static uint64_t Key(int32_t node, int32_t port) {
    return static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(port);
  }
  void GuessKinds();
  void ReadHosts();
  void MakeSwitches();
  bool IsLeftOut(int32_t node) const;
  void Pair(int32_t index, bool adapters_have_lines);
  void AddCable(const IbPortLine& line, const IbPortLine* other);
  FabricEnd EndOf(int32_t node, int32_t port);
  void DropSharedHosts();
  void InferDegraded();
  void WriteWarnings();
  void WarnOfHosts();
  void WarnOfLeftOut();
  std::string Say(int32_t node, int32_t port) const;

  std::string file_;
  Fabric fabric_;
  std::vector<IbNode> nodes_;
  std::unordered_map<uint64_t, int32_t> index_[4];      // by kind: identifier to node
  std::unordered_map<uint64_t, uint64_t> port_guids_;   // by Key
  std::unordered_map<uint64_t, int32_t> line_of_port_;  // by Key: index of its line
  std::unordered_map<uint64_t, int32_t> claims_;        // by Key of a port without a line: line that names it
  std::unordered_map<uint64_t, int32_t> ends_;          // by Key of an adapter's port, or of a switch
  std::vector<IbPortLine> lines_;
  std::vector<std::string> hosts_, devices_;  // by node
  std::vector<int32_t> models_of_switches_, models_of_adapters_;
  std::vector<std::string> sorts_;
  std::unordered_map<std::string, Warning> warnings_;
};

}  // namespace xccl
