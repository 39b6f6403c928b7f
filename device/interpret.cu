// The interpreter kernel as a source of its own; XCCL_TYPE, XCCL_OPERATOR, XCCL_PROTOCOL and XCCL_THREADS as
// in generated source.
#include "device/interpret.h"
