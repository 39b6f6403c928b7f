#include "topologies/fabric/ib_names.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/strings.h"

namespace xccl {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// mlx5_0, mlx4_1, mlx5_bond_0, hfi1_0, qib0, HCA-1
bool IsDevice(std::string_view word) {
  for (const std::string_view prefix : {"HCA-", "mlx4_", "mlx5_", "hfi1_", "qib", "mthca"})
    if (word.starts_with(prefix)) {
      word.remove_prefix(prefix.size());
      for (const std::string_view middle : {"bond_", "ib"})
        if (word.starts_with(middle)) word.remove_prefix(middle.size());
      return IsDigits(word);
    }
  return false;
}

// "MT4129 ConnectX7   Mellanox Technologies"
bool IsProduct(std::string_view name) {
  if (name.find("Mellanox Technologies") != std::string_view::npos) return true;
  const std::string_view first = name.substr(0, name.find(' '));
  for (const std::string_view product : {"ConnectX", "BlueField", "NVIDIA"})
    if (first.starts_with(product)) return true;
  return first.starts_with("MT") && IsDigits(first.substr(2));
}

struct SwitchName {
  std::string_view system, chip;  // "leaf-1" and "U1" of "MF0;leaf-1:MQM9700/U1"; empty: no such name
};

SwitchName Parts(std::string_view name) {
  if (!name.starts_with("MF0;")) return {};
  name.remove_prefix(4);
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {Trim(name), {}};
  const std::string_view model = name.substr(colon + 1);
  const size_t slash = model.find('/');
  return {Trim(name.substr(0, colon)),
          slash == std::string_view::npos ? std::string_view() : Trim(model.substr(slash + 1))};
}

}  // namespace

IbAdapterName ReadIbAdapterName(std::string_view name) {
  name = Trim(name);
  if (IsProduct(name)) return {};
  const size_t blank = name.find_last_of(" \t");
  IbAdapterName read;
  read.host = name;
  if (blank != std::string_view::npos) {
    const std::string_view first = Trim(name.substr(0, blank));
    const std::string_view last = name.substr(blank + 1);
    // A longer name of unknown words may be anything: it stays whole.
    if (IsDevice(last) || first.find_first_of(" \t") == std::string_view::npos)
      read = {std::string(first), std::string(last)};
  } else if (IsDevice(name)) {
    read = {"", std::string(name)};
  }
  if (read.host == "localhost" || read.host.starts_with("localhost.")) read.host.clear();
  return read;
}

bool IsIbAggregationNode(std::string_view name) {
  return name.find("Aggregation Node") != std::string_view::npos;
}

bool LooksLikeIbSwitch(std::string_view name) {
  if (name.starts_with("MF0;")) return true;
  for (const std::string_view product : {"Quantum", "SwitchIB", "SwitchX", "Infiniscale", "InfiniScale",
                                         "ISR9024", "IS5", "SX6", "MSB7", "MQM"})
    if (name.find(product) != std::string_view::npos) return true;
  return false;
}

bool LooksLikeIbAdapter(std::string_view name) {
  const IbAdapterName read = ReadIbAdapterName(name);
  return IsDevice(read.device) || (IsProduct(name) && name.find("Connect") != std::string_view::npos);
}

std::vector<std::string> ShortIbSwitchNames(const std::vector<std::string>& names) {
  std::vector<std::string> shorter(names.size());
  std::vector<std::string> longer(names.size());  // with the chip
  for (size_t i = 0; i < names.size(); ++i) {
    const SwitchName parts = Parts(names[i]);
    shorter[i] = parts.system.empty() ? names[i] : std::string(parts.system);
    longer[i] = parts.chip.empty() ? names[i] : shorter[i] + "/" + std::string(parts.chip);
  }
  std::unordered_map<std::string, int> count;
  for (size_t i = 0; i < names.size(); ++i) {
    ++count[shorter[i]];
    if (longer[i] != shorter[i]) ++count[longer[i]];
    if (names[i] != shorter[i] && names[i] != longer[i]) ++count[names[i]];
  }
  std::vector<std::string> chosen;
  for (size_t i = 0; i < names.size(); ++i)
    chosen.push_back(count[shorter[i]] == 1 ? shorter[i] : count[longer[i]] == 1 ? longer[i] : names[i]);
  return chosen;
}

}  // namespace xccl
