// The neighbours of hosts as lldpd knows them, as a fabric: the output of `lldpcli -f json show neighbors` or
// `lldpcli -f json0 show neighbors` on each host (https://lldpd.github.io/usage.html), in one file a host.
// The output does not say whose it is: a host is named by its file, gpu001.json is that of gpu001.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

struct LldpFile {
  std::string text;
  std::string file;  // the path; shown in errors and warnings
};

// Is the text an object whose first key is "lldp"?
bool IsLldp(std::string_view text);

// The adapters are the interfaces that have a neighbour, the switches the neighbours. One MAC address is one
// switch, and so is one name, unless several MAC addresses have it. A neighbour that is a host of another
// file is cabled to it; any other one that says it neither bridges nor routes is left out with a warning. Of
// several neighbours at an interface the first is taken. A rate is that of the medium that the switch names
// ("10GigBaseSR - ..."), or of the kind of its port ("HundredGigE0/0/0/1"), else 0. Cables have lines where
// there is one file.
// Errors: kInvalidInput "FILE:LINE: ..." for text in another form, for the output of `show interfaces`, for
// two files of one host, and where nobody has a neighbour.
StatusOr<Fabric> ReadLldp(std::span<const LldpFile> files);

}  // namespace xccl
