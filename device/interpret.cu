// The interpreter kernel as a source file of its own. XCCL_TYPE, XCCL_OPERATOR, XCCL_PROTOCOL and
// XCCL_THREADS are as in generated source.
#include "device/interpret.h"
